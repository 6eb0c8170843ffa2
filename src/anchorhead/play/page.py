"""The playground as one HTML file that needs nothing else: no server, no network, no fonts."""

from __future__ import annotations

import json
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template

from anchorhead.play.bundle import bundle
from anchorhead.play.tables import tables


def page() -> str:
    """The whole page: `web/index.html` with style, data and script in their places."""
    web = files("anchorhead.play") / "web"
    # in JSON "<" stands in texts only, and a script in a page must not hold "</script"
    data = json.dumps(tables(), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return Template((web / "index.html").read_text("utf-8")).substitute(
        style=_style(web), data=data, script=bundle(_modules(web), "app.js")
    )


def _style(web: Traversable) -> str:
    """All style sheets; the shell's comes first."""
    return "\n".join((web / name).read_text("utf-8") for name in ("style.css", "networks.css"))


def _modules(folder: Traversable, below: str = "") -> dict[str, str]:
    """The texts of all modules in a folder and those below, by their names relative to it."""
    found: dict[str, str] = {}
    for one in folder.iterdir():
        if one.is_dir():
            found |= _modules(one, f"{below}{one.name}/")
        elif one.name.endswith(".js"):
            found[f"{below}{one.name}"] = one.read_text("utf-8")
    return found

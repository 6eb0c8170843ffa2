"""Builds the site in out/docs/html: runs every example, then Sphinx with warnings as errors."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.pages import markdown, run

SOURCE, TARGET = Path("docs"), Path("out/docs")


def main() -> None:
    pages = TARGET / "source"
    shutil.rmtree(TARGET, ignore_errors=True)
    shutil.copytree(SOURCE, pages, ignore=shutil.ignore_patterns("theorems"))
    for kind, folder in (("theorems", SOURCE / "theorems"), ("notebooks", Path("notebooks"))):
        for script in sorted(folder.glob("*.py")):
            print(f"running {script}", flush=True)
            page = markdown(run(script, pages / kind), pages / kind, script.stem)
            (pages / kind / f"{script.stem}.md").write_text(page)
    (pages / "api" / "command_line.md").write_text(command_line())
    subprocess.run([sys.executable, "-m", "anchorhead", "zoo", "-o", str(pages / "zoo")], check=True)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        str(pages),
        str(TARGET / "html"),
    ]
    if code := subprocess.run(command, check=False).returncode:
        sys.exit(code)
    print(TARGET / "html" / "index.html")


def command_line() -> str:
    """The help texts of all commands, as a page."""
    command = [sys.executable, "-m", "typer", "anchorhead.cli.app", "utils", "docs", "--name", "anchorhead"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text.replace("# `anchorhead`", "# Command line", 1)


if __name__ == "__main__":
    main()

"""Builds the site in out/docs/html: runs every example, then Sphinx with warnings as errors."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from anchorhead.play.page import page as playground
from tools.pages import has_code, markdown, run

SOURCE, TARGET = Path("docs"), Path("out/docs")


def main() -> None:
    pages = TARGET / "source"
    shutil.rmtree(TARGET, ignore_errors=True)
    shutil.copytree(SOURCE, pages, ignore=shutil.ignore_patterns("theorems"))
    for source, page in sources(pages):
        print(f"running {source}", flush=True)
        text = markdown(run(source, page.parent), page.parent, page.stem)
        page.write_text(text)
    (pages / "extra").mkdir()
    (pages / "extra" / "playground.html").write_text(playground(), encoding="utf-8")
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


def sources(pages: Path) -> Iterator[tuple[Path, Path]]:
    """What is run, and the page that it becomes: scripts, and Markdown with Python in it."""
    for kind, folder in (("theorems", SOURCE / "theorems"), ("notebooks", Path("notebooks"))):
        for script in sorted(folder.glob("*.py")):
            yield script, pages / kind / f"{script.stem}.md"
    for document in (SOURCE / "index.md", *sorted((SOURCE / "guide").glob("*.md"))):
        if has_code(document):
            yield document, pages / document.relative_to(SOURCE)


def command_line() -> str:
    """The help texts of all commands, as a page."""
    command = [sys.executable, "-m", "typer", "anchorhead.cli.app", "utils", "docs", "--name", "anchorhead"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text.replace("# `anchorhead`", "# Command line", 1)


if __name__ == "__main__":
    main()

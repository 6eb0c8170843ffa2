"""Runs the scripts in notebooks/ as notebooks: .ipynb with outputs and .html pages, in out/notebooks."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbconvert import HTMLExporter

from tools.pages import run

SOURCE = Path("notebooks")
TARGET = Path("out/notebooks")


def main() -> None:
    for script in sorted(SOURCE.glob("*.py")):
        notebook = run(script, TARGET)
        nbformat.write(notebook, TARGET / f"{script.stem}.ipynb")
        page, _ = HTMLExporter(embed_images=True).from_notebook_node(notebook, {"metadata": {"path": str(TARGET)}})
        (TARGET / f"{script.stem}.html").write_text(page)
        print(TARGET / f"{script.stem}.html")


if __name__ == "__main__":
    main()

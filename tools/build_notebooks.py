"""Runs the scripts in notebooks/ as notebooks: .ipynb with outputs and .html pages, in out/notebooks."""

from __future__ import annotations

import os
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

SOURCE = Path("notebooks")
TARGET = Path("out/notebooks")


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    for script in sorted(SOURCE.glob("*.py")):
        notebook = jupytext.read(script)
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(TARGET)}}).execute()
        nbformat.write(notebook, TARGET / f"{script.stem}.ipynb")
        page, _ = HTMLExporter(embed_images=True).from_notebook_node(notebook, {"metadata": {"path": str(TARGET)}})
        (TARGET / f"{script.stem}.html").write_text(page)
        print(TARGET / f"{script.stem}.html")


if __name__ == "__main__":
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    main()

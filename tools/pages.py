"""Scripts in jupytext's percent format, and Markdown with Python in it: run as notebooks, and written as pages."""

from __future__ import annotations

import os
import re
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jupytext
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from traitlets.config import Config

PICTURE = ".png"
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")


PYTHON = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def has_code(document: Path) -> bool:
    """Whether a page in Markdown has Python to be run."""
    return PYTHON.search(document.read_text()) is not None


def as_notebook(text: str) -> Any:
    """A page in Markdown as a notebook: what is fenced as Python is run, all else, shell commands too, is text."""
    pieces = PYTHON.split(text)  # text and code in turn
    cells = [(new_code_cell if k % 2 else new_markdown_cell)(piece.strip("\n")) for k, piece in enumerate(pieces)]
    return new_notebook(cells=[cell for cell in cells if cell.source])


def run(source: Path, folder: Path) -> Any:
    """The script or page as a notebook with its outputs; the files that it writes go to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    notebook = as_notebook(source.read_text()) if source.suffix == ".md" else jupytext.read(source)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with TemporaryDirectory() as place:  # sockets are files in it, which this user alone can open, and no ports
        sockets = Config({"KernelManager": {"transport": "ipc", "ip": f"{place}/kernel"}})
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}, config=sockets).execute()
    return notebook


def markdown(notebook: Any, folder: Path, name: str) -> str:
    """Text as it is, code and what it printed in fences, figures as files in the folder."""
    blocks, pictures = [], 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            blocks.append(cell.source)
            continue
        blocks.append(f"```python\n{cell.source}\n```")
        printed = "".join(_text(output) for output in cell.outputs)
        if printed.strip():
            blocks.append(f"```text\n{printed.rstrip()}\n```")
        if PICTURE in cell.source:  # it was saved: the text says where it is shown
            continue
        for output in filter(_is_picture, cell.outputs):
            pictures += 1
            path = folder / f"{name}-{pictures}{PICTURE}"
            path.write_bytes(b64decode(output.data["image/png"]))
            blocks.append(f"![What is drawn]({path.name})")
    return "\n\n".join(blocks) + "\n"


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return output.text if output.name == "stdout" else ""
    return "" if _is_picture(output) else output.get("data", {}).get("text/plain", "")


def _is_picture(output: Any) -> bool:
    return "image/png" in output.get("data", {})

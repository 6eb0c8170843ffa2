"""Pages of the site in Markdown: their Python is run, and everything else stays text."""

from __future__ import annotations

import pytest

pytest.importorskip("jupytext")
pytest.importorskip("nbclient")

from tools.pages import as_notebook, has_code, markdown

PAGE = "# Title\n\n```sh\nmake run\n```\n\n```python\nprint(1)\n```\n\nText.\n\n```text\n1\n```\n"


def test_only_python_becomes_code(tmp_path):
    cells = as_notebook(PAGE).cells
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "markdown"]
    assert cells[1].source == "print(1)"
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "text.md").write_text("# Title\n\n```sh\npython x.py\n```\n")
    assert has_code(tmp_path / "page.md")
    assert not has_code(tmp_path / "text.md")


def test_what_is_printed_follows_the_code(tmp_path):
    notebook = as_notebook(PAGE)
    notebook.cells[1].outputs = [{"output_type": "stream", "name": "stdout", "text": "1\n"}]
    assert "```python\nprint(1)\n```\n\n```text\n1\n```\n\nText." in markdown(as_attributes(notebook), tmp_path, "page")


def as_attributes(notebook):
    from nbformat import from_dict

    return from_dict(notebook)

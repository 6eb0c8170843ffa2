"""A folder is written whole or not at all, is never away, and replaces none that somebody else wrote."""

from __future__ import annotations

import json
import os
import stat

import pytest

from anchorhead.disk import check_folder_out, whole_folder
from anchorhead.disk import folders as folders_module
from anchorhead.disk.folders import LIST
from anchorhead.errors import AnchorheadError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(out, content="new", replace=False):
    with whole_folder(out, replace) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "f").write_text(content)
        (folder / "g").write_text(content)
        (folder / "g").chmod(0o600)


def test_an_empty_folder_that_is_there_keeps_who_may_look_into_it(tmp_path):
    (tmp_path / "out").mkdir(0o700)
    write(tmp_path / "out")
    assert names(tmp_path / "out") == [LIST, "g", "sub"]
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700


def test_a_folder_lands_with_the_list_of_its_files(tmp_path):
    mask = os.umask(0o027)
    try:
        write(tmp_path / "out")
    finally:
        os.umask(mask)
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == [LIST, "g", "sub"]
    assert json.loads((tmp_path / "out" / LIST).read_text())["files"] == ["g", "sub/f"]
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "out" / "g").stat().st_mode) == 0o640


def test_an_empty_folder_is_filled_and_a_full_one_needs_force(tmp_path):
    (tmp_path / "out").mkdir()
    write(tmp_path / "out")
    with pytest.raises(AnchorheadError, match="exists: give another name, or --force"):
        write(tmp_path / "out", "newer")
    write(tmp_path / "out", "newer", replace=True)
    assert (tmp_path / "out" / "g").read_text() == "newer"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"files": 3}', '{"files": ["g"]}', '{"files": [[]]}'])
def test_a_folder_that_we_did_not_write_is_never_replaced(content, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    if content is not None:
        (out / LIST).write_text(content)
    with pytest.raises(AnchorheadError, match=r"only folders that anchorhead wrote are replaced"):
        write(out, replace=True)
    assert (out / "thesis.tex").read_text() == "years of work"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("put", ["notes.txt", "sub/notes.txt", ".git/config", "link"])
def test_nor_one_of_ours_to_which_something_was_added(put, tmp_path):
    out = tmp_path / "out"
    write(out)
    (out / put).parent.mkdir(exist_ok=True)
    if put == "link":
        (out / put).symlink_to(tmp_path)
    else:
        (out / put).write_text("mine")
    with pytest.raises(AnchorheadError, match=rf"out holds {put}, which anchorhead did not write"):
        write(out, replace=True)
    assert (out / put).exists()


def test_nor_one_to_which_something_is_added_meanwhile(tmp_path):
    out = tmp_path / "out"
    write(out)
    with pytest.raises(AnchorheadError, match="holds late"), whole_folder(out, replace=True):
        (out / "late").write_text("mine")
    assert (out / "late").read_text() == "mine"
    assert names(tmp_path) == ["out"]


def test_there_is_no_moment_without_the_folder(tmp_path, monkeypatch):
    """Both names change places in one step; no rename takes the old one away before."""
    out = tmp_path / "out"
    write(out, "old")
    out.chmod(0o711)
    if not folders_module._exchanged(tmp_path, tmp_path):
        pytest.skip("this system cannot exchange two names")

    def never(*paths):
        raise AssertionError("a rename of its own")

    monkeypatch.setattr(folders_module.os, "rename", never)
    write(out, "new", replace=True)
    assert (out / "g").read_text() == "new"
    assert stat.S_IMODE(out.stat().st_mode) == 0o711
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("fails", [False, True])
def test_where_names_cannot_be_exchanged_a_failure_puts_back_what_was_there(fails, tmp_path, monkeypatch):
    out, rename = tmp_path / "out", os.rename
    write(out, "old")

    def second_fails(one, two):
        if fails and two == out and (one / "g").read_text() == "new":
            raise OSError(5, "Input/output error")
        rename(one, two)

    monkeypatch.setattr(folders_module, "_exchanged", lambda one, two: False)
    monkeypatch.setattr(folders_module.os, "rename", second_fails)
    if fails:
        with pytest.raises(AnchorheadError, match="Input/output error"):
            write(out, "new", replace=True)
    else:
        write(out, "new", replace=True)
    assert (out / "g").read_text() == ("old" if fails else "new")
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("odd")])
def test_whatever_fails_leaves_what_was_there(trouble, tmp_path):
    out = tmp_path / "out"
    write(out, "old")
    expected = AnchorheadError if isinstance(trouble, OSError) else type(trouble)
    with pytest.raises(expected), whole_folder(out, replace=True):
        raise trouble
    assert (out / "g").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to("there/out")
    for content in ("first", "second"):
        write(link, content, replace=True)
        assert (tmp_path / "there" / "out" / "g").read_text() == content
    assert link.is_symlink()
    assert names(tmp_path / "there") == ["out"]


def test_places_where_no_folder_can_be_are_refused_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for given, said in (
        ("file", "is not a folder but a file"),
        ("pipe", "is not a folder but a pipe"),
        ("none/out", "there is no folder"),
        ("file/out", "there is no folder"),
        ("o" * 300, "cannot be looked up"),
    ):
        with pytest.raises(AnchorheadError, match=said):
            check_folder_out(tmp_path / given, replace=True)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(AnchorheadError, match="you may not make folders in"):
        check_folder_out(tmp_path / "out")

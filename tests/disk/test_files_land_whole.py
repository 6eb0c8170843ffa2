"""A file is written whole or not at all; what is no regular file is written to, never replaced."""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from anchorhead.disk import check_writable, file_to_read, path_of, read_whole, write_atomically
from anchorhead.disk.partial import NAME, OLD_S
from anchorhead.errors import AnchorheadError

CONTENT = bytes(range(256)) * 1000
"""More than a pipe holds."""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def device(path, number):
    """A copy of a device, never the machine's own."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, number))
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        pytest.skip("devices cannot be made here")
    return path


def test_what_was_there_is_replaced_and_nothing_else_stays(tmp_path):
    path = tmp_path / "f"
    write_atomically(path, b"one")
    write_atomically(str(path), CONTENT)
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == ["f"]


def test_a_pipe_is_written_to(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    write_atomically(path, CONTENT)
    reader.join(20)
    assert read == [CONTENT]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_a_device_is_written_to(tmp_path):
    path = device(tmp_path / "null", 3)
    write_atomically(path, CONTENT)
    assert stat.S_ISCHR(path.stat().st_mode)
    assert names(tmp_path) == ["null"]


def test_a_device_that_is_full_is_said_in_words(tmp_path):
    path = device(tmp_path / "full", 7)
    with pytest.raises(AnchorheadError, match=r"full cannot be written: No space left"):
        write_atomically(path, CONTENT)
    assert stat.S_ISCHR(path.stat().st_mode)
    assert names(tmp_path) == ["full"]


def test_a_socket_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("s")
        with pytest.raises(AnchorheadError, match="it is a socket"):
            write_atomically("s", b"")
        assert stat.S_ISSOCK(os.stat("s").st_mode)


PRINTING = """
import sys
from anchorhead.disk import write_atomically
print("before")
write_atomically(sys.argv[1], b"table\\n")
print("after")
"""


@pytest.mark.parametrize("to", ["file", "pipe"])
def test_standard_output_by_its_name_comes_in_order(to, tmp_path):
    link, out = tmp_path / "stdout", tmp_path / "out"
    link.symlink_to("/proc/self/fd/1")
    command = [sys.executable, "-c", PRINTING, str(link)]
    if to == "file":
        with out.open("wb") as file:
            subprocess.run(command, stdout=file, check=True)
    else:
        out.write_bytes(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert out.read_text() == "before\ntable\nafter\n"
    assert link.is_symlink()


def test_links_are_followed_and_stay(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, second = tmp_path / "there" / "f", tmp_path / "link", tmp_path / "second"
    link.symlink_to("there/f")
    second.symlink_to("link")
    for content in (b"through a link to nothing", b"through a link to a file"):
        write_atomically(second, content)
        assert target.read_bytes() == content
    assert link.is_symlink()
    assert second.is_symlink()
    assert names(tmp_path) == ["link", "second", "there"]
    assert names(tmp_path / "there") == ["f"]


@pytest.mark.parametrize("target", ["circle", "none/f"])
def test_links_that_lead_nowhere_are_refused(target, tmp_path):
    link = tmp_path / "circle"
    link.symlink_to(target)
    with pytest.raises(AnchorheadError, match="circle cannot be written"):
        write_atomically(link, b"")
    assert link.is_symlink()


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_new_files_are_for_whom_the_mask_allows_and_old_ones_for_whom_they_were(mask, tmp_path):
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "new", b"")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~mask
        (tmp_path / "new").chmod(0o640)
        write_atomically(tmp_path / "new", b"again")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    finally:
        os.umask(before)


def test_a_disk_that_fills_up_leaves_what_was_there(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(AnchorheadError, match="f cannot be written: File too large"):
            write_atomically(path, CONTENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == ["f"]


def test_places_that_may_not_be_written_to_are_refused_before_any_work(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "f").write_bytes(b"")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) not in closed)  # root may write everywhere
    closed = [folder]
    with pytest.raises(AnchorheadError, match=r"you may not make files in the folder .*folder$"):
        check_writable(folder / "g")
    closed = [folder / "f"]
    with pytest.raises(AnchorheadError, match=r"f cannot be written: it is there, and you may not"):
        check_writable(folder / "f")
    with pytest.raises(AnchorheadError, match="it is a folder"):
        check_writable(folder)
    with pytest.raises(AnchorheadError, match="there is no folder"):
        check_writable(tmp_path / "none" / "f")
    with pytest.raises(AnchorheadError, match="there is no folder"):
        check_writable(folder / "f" / "g")


WRITING = """
import sys, time
from pathlib import Path
from anchorhead.disk.partial import new_file, partial
with partial(Path(sys.argv[1]), new_file), partial(Path(sys.argv[1]), Path.mkdir) as folder:
    (folder / "inside").write_text("half")
    print("ready", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_running_one_writes_is_not(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WRITING, str(tmp_path)], stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
            running = names(tmp_path)
            assert len(running) == 2
            write_atomically(tmp_path / "f", b"")
            assert names(tmp_path) == [*running, "f"]
        finally:
            one.send_signal(signal.SIGKILL)
    (tmp_path / f"{NAME}not-ours").write_text("")
    (tmp_path / f"{NAME}{'0' * 16}").symlink_to("f")
    write_atomically(tmp_path / "f", b"")
    assert names(tmp_path) == [f"{NAME}{'0' * 16}", f"{NAME}not-ours", "f"]


def test_where_there_are_no_locks_only_what_is_old_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("anchorhead.disk.partial.fcntl", None)
    old, young = (tmp_path / f"{NAME}{sign * 16}" for sign in "ab")
    for path in (old, young):
        path.write_bytes(b"")
    os.utime(old, (0, old.stat().st_mtime - OLD_S - 10))
    write_atomically(tmp_path / "f", b"")
    assert names(tmp_path) == [young.name, "f"]


def test_what_others_left_is_not_ours_to_remove(tmp_path, monkeypatch):
    left = tmp_path / f"{NAME}{'a' * 16}"
    left.write_bytes(b"")
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    write_atomically(tmp_path / "f", b"")
    assert left.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("x" * 5000, r"5,000 signs\) cannot be looked up"),
        ("a/" * 2500, "cannot be looked up"),
        ("x" * 300, "cannot be looked up"),
        ("a\0b", "which no name"),
        ("", "is empty"),
        ("\ud800", "not a name"),
        (b"bytes", "a bytes is not a path"),
        (3, "a int is not a path"),
        (None, "a NoneType is not a path"),
        (["f"], "a list is not a path"),
    ],
)
def test_what_no_path_can_be_is_refused(given, said):
    for gate in (path_of, check_writable, lambda path: write_atomically(path, b""), lambda p: file_to_read(p, "it")):
        with pytest.raises(AnchorheadError, match=said):
            gate(given)


def test_only_files_are_read_and_only_up_to_a_size(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: opening it would wait for ever
    with pytest.raises(AnchorheadError, match="is not a file but a pipe: give the path of a table"):
        file_to_read(tmp_path / "pipe", "a table")
    with pytest.raises(AnchorheadError, match="is not a file but a folder"):
        file_to_read(tmp_path, "a table")
    with pytest.raises(AnchorheadError, match="none is not a file: give"):
        file_to_read(tmp_path / "none", "a table")
    zero = device(tmp_path / "zero", 5)
    with pytest.raises(AnchorheadError, match="is not a file but a device"):
        read_whole(zero, "a table", 10)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(AnchorheadError, match=r"1,099,511,627,776 bytes: a table has at most 10"):
        read_whole(tmp_path / "large", "a table", 10)
    (tmp_path / "small").write_bytes(b"0123456789")
    assert read_whole(tmp_path / "small", "a table", 10) == b"0123456789"

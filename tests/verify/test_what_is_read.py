"""A file is read the same from its path and from its bytes; what two readers might take differently is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anchorhead.network.files import content_of
from anchorhead.verify import files, verify
from tests.networks import network

from .files import written

NAME = "head (float32)"


def test_bytes_and_path_give_the_same_report(tmp_path: Path) -> None:
    one, other = verify(written(NAME, tmp_path)), verify(content_of(network(NAME)))
    assert one.verified
    assert (one.why, one.steps, one.found) == (other.why, other.steps, other.found)


def test_what_is_said_twice_is_refused() -> None:
    content = content_of(network(NAME))
    length = int.from_bytes(content[:8], "little")
    header, rest = content[8 : 8 + length].decode(), content[8 + length :]
    assert verify(content).verified
    twice = '{"__metadata__": {"anchorhead": "{}"}, ' + header.strip().removeprefix("{")
    outer = len(twice.encode()).to_bytes(8, "little") + twice.encode() + rest
    assert "says something twice" in verify(outer).why
    data = json.loads(header)
    data["__metadata__"]["anchorhead"] = '{"format": 3, ' + data["__metadata__"]["anchorhead"].removeprefix("{")
    inner = json.dumps(data)
    found = verify(len(inner.encode()).to_bytes(8, "little") + inner.encode() + rest)
    assert "says something twice" in found.why


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 8, b"\x02" + bytes(7) + b"[]", b"\x02" + bytes(7) + b"{}"])
def test_what_is_no_file_of_ours_is_said_to_be_none(content: bytes) -> None:
    found = verify(content)
    assert not found.verified
    assert found.why.startswith("what was given ")


def test_sizes_are_looked_at_before_arrays_are_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = written(NAME, tmp_path)
    for limit, words in (("MAX_NUMBERS", "numbers"), ("MAX_HEADER", "a header of"), ("MAX_BYTES", "bytes")):
        with monkeypatch.context() as patched:
            patched.setattr(files, limit, 10)
            patched.setattr(files, "load", None)
            found = verify(path)
            assert not found.verified
            assert words in found.why
            assert "at most 10 are read" in found.why

"""coqc at work on a file, within limits; what is known from an earlier run; and what theorems rest on."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from anchorhead.disk import read_whole, write_atomically
from anchorhead.errors import AnchorheadError

SECONDS, BYTES = 60, 4 * 2**30
CACHES = (".lia.cache", ".nra.cache")
"""In which Coq finds what lia and nra found before: without them a file takes what it takes for the first time."""
LARGEST_KEPT = 100_000_000
PACKAGES = {
    "Interval": "libcoq-interval",
    "Coquelicot": "libcoq-coquelicot",
    "Flocq": "libcoq-flocq",
    "mathcomp": "libcoq-mathcomp-ssreflect",
}
"""Libraries of Coq, and the Debian packages that they come in."""
QUIET = "-ambiguous-paths,-notation-overridden"
"""Warnings about the libraries, not about our files."""

AXIOMS = frozenset(
    (
        "ClassicalDedekindReals.sig_not_dec",
        "ClassicalDedekindReals.sig_forall_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    )
)
"""On which Coq's real numbers rest."""
MACHINE_INTEGERS = ("PrimInt63.", "Uint63.")
"""Coq's 63-bit integers, which are those of the processor: primitives, and axioms that say what they compute."""


def missing() -> list[str]:
    """The Debian packages that are not there."""
    if shutil.which("coqc") is None:
        return ["coq", *PACKAGES.values()]
    where = subprocess.run(["coqc", "-where"], capture_output=True, text=True, check=True).stdout.strip()
    return [package for name, package in PACKAGES.items() if not (Path(where) / "user-contrib" / name).is_dir()]


def compiled(path: Path, *options: str, seconds: int = SECONDS) -> tuple[bool, float, int, str]:
    """Whether coqc accepts a file; its CPU seconds, megabytes, and what it says."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    for earlier in CACHES:
        path.with_name(earlier).unlink(missing_ok=True)
    said = path.with_suffix(".log")
    with said.open("w") as log:
        child = subprocess.Popen(
            ["coqc", "-q", "-w", QUIET, *options, path.name], cwd=path.parent, stdout=log, stderr=log, preexec_fn=limit
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode == 0, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024, said.read_text()


class Kept:
    """What earlier runs found out, by what was asked, in a file: a run that was interrupted goes on where it was. A
    question is a whole text and the version of the program that reads it, so that what has changed is asked anew."""

    def __init__(self, path: Path) -> None:
        self.path, self.answers = path, _read(path)

    def answer(self, question: str, find: Callable[[], Any], still: Callable[[Any], bool] = lambda _: True) -> Any:
        """What is known from before, if it still holds; else what is found now, which is kept."""
        digest = _digest(question.encode())
        if digest not in self.answers or not still(self.answers[digest]):
            found = find()
            self.answers = {**_read(self.path), digest: found}  # another run may have written to it meanwhile
            write_atomically(self.path, json.dumps(self.answers).encode())
        return self.answers[digest]


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(read_whole(path, "what is kept of Coq's answers", LARGEST_KEPT)))
    except (AnchorheadError, ValueError, TypeError):
        return {}  # not there, or damaged: nothing is lost but time


def compiled_once(path: Path, text: str, kept: Kept) -> tuple[bool, float, int, str]:
    """compiled, of a text that goes to path; what is known of it counts if what coqc wrote is there, too."""
    path.write_text(text)
    object_file = path.with_suffix(".vo")

    def outcome() -> list[Any]:
        object_file.unlink(missing_ok=True)
        return [*compiled(path), _digest(object_file.read_bytes()) if object_file.exists() else ""]

    def still(known: list[Any]) -> bool:
        return not known[0] or (object_file.exists() and _digest(object_file.read_bytes()) == known[-1])

    accepted, seconds, megabytes, said, _ = kept.answer("\n".join((_coq(), path.name, text)), outcome, still)
    return accepted, seconds, megabytes, said


@cache
def _coq() -> str:
    """Its version, and the limits that it works within."""
    version = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=True).stdout
    return f"{version.strip()}, {SECONDS} s, {BYTES} bytes"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def assumptions(theorems: list[str], folder: Path, *options: str) -> set[str]:
    """On what theorems (Module.name) of compiled files rest, by name."""
    path = folder / "all_theorems.v"
    modules = " ".join(dict.fromkeys(theorem.rpartition(".")[0] for theorem in theorems))
    together = ", ".join(f"@{theorem}" for theorem in theorems)
    path.write_text(f"Require {modules}.\nDefinition together := ({together}).\nPrint Assumptions together.\n")
    accepted, _, _, said = compiled(path, *options)
    if not accepted:
        raise SystemExit(said[-600:])
    return {line.split(" :")[0].strip() for line in said.splitlines() if re.match(r"\w[\w.]*( :|$)", line)} - {
        "Axioms:"
    }


def strange(names: set[str]) -> set[str]:
    """What is neither an axiom of the real numbers nor a machine integer."""
    return {name for name in names if name not in AXIOMS and not name.startswith(MACHINE_INTEGERS)}

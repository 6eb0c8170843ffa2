"""What the other tests claim of the verifier, each by a name: whether it holds. A broken verifier makes one fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from anchorhead.verify import verify

from .. import test_what_follows
from ..direct import test_direct_lemmas, test_forged_direct, test_pieces, test_two_keys, test_weighed
from ..files import report
from ..folders import test_folder_layer, test_written_out
from ..grids import test_cover, test_grid, test_grid_uniform
from ..heads import adversary, test_claims, test_gate, test_kernel, test_lemmas_hold, test_self_key, test_terms_count
from ..layers import test_context, test_groups, test_readings, test_uncounted_terms
from ..programs import test_equality, test_forged_conditions, test_forged_programs, test_numbers
from ..tampering import test_made_by_hand
from ..tampering.structural_changes import HARMLESS
from ..tampering.test_tampered_files_are_refused import REFUSED
from ..tampering.test_tampering import NAMED

ROOMS = (
    test_claims, test_context, test_cover, test_direct_lemmas, test_equality, test_folder_layer,
    test_forged_conditions, test_forged_direct, test_forged_programs, test_gate, test_grid, test_grid_uniform,
    test_groups, test_kernel, test_lemmas_hold, test_made_by_hand, test_numbers, test_pieces, test_readings,
    test_self_key, test_terms_count, test_two_keys, test_uncounted_terms, test_weighed, test_what_follows,
    test_written_out,
)  # fmt: skip


def holds(claim: str, folder: Path) -> bool:
    """Whether a claim holds: "refused: WHAT", "accepted: NAME", "head: NAME", or "FILE: TEST (ARGUMENTS)"."""
    try:
        return _true(claim, folder)
    except (Exception, pytest.fail.Exception):
        return False


def _true(claim: str, folder: Path) -> bool:
    kind, _, what = claim.partition(": ")
    match kind:
        case "refused":
            name, change = REFUSED[what]
            return not report(name, folder, change).verified
        case "accepted":
            return report(what, folder).verified
        case "harmless":
            name, change = HARMLESS[what]
            return report(name, folder, change).verified
        case "named":
            change, name = next(one for one in NAMED if f"{one[0].__name__}, {one[1]}" == what)
            change(name).save(folder / "named.safetensors")
            return not verify(folder / "named.safetensors").verified
        case "head":
            return adversary.head_holds(what)
        case "dot products":
            return all(adversary.dot_holds(what, seed) for seed in range(40))
        case "functions":
            return adversary.behaviour_holds(what, -1.3, 1.1)
        case "constant softmax":
            return adversary.constant_softmax_holds(int(what))
    TESTS[claim]()
    return True


def _tests() -> dict[str, Callable[[], None]]:
    """Every test of the rooms that is no fixture's, with each of its arguments."""
    found: dict[str, Callable[[], None]] = {}
    for room in ROOMS:
        short = room.__name__.rpartition(".")[2].removeprefix("test_")
        for name, test in vars(room).items():
            marks = getattr(test, "pytestmark", [])
            if not name.startswith("test_") or any(mark.name == "slow" for mark in marks):
                continue
            choices: list[dict[str, Any]] = [{}]
            for mark in marks:
                if mark.name == "parametrize":
                    names = mark.args[0] if isinstance(mark.args[0], tuple) else (mark.args[0],)
                    rows = [row if isinstance(mark.args[0], tuple) else (row,) for row in mark.args[1]]
                    choices = [{**one, **dict(zip(names, row, strict=True))} for row in rows for one in choices]
            for arguments in choices:
                said = f" ({', '.join(map(str, arguments.values()))})" if arguments else ""
                found[f"{short}: {name.removeprefix('test_').replace('_', ' ')}{said}"] = partial(test, **arguments)
    return found


TESTS = _tests()

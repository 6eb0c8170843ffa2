"""What derivations name: every neuron once, by the entry that it is, and tokens that read alike in one row."""

from __future__ import annotations

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.lemmas.record import Notes, Record
from anchorhead.network.claim_table import ClaimTable
from tests.networks import network


def noted(*tokens: int, of: int) -> ClaimTable:
    """What is named where so many tokens ask, and these read the same."""
    record = Record(tokens=of)
    for token in tokens:
        record.add(token, Notes.of_unit((2, 0, 5), (1.0, 0.0, 2.0, -1.0, 0.0), [(3, 0), (1, 0)]))
    record.passed(2)
    return record.table()


def test_what_all_tokens_read_alike_is_one_row() -> None:
    table = noted(0, 1, 2, of=3)
    assert table.units.tolist() == [[0, -1, 2, 0, 5]]
    assert table.softmaxes.tolist() == [[0, 3, 0, -1], [0, 1, 0, -1]]
    assert noted(0, 1, of=3).units[:, 1].tolist() == [0, 1]
    assert noted(0, of=1).units[:, 1].tolist() == [0]
    assert not noted(of=2).units.size


@pytest.mark.parametrize("form", ["two-layer", "attention-softmax"])
@pytest.mark.parametrize("layout", ["sequence", "transformer"])
def test_every_neuron_is_named_once(form: str, layout: str) -> None:
    net = network(f"{form}, {layout} (float64)")
    assert net.derivation is not None
    assert net.derivation.claims is not None
    units, softmaxes = net.derivation.claims.units, net.derivation.claims.softmaxes
    neurons, rows = len(net.program.steps[2].which), units.tolist()
    readers = {0} if layout == "sequence" else set(units[:, 1].tolist())  # in a sequence tokens are neurons
    for reader in readers:
        own = sorted(row[4] for row in rows if layout == "sequence" or row[1] == reader)
        assert own == list(range(neurons))
    assert set(units[:, 2].tolist()) == {2}
    assert set(softmaxes[:, 0].tolist()) == set(range(len(units)))


def rows(net) -> np.ndarray:
    return net.derivation.claims.values.astype(float)


def test_values_of_groups_are_those_of_their_shapes() -> None:
    net = network("attention-softmax, one token (float32)")
    assert net.derivation is not None
    assert net.derivation.claims is not None
    softmax, after = net.layers[-2:]
    for end, size in zip(np.cumsum(softmax.groups), softmax.groups, strict=True):
        taken = after.weight[:, end - size : end].astype(float)
        off = [taken - np.outer(taken @ row[:size] / (row[:size] @ row[:size]), row[:size]) for row in rows(net)]
        assert min(np.abs(one).max() for one in off) <= 1e-6 * np.abs(taken).max()


def test_the_table_of_a_file_is_that_of_its_network(tmp_path) -> None:
    net = network("deep, transformer (float32)")
    net.save(tmp_path / "net.safetensors")
    again = ah.load(tmp_path / "net.safetensors")
    for name, array in net.derivation.claims.arrays.items():
        np.testing.assert_array_equal(again.derivation.claims.arrays[name], array)


@pytest.mark.parametrize("name", ["units", "numbers", "softmaxes", "values"])
def test_tables_that_do_not_fit_are_refused(name: str) -> None:
    arrays = {one: np.zeros((0, 5 if one != "softmaxes" else 4)) for one in ("units", "numbers", "softmaxes", "values")}
    with pytest.raises(ah.AnchorheadError, match="table of claims"):
        ClaimTable(**arrays | {name: np.full((1, 5), np.nan)})

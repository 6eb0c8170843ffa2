"""Every construction has a row in the table, rows are small, and their tags are true."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from anchorhead.constructions.build_request import FORMS, LAYOUTS
from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax
from tests.networks import DTYPES, KINDS, ROWS, TAGS, inputs, names, network, row_of, tags
from tests.networks.row import row

MAX_PARAMETERS = 6000
"""Suites may do to each row what takes a second for a network of a user's size."""


def every_layer(layers: tuple[Any, ...]) -> Iterator[Any]:
    """All layers, also those inside of others."""
    for layer in layers:
        yield layer
        yield from every_layer(layer.layers) if isinstance(layer, Repeat) else ()


def facts(net: Network) -> set[str]:
    """The kind, the dtype and those tags that can be read off a network."""
    layers = list(every_layer(net.layers))
    attentions = [layer for layer in layers if isinstance(layer, Attention)]
    found = {
        "variables": bool(net.variables),
        "tokens": net.embed.tokens != 1,
        "constant": not np.ptp(Network.__call__(net, inputs(net, 20), outside="ignore"), axis=0).any(),
        "any count": net.embed.tokens is None,
        "causal": any(one.mask == "causal" for one in attentions),
        "grid heads": any(len(one.grid or ()) > 1 for one in attentions),
        "across": any(isinstance(one, Linear) and one.across for one in layers),
        "softmax": any(isinstance(one, Softmax) for one in layers),
        "repeat": any(isinstance(one, Repeat) for one in layers),
        net.dtype: True,
        net.construction or "layer": True,
    }
    if net.construction == "descent":
        found[net.derivation.data["layout"]] = net.derivation.data["layout"] != "direct"
    if net.certificate is not None:
        found[net.certificate.kind] = True
    return {tag for tag, true in found.items() if true}


READ = {
    "variables",
    "tokens",
    "any count",
    "constant",
    "causal",
    "grid heads",
    "across",
    "softmax",
    "repeat",
    "proven",
    "measured",
}


@pytest.mark.parametrize("name", names())
def test_rows_are_small_and_their_tags_are_true(name):
    net = network(name)
    assert net.parameters <= MAX_PARAMETERS
    read = {*READ, *KINDS, *DTYPES, *(LAYOUTS if "descent" in tags(name) else ())}
    assert tags(name) & read == facts(net)
    assert (row_of(name).function is not None) == (row_of(name).kind == "opaque several")


def test_every_kind_layer_form_and_layout_has_a_row():
    assert {one.kind for one in ROWS.values()} == {*KINDS}
    assert {tag for one in ROWS.values() for tag in one.tags} == {*TAGS}
    for form, layout, dtype in product(FORMS, LAYOUTS, DTYPES):
        assert names("mlp", form, layout, dtype)
    shown = {type(layer) for name in names("layer") for layer in every_layer(network(name).layers)}
    assert shown == {Embed, Linear, Attention, Softmax, Repeat}


def test_names_are_selected_by_all_tags_wanted_and_none_of_the_others():
    assert names("layer", "causal", "float64", without=("repeat",)) == [
        "attention, causal (float64)",
        "attention, causal, state (float64)",
    ]
    assert {*names("proven")} | {*names(without=("proven",))} == {*names()}
    assert network("head (float32)") is network("head (float32)")


def test_words_that_are_no_tags_are_refused():
    with pytest.raises(ValueError, match="casual"):
        names("casual")
    with pytest.raises(ValueError, match="casual"):
        row("name", "scalar", network, "casual")

"""Any network has a picture as a circuit, which names its layers and heads and shows where attention goes."""

from __future__ import annotations

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Network
from anchorhead.network.describe import labels
from anchorhead.plotting.circuit_lanes import grouped, shares
from anchorhead.plotting.circuit_view import MAX_HEADS, MAX_LAYERS, Circuit
from benchmarks.figures_cases import mlp
from plotting.pictures import drawn, words
from tests.networks import inputs, names, network


def said(figure) -> str:
    """All words of a figure, in order, without the ends of lines and with plain signs."""
    texts = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    return texts.replace("−", "-").replace(" • ", " ")


@pytest.mark.parametrize("name", names("float64"))
def test_every_network_of_the_table_shows_its_layers_heads_and_attention(name):
    net = network(name)
    circuit = said(ah.plot(net, kind="circuit", x=inputs(net, 1)[0]))
    for layer in labels(net):
        assert layer["layer"] in circuit
        for label in layer.get("heads", ()):
            assert label in circuit, label
    repeats = [layer["times"] for layer in labels(net) if "times" in layer]
    assert all(f"{times:,} times" in circuit for times in repeats)


@pytest.mark.parametrize("name", ["two-layer, transformer", "learner, logistic", "repeat, nested"])
def test_no_words_of_a_circuit_stand_on_others_in_a_column(name):
    net = network(f"{name} (float64)")
    figure = drawn(ah.plot(net, size="column", x=inputs(net, 1)[0]))
    found = words(figure)
    for number, (text, box) in enumerate(found):
        assert box.x1 <= figure.bbox.width + 1, f"{text!r} is cut"
        assert box.y0 >= -1, f"{text!r} is cut"
        for others, other in found[:number]:
            wide = min(box.x1, other.x1) - max(box.x0, other.x0)
            high = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert min(wide, high) <= 3, f"{text!r} stands on {others!r}"


@pytest.mark.parametrize("name", ["learner, direct", "many learners", "attention"])
def test_networks_of_which_no_function_can_be_drawn_are_drawn_as_circuits(name):
    assert "Attention" in said(ah.plot(network(f"{name} (float64)")))


def test_a_head_has_a_circuit():
    assert "relu" in said(ah.plot(ah.head("relu", (-1, 1), anchors=3), kind="circuit"))


def test_labels_that_files_bring_are_no_orders():
    net = network("attention (float64)")
    odd = net.layers[1]
    words_of = {**vars(odd), "labels": ("\x1b[31m $\\frac$", "<b>")}
    figure = drawn(ah.plot(Network((net.layers[0], Attention(**words_of))), size="column"))
    assert "\x1b" not in said(figure)
    assert "$\\frac$" in said(figure)


def test_many_heads_are_counted_and_many_layers_left_out():
    wide = ah.convert(mlp(3, 40, 2), (-1, 1), 1e-2)
    stage = Circuit.of(wide).stages[-2]
    assert len(stage.heads) < MAX_HEADS
    assert "40 heads such as: relu(s) at s = " in stage.heads[0].label
    same = np.eye(2)[None]
    deep = Network([Embed(np.eye(2), np.zeros(2), tokens=2), *[Attention(same, same, same, same)] * 60])
    circuit = Circuit.of(deep)
    assert len(circuit.stages) == MAX_LAYERS
    assert f"{61 - MAX_LAYERS} layers before the last four left out" in said(ah.plot(deep))


def test_lines_are_as_dark_as_the_attention_that_the_network_gives():
    net = network("truncated linear, many heads (float64)")
    x = inputs(net, 1)[0]
    (weights,) = net.attention(x)
    stage = Circuit.of(net, x).stages[1]
    found = shares(stage, grouped("input", 3, 9), 3)
    assert {pair: weights[:, pair[0], pair[1]].max() for pair in found} == found
    assert len(found) == 9


def test_tokens_of_one_lane_are_seen_together():
    net = network("grid (float64)")
    x = inputs(net, 1)[0]
    stage = Circuit.of(net, x).stages[1]
    lanes = [*grouped("input", 1, 9), *grouped("register", 12, 4)]
    assert [(lane.first, lane.last) for lane in lanes] == [(0, 0), (0, 0), (1, 1), (2, 10), (11, 11)]
    found = shares(stage, lanes, 1)
    assert sum(found.values()) == pytest.approx(1)
    assert found[0, 3] == pytest.approx(net.attention(x)[0][0, 0, 2:11].sum())


def test_without_an_input_lines_say_who_may_see_whom():
    net = network("attention, causal (float64)")
    stage = Circuit.of(net).stages[1]
    lanes = [*grouped("input", 3, 9), *grouped("register", 2, 9), *grouped("state", 1, 9)]
    seen = {pair for pair, weight in shares(stage, lanes, 3).items() if weight}
    assert seen == {(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)} | {(i, j) for i in range(3) for j in (3, 4)}


def test_the_last_repetition_is_shown():
    net = network("learner, direct (float64)")
    x = inputs(net, 1)[0]
    assert np.array_equal(Circuit.of(net, x).stages[1].patterns, net.attention(x)[-1])


@pytest.mark.parametrize(
    ("words_given", "message"),
    [
        ({"x": np.zeros((2, 1, 1))}, "holds 2 inputs"),
        ({"x": np.zeros((3, 5))}, "shape"),
        ({"kind": "graph"}, "kind='graph'"),
        ({"kind": "function", "x": np.zeros((1, 1))}, 'kind="circuit"'),
    ],
)
def test_what_is_no_circuit_is_refused(words_given, message):
    with pytest.raises(AnchorheadError, match=message):
        ah.plot(network("head (float64)"), **words_given)

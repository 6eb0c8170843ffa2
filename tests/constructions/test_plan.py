"""Plans: what they say is what is built; nothing is built, and it takes seconds."""

from __future__ import annotations

import csv
import io
import sys
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.constructions.build_request import FORMS, LAYOUTS, BuildRequest
from anchorhead.constructions.layouts import sequence_layout
from anchorhead.constructions.layouts.draft import counted
from anchorhead.constructions.passes import run
from anchorhead.constructions.passes.estimated_bound import estimated_bound
from anchorhead.constructions.passes.layout import built, drafted
from anchorhead.constructions.passes.run import Tries, proven_mlp
from anchorhead.constructions.planning.plan import Plan
from anchorhead.constructions.planning.plan_networks import _sizes, plan_forms
from anchorhead.constructions.planning.uniform_estimates import LATTICE, uniform_estimate
from anchorhead.constructions.single.activation_heads import ActivationHeads
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError, NotReached
from anchorhead.language.expressions.parser import parse
from anchorhead.language.targets.mlp import Affine, Hidden, Mlp
from anchorhead.lemmas.prove import prove_mlp
from anchorhead.network import Attention, Linear, Softmax
from anchorhead.proof.heads.uniform_activation_head import prove_uniform, ramp_of

ACTIVATIONS = ("relu(x)", "gelu(x)", "tanh(x)", "abs(x)")
UNIT = Box.of((0, 1))


def network(seed: int, hidden: int, tokens: int | None, activations=ACTIVATIONS, causal: bool = False) -> Mlp:
    """A random target; with causal, no weight reaches a later token (each hidden size is then a multiple of it)."""
    rng = np.random.default_rng(seed)
    n = tokens or 1
    sizes = [n * int(rng.integers(1, 3)) for _ in range(hidden + 2)]
    maps = []
    for before, after in pairwise(sizes):
        weight = rng.normal(size=(after, before)) / np.sqrt(before)
        if causal:
            weight *= np.arange(before) // (before // n) <= (np.arange(after) // (after // n))[:, None]
        maps.append(Affine(weight, rng.normal(size=after) / 4))
    layers = []
    for affine in maps[:-1]:
        count = int(rng.integers(1, 3))
        chosen = tuple(parse(str(name)) for name in rng.choice(activations, min(count, len(activations)), False))
        layers.append(Hidden(affine, chosen, rng.integers(0, len(chosen), affine.outputs)))
    return Mlp(tuple(layers), maps[-1], tokens)


def plan_network(target: Mlp, on: Box, withins: list[float], request: BuildRequest) -> Plan:
    return plan_forms(str(target), on, lambda _: (target,), withins, request)


def ways(target: Mlp, dtype: str, placement: str = "solved", causal: bool = False) -> list[BuildRequest]:
    forms = FORMS if len(target.hidden) == 1 else ("deep",)
    layouts = ("transformer",) if causal or (not target.hidden and target.tokens) else LAYOUTS
    if not target.hidden and (target.tokens or 1) > 1:
        layouts = ("sequence",)
    return [BuildRequest(1.0, dtype, form, layout, placement, causal) for form in forms for layout in layouts]


CASES = [
    (seed, hidden, tokens, dtype, causal)
    for seed, (hidden, tokens, dtype, causal) in enumerate(
        [
            (1, None, "float64", False),
            (1, 1, "float32", False),
            (1, 3, "float32", False),
            (1, 2, "float64", False),
            (1, 3, "float64", True),
            (2, None, "float64", False),
            (2, 2, "float32", False),
            (3, 2, "float64", True),
            (0, 2, "float64", False),
            (0, None, "float32", False),
        ]
    )
]


@pytest.mark.parametrize(("seed", "hidden", "tokens", "dtype", "causal"), CASES)
def test_what_is_counted_and_estimated_is_what_is_built_and_proven(seed, hidden, tokens, dtype, causal):
    target = network(seed, hidden, tokens, causal=causal)
    tries = Tries(target, UNIT, 1e-2, ActivationHeads(dtype))
    for laid in (tries.first, tries.laid(np.full(target.outputs, 1e-4))):
        for options in ways(target, dtype, causal=causal):
            drafts = drafted(laid, target, options)
            made = built(drafts, target, options)
            sizes = counted(drafts, tokens or 1)
            assert sizes.parameters == made.parameters
            assert sizes.layers == len(made.layers)
            assert sizes.heads == heads(made)
            assert sizes.keys == keys(made)
            assert sizes.multiply_adds == multiply_adds(made)
            assert _sizes(laid, drafts, tokens or 1)["largest_logit"] >= largest_logit(made, target)
            proven = prove_mlp(made, target, laid.layers, laid.readout, UNIT).total
            assert abs(estimated_bound(laid, tries.sources, options).total - proven) <= 0.1 * proven + 1e-13


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logits_that_are_mixed_at_once_are_counted_too(dtype, monkeypatch):
    monkeypatch.setattr(sequence_layout, "MAX_DEALT", 0)
    target = network(2, 1, 3, ("relu(x)",))
    tries = Tries(target, Box.of((-1, 2)), 1e-2, ActivationHeads(dtype))
    laid = tries.first
    options = BuildRequest(1e-2, dtype, "attention-softmax", "sequence")
    drafts = drafted(laid, target, options)
    made = built(drafts, target, options)
    sizes = counted(drafts, 3)
    assert (sizes.parameters, sizes.multiply_adds, sizes.heads) == (made.parameters, multiply_adds(made), heads(made))
    proven = prove_mlp(made, target, laid.layers, laid.readout, Box.of((-1, 2))).total
    assert 0.5 * proven <= estimated_bound(laid, tries.sources, options).total <= 2 * proven


def test_what_is_built_is_what_was_planned():
    for seed, dtype, within in ((0, "float32", 3e-3), (3, "float64", 1e-5), (5, "float32", 2e-4)):
        target = network(seed, 1, 2)
        for row in plan_network(target, UNIT, [within], BuildRequest(dtype=dtype)).rows:
            if row.placement == "solved":
                assert row.reachable
                made = proven_mlp(target, UNIT, BuildRequest(within, dtype, row.form, row.layout, "solved")).network
                exceeds_nothing(row, made)
                assert (row.parameters, row.layers, row.heads) == (made.parameters, len(made.layers), heads(made))
                assert row.bound <= 1.25 * made.certificate.bound  # all of it rounding


@pytest.mark.parametrize(("activation", "dtype"), [("relu(x)", "float64"), ("hardtanh(x)", "float32")])
def test_building_never_exceeds_a_plan_with_the_papers_anchors(activation, dtype):
    target = network(11, 1, 2, (activation,))
    for row in plan_network(target, UNIT, [0.05], BuildRequest(dtype=dtype)).rows:
        if row.placement == "uniform":
            assert row.reachable
            assert row.beta > 1
            made = proven_mlp(target, UNIT, BuildRequest(0.05, dtype, row.form, row.layout, "uniform")).network
            exceeds_nothing(row, made)
            assert row.parameters == made.parameters


def test_anchors_at_values_of_other_activations_are_planned_by_their_slope():
    target = network(12, 1, None, ("tanh(x)",))
    for row in plan_network(target, UNIT, [0.3], BuildRequest(dtype="float64")).rows:
        if (row.form, row.placement) == ("deep", "uniform"):
            made = proven_mlp(target, UNIT, BuildRequest(0.3, "float64", "deep", row.layout, "uniform")).network
            exceeds_nothing(row, made)


def test_nothing_is_built_for_the_papers_task(monkeypatch):
    def never(*_, **__):
        raise AssertionError("a plan has built a network")

    monkeypatch.setattr(run, "built", never)
    monkeypatch.setattr("anchorhead.network.network.Network.__init__", never)
    rng = np.random.default_rng(0)
    hidden = Hidden.of(rng.normal(size=(10, 100)), rng.normal(size=10), parse("relu(x)"))
    target = Mlp((hidden,), Affine(rng.normal(size=(100, 10)), rng.normal(size=100)), 20)
    withins = [10.0**-k for k in range(1, 7)]
    found = plan_network(target, UNIT, withins, BuildRequest())
    ours, theirs = ([row for row in found.rows if row.placement == name] for name in ("solved", "uniform"))
    assert len(ours) == len(theirs) == 36
    assert all(row.reachable and row.anchors <= 4 and row.bound <= row.within for row in ours)
    anchors = [row.anchors for row in theirs if (row.form, row.layout) == ("deep", "sequence")]
    assert all(9.9 < two / one < 10.1 for one, two in pairwise(anchors))
    assert anchors[0] > 5_000
    assert [row.reachable for row in theirs[::6]] == [True, False, False, False, False, False]
    assert all("not built" in row.note for row in theirs if not row.reachable)


def test_what_is_out_of_reach_says_so():
    target = network(1, 1, 2, ("relu(x)",))
    row = plan_network(target, UNIT, [3e-8], BuildRequest(dtype="float32")).rows[0]
    assert not row.reachable
    assert row.parameters is None
    assert row.bound > 3e-8
    assert "float32" in row.note
    with pytest.raises(NotReached, match=r"out of reach .* no error that these heads have by themselves"):
        proven_mlp(target, UNIT, BuildRequest(3e-8, "float32", row.form, row.layout, "solved"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("interval", [(-1.0, 1.0), (-7.0, 2.0), (-3.0, 30.0)])
def test_sketches_are_no_better_than_proofs(dtype, interval):
    relu = parse("relu(x)")
    ramp = ramp_of(relu, *interval)
    for anchors in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 40, 300):
        estimate = uniform_estimate(relu, *interval, (ramp[1] - ramp[0]) / anchors * (1 + 1e-9), dtype)
        proven = prove_uniform(relu, interval, ramp, anchors, dtype)
        assert estimate.anchors == anchors
        assert (estimate.in_scale, estimate.out_shift) == (proven.in_scale, proven.out_shift)
        assert proven.exact <= LATTICE * proven.in_scale + 1e-13 <= estimate.exact + 1e-13
        assert proven.rounding <= estimate.rounding
        assert estimate.largest_logit(40.0) == proven.largest_logit(40.0)


@pytest.mark.parametrize(("dtype", "anchors"), [("float32", 1236), ("float32", 2473), ("float64", 20_001)])
def test_sketches_know_what_is_refused(dtype, anchors):
    for count in (anchors - 1, anchors):
        estimate = uniform_estimate(parse("relu(x)"), -1.0, 1.0, 1 / count * (1 + 1e-9), dtype)
        assert estimate.anchors == count
        assert bool(estimate.refused) == (count == anchors or (dtype, count) == ("float32", 2472))


def test_any_error_and_any_box_can_be_planned_for():
    target = network(1, 1, 2)
    assert [
        row.reachable for row in plan_network(target, UNIT, [1e-2, 1e-20], BuildRequest(dtype="float32")).rows[12:]
    ] == [False] * 12
    assert all(row.reachable for row in plan_network(target, UNIT, [1e5], BuildRequest(dtype="float32")).rows)
    assert all(
        row.reachable for row in plan_network(target, Box.of((0.5, 0.5)), [0.1], BuildRequest(dtype="float64")).rows
    )


def test_tables_hold_every_row():
    found = ah.plan(network(0, 1, 2, ("relu(x)",)), (0, 1), [1e-2, 1e-9], dtype="float32")
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [int(row["parameters"] or 0) for row in rows] == [row.parameters or 0 for row in found.rows]
    assert [float(row["bound"]) for row in rows] == [row.bound for row in found.rows]
    latex = found.to_latex()
    assert latex.startswith("\\begin{tabular}{lll")
    assert latex.endswith("\\end{tabular}\n")
    body = [line for line in latex.splitlines() if line.endswith(r"\\")]
    assert sum(line.count("&") == 10 for line in body) == 1 + len(found.rows)
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith(FORMS) for line in lines) == len(found.rows)


def test_the_room_of_converters_does_not_hide_convert():
    import_module("anchorhead.convert.plan")
    ah.convert = sys.modules["anchorhead.convert"]  # as an import of the room does
    assert ah.convert is sys.modules["anchorhead.convert.convert"].convert


def test_models_are_read_as_convert_reads_them():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.GELU(), torch.nn.Linear(3, 4))
    found = ah.plan(model, on=(0, 1), within=[1e-3, 1e-2], tokens=2)
    assert found.dtype == "float32"
    assert [row.within for row in found.rows] == [1e-2] * 12 + [1e-3] * 12
    assert {row.layout for row in ah.plan(network(4, 1, 3, causal=True), (0, 1), 0.1, causal=True).rows} == {
        "transformer"
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"within": None}, "within is missing"),
        ({"within": [1e-2, -1]}, "a number above 0"),
        ({"within": "small"}, "a number above 0"),
        ({"within": []}, "1 to 1,000"),
        ({"within": [0.1] * 1001}, "1 to 1,000"),
        ({"within": 1e-21}, "at least 1e-20"),
        ({"on": None}, "on is missing"),
        ({"causal": True}, "without tokens"),
        ({"model": object()}, "cannot be converted"),
        ({"form": "two-layer"}, "and the network has 0"),
        ({"layout": "direct"}, "'transformer', 'sequence'"),
        ({"dtype": "int8"}, "int8"),
    ],
)
def test_refusals_say_what_is_allowed(change, message):
    given = {"model": network(0, 1, None), "on": (0, 1), "within": 0.1} | change
    with pytest.raises(AnchorheadError, match=message):
        ah.plan(given.pop("model"), **given)


def exceeds_nothing(row, made) -> None:
    assert made.parameters <= row.parameters
    assert len(made.layers) <= row.layers
    assert heads(made) <= row.heads
    assert multiply_adds(made) <= row.multiply_adds
    assert made.certificate.bound <= 1.1 * row.bound + 1e-13


def heads(made) -> int:
    """Heads of attention layers and groups of a softmax."""
    attention = sum(layer.heads for layer in made.layers if isinstance(layer, Attention))
    return attention + sum(len(layer.groups) for layer in made.layers if isinstance(layer, Softmax))


def keys(made) -> int:
    """Over how many keys the longest softmax runs."""
    before = zip(made.streams, made.layers[1:], strict=False)
    seen = [stream.tokens for stream, layer in before if isinstance(layer, Attention)]
    return max([*seen, *(max(layer.groups) for layer in made.layers if isinstance(layer, Softmax))], default=0)


def multiply_adds(made) -> int:
    """Products of one sequence, by the shapes of the stored arrays."""
    embed = made.embed
    tokens, registers = embed.tokens, 0 if embed.registers is None else len(embed.registers)
    total = tokens * embed.weight.size
    for layer in made.layers[1:]:
        match layer:
            case Linear() if layer.across:
                total, tokens, registers = total + layer.weight.size, len(layer.weight), 0
            case Linear():
                total += tokens * layer.weight.size
            case Attention():
                skip = 0 if layer.skip is None else layer.skip.weight.size
                total += tokens * (layer.query.size + layer.key.size + layer.value.size + layer.output.size + skip)
                seen, each = tokens + registers, layer.query.shape[1] + layer.value.shape[1]
                total += layer.heads * tokens * seen * each
    return total


def largest_logit(made, target: Mlp) -> float:
    """The largest |logit| that random inputs and corners meet."""
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(0, 1, size=(20, *target.input_shape)), rng.integers(0, 2, (20, *target.input_shape))]
    )
    met, softmax = [0.0], torch.softmax

    def watched(z, *args):
        met.append(float(z[torch.isfinite(z)].abs().max()))
        return softmax(z, *args)

    torch.softmax = watched
    try:
        made(x)
    finally:
        torch.softmax = softmax
    return max(met)

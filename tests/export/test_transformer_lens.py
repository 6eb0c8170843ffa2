"""Bridges of transformer-lens: the same outputs and patterns as the network, with hooks that read and change them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import torch
from hypothesis import HealthCheck, given, settings
from torch import Tensor, nn

import anchorhead as ah
from anchorhead import incontext
from anchorhead.errors import AnchorheadError
from anchorhead.network import Attention, Embed, Linear, Network, Repeat, Softmax
from anchorhead.network.modules.attention import AttentionModule
from anchorhead.network.modules.network import RepeatModule
from benchmarks.figures_cases import mlp
from tests import networks as table
from tests.networks.random_networks import networks

pytest.importorskip("transformer_lens", reason="needs the extra lens", exc_type=ImportError)

from anchorhead.export import lens_layout, lens_model
from anchorhead.export.transformer_lens import LensBridge, to_transformer_lens

NAMES = [*table.names("float64"), *table.names("sample", "float32")]
TOLERANCE = {"float64": 1e-11, "float32": 1e-5}
"""The same sums in another order; of heads with large values that nearly cancel, some digits are gone."""


def _inside(layers: tuple[Any, ...]) -> Iterator[Any]:
    for layer in layers:
        yield from _inside(layer.layers) if isinstance(layer, Repeat) else (layer,)


def _foreign(net: Network) -> str | None:
    """The kind of the first layer that no block of a transformer computes."""
    for layer in _inside(net.layers):
        if isinstance(layer, Softmax) or (isinstance(layer, Linear) and layer.across):
            return type(layer).__name__
    return None


def _grid_of_any_keys(net: Network) -> bool:
    """Whether a grid stands on registers that are not known to carry the keys of their points."""
    return net.program is None and any(
        isinstance(one, Attention) and len(one.grid or ()) > 1 for one in _inside(net.layers)
    )


def _attentions(steps: nn.ModuleList) -> Iterator[AttentionModule]:
    for step in steps:
        if isinstance(step, RepeatModule):
            for _ in range(step.times):
                yield from _attentions(step.steps)
        elif isinstance(step, AttentionModule):
            yield step


def _patterns(bridge: LensBridge, cache: Any, tokens: int) -> list[tuple[Tensor, float]]:
    """What the hooks show of each attention of the network, in the form of net.attention, and the largest score."""
    kinds = [label.split()[0] for label in bridge.token_labels(tokens)]
    blocks = [i for i, label in enumerate(bridge.block_labels) if "Attention" in label]
    found = []
    for block, module in zip(blocks, _attentions(bridge.network.module().steps), strict=True):
        pattern = cache[f"blocks.{block}.attn.hook_pattern"][:, : len(module.query)]
        rows = [i for i, kind in enumerate(kinds) if kind in module.asking]
        columns = [i for i, kind in enumerate(kinds) if kind in module.seen]
        silent = [i for i, kind in enumerate(kinds) if kind not in module.asking]
        assert not pattern[:, :, silent].any()
        scores = cache[f"blocks.{block}.attn.hook_attn_scores"]
        found.append((pattern[:, :, rows][..., columns], float(scores.masked_fill(scores.isinf(), 0).abs().max())))
    return found


def _compare(net: Network, x: Tensor, within: float) -> LensBridge:
    """Builds the bridge and compares outputs and attention weights."""
    bridge = to_transformer_lens(net)
    with torch.no_grad():
        y, cache = bridge.run_with_cache(x)
        expected = net.module()(x).detach()
    assert y.shape == expected.shape
    assert (y - expected).abs().max() <= within * max(1.0, float(expected.abs().max()))
    flat = x if net.token_axis else x.unsqueeze(-2)
    shown = _patterns(bridge, cache, flat.shape[-2])
    for (pattern, score), weights in zip(shown, net.attention(x), strict=True):
        assert pattern.shape == weights.shape
        assert not pattern.numel() or (pattern - weights).abs().max() <= within * max(1.0, score)
    return bridge


@pytest.mark.parametrize("name", NAMES)
def test_every_network_gives_its_outputs_and_patterns_or_is_refused_by_its_layer(name: str) -> None:
    net = table.network(name)
    foreign = _foreign(net)
    if foreign is not None or _grid_of_any_keys(net):
        with pytest.raises(AnchorheadError, match=foreign or "single tokens cannot show"):
            to_transformer_lens(net)
        return
    _compare(net, torch.from_numpy(table.inputs(net, 3)), TOLERANCE[net.dtype])


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(networks().filter(lambda drawn: _foreign(drawn[0]) is None and not _grid_of_any_keys(drawn[0])))
def test_random_networks_with_every_mask_and_skip_give_their_outputs_and_patterns(drawn: tuple[Network, int]) -> None:
    net, tokens = drawn
    x = np.random.default_rng(0).normal(size=(2, tokens, net.embed.inputs))
    _compare(net, torch.from_numpy(x), 1e-9)


@pytest.fixture(scope="module")
def net() -> Network:
    """Two tokens of two inputs, three neurons: a block that gathers, one that computes."""
    return table.network("two-layer, transformer (float64)")


@pytest.fixture(scope="module")
def x(net: Network) -> Tensor:
    return torch.from_numpy(table.inputs(net, 5))


def test_caches_hold_every_hook_of_every_block(net: Network, x: Tensor) -> None:
    bridge = to_transformer_lens(net)
    _, cache = bridge.run_with_cache(x)
    cfg, tokens = bridge.cfg, len(bridge.token_labels())
    shapes = {
        "hook_resid_pre": (tokens, cfg.d_model),
        "attn.hook_q": (tokens, cfg.n_heads, cfg.d_head),
        "attn.hook_k": (tokens, cfg.n_heads, cfg.d_head),
        "attn.hook_v": (tokens, cfg.n_heads, cfg.d_head),
        "attn.hook_attn_scores": (cfg.n_heads, tokens, tokens),
        "attn.hook_pattern": (cfg.n_heads, tokens, tokens),
        "attn.hook_z": (tokens, cfg.n_heads, cfg.d_head),
        "hook_attn_out": (tokens, cfg.d_model),
        "hook_resid_post": (tokens, cfg.d_model),
    }
    assert cfg.n_layers == len(bridge.block_labels) == 2
    for block in range(cfg.n_layers):
        for hook, shape in shapes.items():
            assert cache[f"blocks.{block}.{hook}"].shape == (len(x), *shape), hook
        q, k, seen = (cache[f"blocks.{block}.attn.hook_{name}"] for name in ("q", "k", "attn_scores"))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        assert torch.allclose(seen, torch.where(seen.isinf(), seen, scores), atol=0, rtol=1e-12)
    assert torch.equal(cache["embed.hook_in"], x)
    parts = cache.decompose_resid(return_labels=False)
    assert torch.allclose(parts.sum(0), cache["blocks.1.hook_resid_post"], atol=1e-12)


@pytest.mark.parametrize("hook", ["hook_z", "hook_pattern"])
def test_a_head_ablated_through_a_hook_takes_away_what_it_writes(net: Network, x: Tensor, hook: str) -> None:
    bridge = to_transformer_lens(net)
    head = 1

    def ablate(tensor: Tensor, hook: Any) -> Tensor:
        changed = tensor.clone()
        changed[(slice(None), head) if hook.name.endswith("pattern") else (slice(None), slice(None), head)] = 0
        return changed

    with torch.no_grad():
        y, cache = bridge.run_with_cache(x)
        changed = bridge.run_with_hooks(x, fwd_hooks=[(f"blocks.1.attn.{hook}", ablate)])
        written = cache["blocks.1.attn.hook_z"][:, :2, head] @ bridge.W_O[1, head] @ bridge.W_U
    assert written.abs().max() > 1e-3
    assert torch.allclose(changed, y - written, atol=1e-13)


def test_hooks_on_scores_change_what_is_read(net: Network, x: Tensor) -> None:
    bridge = to_transformer_lens(net)
    with torch.no_grad():
        changed = bridge.run_with_hooks(x, fwd_hooks=[("blocks.1.attn.hook_attn_scores", lambda s, hook: 0 * s)])
        assert (changed - bridge(x)).abs().max() > 1e-3


def test_what_each_head_writes_adds_up(net: Network, x: Tensor) -> None:
    bridge = to_transformer_lens(net)
    with torch.no_grad():
        y = bridge(x)
        bridge.set_use_attn_result(True)
        same, cache = bridge.run_with_cache(x)
    results = cache["blocks.1.attn.hook_result"].sum(-2) + bridge.b_O[1]
    assert torch.allclose(same, y, atol=1e-14)
    assert torch.allclose(results, cache["blocks.1.hook_attn_out"], atol=1e-14)


def test_a_run_stops_at_a_block_and_goes_on_from_a_residual_stream(net: Network, x: Tensor) -> None:
    bridge = to_transformer_lens(net)
    with torch.no_grad():
        y, cache = bridge.run_with_cache(x)
        stream = bridge(x, stop_at_layer=1)
        assert torch.equal(stream, cache["blocks.1.hook_resid_pre"])
        assert torch.equal(bridge(stream, start_at_layer=1), y)
        assert torch.equal(bridge(cache["hook_embed"]), y)


def test_places_of_the_stream_hold_the_features_that_they_are_named_after() -> None:
    model = mlp(2, 4, 3, 2)
    net = ah.convert(model, (-1, 1), 1e-4)
    bridge = to_transformer_lens(net)
    x = torch.from_numpy(table.inputs(net, 6))
    with torch.no_grad():
        _, cache = bridge.run_with_cache(x)
        hidden = model[1](model[0](x))
    assert len(bridge.feature_names) == bridge.cfg.d_model
    assert bridge.output_names == net.streams[-1].features
    stream = cache["blocks.1.hook_resid_post"][:, bridge.token_labels().index("input 0")]
    for neuron in range(4):
        begins = f"block 0: neuron {neuron}"
        (place,) = (i for i, name in enumerate(bridge.feature_names) if name.startswith(begins))
        scale = hidden[:, neuron].max() / stream[:, place].max()
        assert torch.allclose(scale * stream[:, place], hidden[:, neuron], atol=1e-4)
        heads = [wiring for wiring in bridge.head_wiring[0] if f"| writes neuron {neuron}" in wiring]
        assert heads
        assert all("asks with x 0; x 1; one" in wiring for wiring in heads)
    first = net.layers[1]
    assert isinstance(first, Attention)
    assert bridge.head_labels[0][: first.heads] == first.labels
    assert [len(labels) for labels in bridge.head_labels] == [bridge.cfg.n_heads] * bridge.cfg.n_layers


def test_linear_maps_between_attentions_are_heads_that_see_their_own_token() -> None:
    rng = np.random.default_rng(0)
    attention = Attention(*(rng.normal(size=(2, 3, 3)) for _ in range(4)))
    layers = [Embed(rng.normal(size=(3, 2)), rng.normal(size=3), tokens=4), attention]
    net = Network([*layers, Linear(rng.normal(size=(3, 3)), rng.normal(size=3)), attention])
    bridge = _compare(net, torch.from_numpy(rng.normal(size=(2, 4, 2))), 1e-13)
    _, cache = bridge.run_with_cache(torch.from_numpy(rng.normal(size=(2, 4, 2))))
    assert bridge.block_labels == ("layer 2 (Attention)", "layer 3 (Linear)", "layer 4 (Attention)")
    features = "feature 0; feature 1; feature 2"
    assert bridge.head_wiring[1][0] == f"input tokens see themselves | reads {features} | writes {features}"
    assert bridge.head_labels[1][1] == "unused"
    assert torch.equal(cache["blocks.1.attn.hook_pattern"][0, 0], torch.eye(4, dtype=torch.float64))
    assert not cache["blocks.1.attn.hook_pattern"][0, 1].any()


def test_the_wiring_says_who_asks_and_what_is_read() -> None:
    causal = to_transformer_lens(table.network("expressions, causal (float64)"))
    assert all(wiring.startswith("input tokens ask, mask causal | asks with ") for wiring in causal.head_wiring[1])
    (grid,) = to_transformer_lens(table.network("grid (float64)")).head_wiring[0]
    points = table.network("grid (float64)").streams[0].registers
    assert grid.startswith(f"input tokens ask the first {points} registers | ")
    learner = to_transformer_lens(table.network("learner, logistic (float64)"))
    own = learner.head_labels[1].index("a linear map of the token itself")
    assert learner.head_wiring[1][own].endswith("| reads label | writes link")


def test_steps_of_a_learner_add_to_its_state_in_place() -> None:
    net = incontext.gradient_descent("squared", steps=3, rate=0.1, features=2, on=(-1, 1))
    bridge = to_transformer_lens(net)
    rng = np.random.default_rng(0)
    prompt = torch.from_numpy(net.prompt(rng.uniform(-1, 1, size=(5, 2)), rng.uniform(-1, 1, size=5)))
    with torch.no_grad():
        _, cache = bridge.run_with_cache(prompt[None])
    path = net(prompt, path=True)
    state = bridge.token_labels(len(prompt)).index("state 0")
    assert bridge.cfg.d_model == net.streams[0].width
    assert bridge.block_labels == tuple(f"layer 2.1, step {step} (Attention)" for step in (1, 2, 3))
    for step in range(3):
        stream = cache[f"blocks.{step}.hook_resid_post"][0, state]
        assert torch.allclose(stream @ bridge.W_U + bridge.b_U, path[step + 1], atol=1e-12)


def test_gradients_are_those_of_the_module(net: Network, x: Tensor) -> None:
    bridge, module = to_transformer_lens(net), net.module()
    ours, theirs = (x.clone().requires_grad_() for _ in range(2))
    bridge(ours).square().sum().backward()
    module(theirs).square().sum().backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-12)
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in bridge.parameters())


def test_every_weight_is_in_the_state_dict() -> None:
    net = table.network("truncated linear, one head (float64)")
    bridge, other = to_transformer_lens(net), to_transformer_lens(net)
    x = torch.from_numpy(table.inputs(net, 2))
    with torch.no_grad():
        for weight in other.parameters():
            weight.zero_()
        assert not other(x).any()
        other.load_state_dict(bridge.state_dict())
        assert torch.equal(other(x), bridge(x))


def test_old_hook_names_work_and_weights_are_not_processed(net: Network, x: Tensor) -> None:
    bridge = to_transformer_lens(net)
    with torch.no_grad():
        y = bridge(x)
        with pytest.raises(AnchorheadError, match="no_processing=True"):
            bridge.enable_compatibility_mode()
        bridge.enable_compatibility_mode(no_processing=True)
        same, cache = bridge.run_with_cache(x)
    assert torch.equal(same, y)
    assert "blocks.0.hook_resid_post" in cache


def test_inputs_may_have_any_batch_axes_and_no_token_axis_where_the_network_has_none() -> None:
    net = table.network("grid (float64)")
    bridge, x = to_transformer_lens(net), torch.from_numpy(table.inputs(net, 6))
    with torch.no_grad():
        y = bridge(x)
        assert torch.allclose(y, net.module()(x), atol=1e-12)
        assert torch.allclose(bridge(x.reshape(2, 3, -1)), y.reshape(2, 3, -1), atol=1e-14)
        assert torch.allclose(bridge(x[0]), y[0], atol=1e-14)
        assert bridge(torch.zeros(2, 2, dtype=torch.int64)).shape == (2, 1)
        assert bridge(x[:0]).shape == (0, 1)
        assert torch.equal(bridge(bridge(x, stop_at_layer=0)), y)


def test_what_cannot_be_used_is_refused(net: Network, x: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = to_transformer_lens(net)
    with pytest.raises(AnchorheadError, match=r"shape \(5, 2, 3\): needed is \(\.\.\., 2, 2\), or a residual stream"):
        bridge(torch.zeros(5, 2, 3))
    stream = bridge(x, stop_at_layer=0)
    with pytest.raises(AnchorheadError, match=rf"stream of 2 tokens: needed are {stream.shape[1]}"):
        bridge(stream[:, :2])
    learner = incontext.gradient_descent("squared", steps=3, rate=0.1, features=2, on=(-1, 1))
    with pytest.raises(AnchorheadError, match="stream of 0 tokens: needed are 1 registers and states"):
        to_transformer_lens(learner)(torch.zeros(2, 0, learner.streams[0].width, dtype=torch.float64))
    with pytest.raises(AnchorheadError, match="part of the network"):
        bridge(x, attention_mask=torch.ones(5, 2))
    monkeypatch.setattr(lens_model, "MAX_PATTERN", 100)
    with pytest.raises(AnchorheadError, match="fewer at a time"):
        bridge(x)
    monkeypatch.setattr(lens_layout, "MAX_WEIGHTS", 100)
    with pytest.raises(AnchorheadError, match="weights: at most 100"):
        to_transformer_lens(net)
    with pytest.raises(AnchorheadError, match=r"1,000,001 layers.*with_steps"):
        to_transformer_lens(learner.with_steps(1_000_000))


def test_a_file_goes_back_into_a_bridge_and_says_what_its_heads_do(net: Network, x: Tensor, tmp_path: Path) -> None:
    path = ah.export(net, tmp_path / "net.lens.safetensors")
    bridge, other = to_transformer_lens(net), to_transformer_lens(net)
    with safetensors.safe_open(path, "pt") as file, torch.no_grad():
        said = {name: json.loads(text) for name, text in file.metadata().items() if not name.startswith("anchorhead.")}
        for weight in other.parameters():
            weight.zero_()
        other.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118, it is no mapping
        assert torch.equal(other(x), bridge(x))
    for name in ("feature_names", "output_names", "block_labels", "head_labels", "head_wiring"):
        assert said[name] == json.loads(json.dumps(getattr(bridge, name))), name


def test_without_the_extra_the_error_names_it(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformer_lens"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "anchorhead.export.transformer_lens")
    with pytest.raises(AnchorheadError, match=r"anchorhead\[lens\]"):
        ah.export(net, to="transformer-lens")

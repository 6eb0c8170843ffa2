"""Softmax attention over the own key and registers, in torch: every path computes the same head."""

import ast
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from self_key_heads import CLOSED, gate_head, self_key_head
from torch.overrides import TorchFunctionMode, resolve_name

from anchorhead.convert.attention_only import attend
from anchorhead.convert.attention_only.attend import GateAttention, SelfKeyAttention
from anchorhead.convert.attention_only.heads import numbers_of

NAMES = (*CLOSED, "gelu")
ACTIVATIONS = ("gelu", "erf", "relu", "silu", "tanh", "sigmoid", "softplus", "mish", "elu", "hard", "leaky")


def points(dtype: str, count: int = 20_000) -> torch.Tensor:
    """Everywhere: dense where the head turns, sparse as far as the dtype reaches."""
    rng = np.random.default_rng(0)
    far = 25.0 if dtype == "float32" else 250.0
    sizes = np.concatenate([10.0 ** rng.uniform(-far, far, count // 4), 2.0 ** np.arange(-60.0, 60.0)])
    s = np.concatenate([rng.uniform(-30, 30, count), rng.normal(size=count), sizes, -sizes, [0.0, -0.0]])
    return torch.from_numpy(s.astype(dtype))


def paths_of(head) -> list[str]:
    return ["plain", "direct", "auto", *(["powers"] if head.step else [])]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_every_path_is_within_the_proven_rounding_of_the_softmax(name, dtype):
    head, s = self_key_head(name, dtype), points(dtype)
    exact, allowed = head(s.numpy()), (head.rounding + 1e-15) * np.maximum(1, np.abs(s.double().numpy()))
    for path in paths_of(head):
        r = SelfKeyAttention(numbers_of(head), path)(s)
        assert r.dtype == s.dtype
        assert (np.abs(r.double().numpy() - exact) <= allowed).all(), path


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_path_of_a_gate_agrees_with_its_formula(dtype):
    head, s = gate_head(dtype), points(dtype)
    g, u = s[(s.abs() < 50)][:20_000], torch.from_numpy(np.random.default_rng(1).normal(size=20_000).astype(dtype))
    exact = head(g.numpy()) * u.double().numpy()
    unit = np.finfo(dtype).eps
    for path in ("plain", "direct", "auto"):
        r = GateAttention(numbers_of(head), path)(g, u)
        assert (np.abs(r.double().numpy() - exact) <= 200 * unit * np.abs(u.double().numpy())).all(), path


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_the_result_alone(dtype):
    head = self_key_head("gelu", "float32")
    module = SelfKeyAttention(numbers_of(head)).to(dtype)
    s = torch.randn(10_000, dtype=torch.float64).mul(4).to(dtype)
    error = np.abs(module(s).double().numpy() - head(s.double().numpy()))
    size = np.maximum(1, np.abs(s.double().numpy()))
    assert (error <= (torch.finfo(dtype).eps / 2 + head.rounding) * size).all()
    assert module.get_buffer("keys").dtype == torch.float32


def test_no_path_evaluates_an_activation():
    class Names(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = set()

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.seen.add(str(resolve_name(function)))
            return function(*args, **(kwargs or {}))

    for name in NAMES:
        head = self_key_head(name, "float32")
        for path in paths_of(head):
            with Names() as names:
                SelfKeyAttention(numbers_of(head), path)(torch.randn(100))
            assert ("scaled_dot_product_attention" if path == "plain" else "torch.exp") in " ".join(names.seen)
            assert not [op for op in names.seen if any(activation in op for activation in ACTIVATIONS)]


def test_the_plain_path_is_torchs_attention_in_chunks_under_the_cap(monkeypatch):
    taken = []

    def spy(query, key, value, scale):
        taken.append((query.shape, key.shape, value.shape, scale))
        return plain(query, key, value, scale=scale)

    plain = attend.F.scaled_dot_product_attention
    monkeypatch.setattr(attend.F, "scaled_dot_product_attention", spy)
    monkeypatch.setattr(attend, "MEMORY", 1 << 16)
    module = SelfKeyAttention(numbers_of(self_key_head("gelu", "float32")), "plain")
    s = torch.randn(7, 1000)
    whole = module(s)
    assert len(taken) > 10
    for query, key, value, scale in taken:
        assert query == (query[0], 1, 2)
        assert key == (query[0], 6, 2)
        assert value == (query[0], 6, 1)
        assert scale == 1.0
        assert 4 * (query.numel() + key.numel() + value.numel() + 2 * query[0] * 6) <= 1 << 16
    module.path = "auto"
    assert torch.allclose(module(s), whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize("path", ["plain", "direct", "powers"])
def test_numbers_survive_json_and_weights_the_state_dict(path):
    numbers = numbers_of(self_key_head("gelu", "float32"))
    s = torch.randn(1000)
    module = SelfKeyAttention(json.loads(json.dumps(numbers)), path)
    assert torch.equal(module(s), SelfKeyAttention(numbers, path)(s))
    changed = {**numbers, "values": [2 * v for v in numbers["values"]], "own": {**numbers["own"], "value": 2.0}}
    quotient = numbers["powers"]
    changed["powers"] = {**quotient, "numerator": [2 * n for n in quotient["numerator"]], "own": 2 * quotient["own"]}
    other = SelfKeyAttention(changed, path)
    assert not list(other.parameters())
    module.load_state_dict(other.state_dict())
    assert torch.equal(module(s), other(s))
    assert torch.allclose(module(s), 2 * SelfKeyAttention(numbers, path)(s), rtol=0, atol=1e-5)


@pytest.mark.slow_for("powers-gelu", "plain-tanh", "plain-gelu", "plain-silu", "direct-gelu")
@pytest.mark.parametrize("name", ["silu", "gelu", "tanh"])
@pytest.mark.parametrize("path", ["plain", "direct", "powers"])
def test_derivatives_are_those_of_the_head(name, path):
    module = SelfKeyAttention(numbers_of(self_key_head(name, "float64")), path)
    s = torch.linspace(-4, 4, 23, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(module, (s,))
    assert torch.autograd.gradgradcheck(module, (s,))


def test_derivatives_of_a_gate_by_gate_and_value():
    module = GateAttention(numbers_of(gate_head("float64")))
    g, u = (torch.randn(11, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(module, (g, u))
    assert torch.autograd.gradgradcheck(module, (g, u))
    assert torch.autograd.gradcheck(lambda u: module(g.detach(), u), (u,))


def test_gradients_keep_the_input_alone_and_reach_half_precision(monkeypatch):
    kept = []
    module = SelfKeyAttention(numbers_of(self_key_head("gelu", "float32")))
    s = torch.randn(100_000, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape) or t, lambda t: t):
        r = module(s)
    assert kept == [s.shape]
    (slope,) = torch.autograd.grad(r.sum(), s)
    half = s.detach().bfloat16().requires_grad_()
    (coarse,) = torch.autograd.grad(module(half).sum(), half)
    assert torch.allclose(coarse.float(), slope, rtol=0, atol=2e-2)


def test_function_transforms_apply():
    module = SelfKeyAttention(numbers_of(self_key_head("gelu", "float64")))
    s = torch.randn(5, dtype=torch.float64)
    rows = torch.func.vmap(torch.func.grad(module))(s)
    t = s.clone().requires_grad_()
    assert torch.allclose(rows, torch.autograd.grad(module(t).sum(), t)[0])


@pytest.mark.parametrize("path", ["auto", "plain"])
def test_it_exports_with_its_weights_for_any_batch(path):
    module = SelfKeyAttention(numbers_of(self_key_head("gelu", "float64")), path)
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(module, (torch.randn(3, 8, dtype=torch.float64),), dynamic_shapes=({0: batch},))
    s = torch.randn(5, 8, dtype=torch.float64)
    assert torch.allclose(program.module()(s), module(s), rtol=0, atol=1e-13)
    assert "keys" in program.state_dict


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1), (2, 3, 5)])
@pytest.mark.parametrize("path", ["plain", "direct", "powers"])
def test_any_shape_goes_through(shape, path):
    module = SelfKeyAttention(numbers_of(self_key_head("gelu", "float32")), path)
    s = torch.randn(shape)
    assert module(s).shape == shape
    flipped = torch.randn(6, 4).T
    assert torch.equal(module(flipped), module(flipped.contiguous()))


def test_autocast_leaves_the_neurons_alone():
    for path in ("plain", "powers"):
        module, s = SelfKeyAttention(numbers_of(self_key_head("gelu", "float32")), path), torch.randn(1000)
        with torch.autocast("cpu", torch.bfloat16), pytest.warns(UserWarning, match="leave autocast off"):
            inside = module(s)
        assert inside.dtype == torch.float32
        assert torch.equal(inside, module(s))


def test_without_a_compiler_the_compiled_path_says_so_once_and_runs_in_chunks(monkeypatch):
    def no_compiler(*args):
        raise RuntimeError("No working C++ compiler found\nlong story")

    monkeypatch.setattr(attend, "_compile", lambda formula: no_compiler)
    monkeypatch.setattr(attend, "_uncompilable", [])
    module, s = SelfKeyAttention(numbers_of(self_key_head("gelu", "float32")), "compiled"), torch.randn(100)
    with pytest.warns(RuntimeWarning, match=r"No working C\+\+ compiler found\), so path='compiled' runs in chunks"):
        first = module(s)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(module(s), first)
    module.path = "powers"
    assert torch.equal(module(s), first)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gelu", "hardtanh"])
def test_the_compiled_path_is_within_the_proven_rounding(name):
    head, s = self_key_head(name, "float32"), points("float32")
    r = SelfKeyAttention(numbers_of(head), "compiled")(s)
    assert not attend._uncompilable
    size = np.maximum(1, np.abs(s.double().numpy()))
    assert (np.abs(r.double().numpy() - head(s.numpy())) <= (head.rounding + 1e-15) * size).all()


def test_models_show_their_attention_and_its_path():
    model = torch.nn.Sequential(SelfKeyAttention(numbers_of(self_key_head("gelu", "float32")), "direct"))
    assert "gelu, anchors=6, path='direct'" in repr(model)


def test_what_cannot_be_used_is_refused():
    numbers = numbers_of(self_key_head("gelu", "float32"))
    with pytest.raises(ValueError, match=r"path='fast': the paths are auto, plain"):
        SelfKeyAttention(numbers, "fast")
    with pytest.raises(ValueError, match="no common step"):
        SelfKeyAttention(numbers_of(self_key_head("hardtanh", "float32")), "powers")
    with pytest.raises(ValueError, match="all must be finite"):
        SelfKeyAttention({**numbers, "values": [float("nan")] * 5})
    with pytest.raises(ValueError, match="5 slopes, but 1 values"):
        SelfKeyAttention({**numbers, "values": [0.0]})
    with pytest.raises(ValueError, match="float32 or float64"):
        SelfKeyAttention({**numbers, "dtype": "float16"})
    with pytest.raises(RuntimeError, match="needs a CUDA device"):
        SelfKeyAttention(numbers, "triton")(torch.randn(3))
    with pytest.raises(ValueError, match="every neuron has a gate and a value"):
        GateAttention(numbers_of(gate_head("float32")))(torch.randn(3), torch.randn(4))


@pytest.mark.parametrize("name", ["attend.py", "attend_triton.py"])
def test_the_file_needs_nothing_but_torch(name):
    tree = ast.parse((Path(attend.__file__).parent / name).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    allowed = {"torch", "triton"} if name == "attend_triton.py" else {"torch"}
    assert {one.split(".")[0] for one in names} - set(sys.stdlib_module_names) <= allowed

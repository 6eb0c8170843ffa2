"""Neurons as softmax attention, in torch: a token sees its own key and the keys of registers, and nothing else.

`SelfKeyAttention` evaluates, entry by entry of s, one softmax over p registers and the token itself,

    r(s) = skip s + bias + (value s e^z + sum_k v_k e^(z_k)) / (e^z + sum_k e^(z_k)),   z_k = slope_k s + offset_k,

`GateAttention`, of g and u, softmaxes in which the own key has the logit 0 and the value factor u, registers 0:

    r(g, u) = sum_j factor_j u / (1 + sum_k e^(slope_jk g + offset_jk)).

The query of an entry is [s, 1], a key is [slope, offset]. The same softmax is computed in one of these ways (`path`):

    plain      F.scaled_dot_product_attention over the keys, in chunks
    direct     exponentials of the logits less the largest, added up key by key: no axis of keys
    powers     all slopes are multiples of one step: y = e^(rate s) once, its powers by Horner's rule, one quotient
    compiled   the formula as one loop, by torch.compile
    triton     the formula as one kernel, on a GPU
    auto       triton on a GPU; inside torch.compile and torch.export the formula, for them to fuse; else in chunks

"The formula" is powers where there is a common step, otherwise direct. This file needs torch alone (`attend_triton.py`
beside it is for GPUs) and is copied into the folder of a saved model as it is. All weights are buffers, float32 at
least: a model in half precision computes its neurons in float32 and rounds once.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PATHS = ("auto", "plain", "direct", "powers", "compiled", "triton")
MEMORY = 1 << 26  # bytes that a chunk takes beside input and output, on the plain path or on a GPU
IN_CACHE = 1 << 15  # entries for each thread, so that the few arrays of a chunk stay in its cache

Weights = dict[str, Tensor]
Over = Callable[[Tensor], Tensor | None]  # where the result of a step goes that needs an array no more


class _Attention(nn.Module):
    """What both kinds share: weights that stay at float32 or wider, and the choice of a path.

    formula     r of weights, structure, way and inputs, entry by entry; the way is "plain", "direct" or "powers"
    structure   what the formula must know of the head beside its numbers
    """

    formula: Callable[..., Tensor]
    structure: Any

    def __init__(self, numbers: Mapping[str, Any], path: str, has_powers: bool) -> None:
        super().__init__()
        self.function = str(numbers.get("function", ""))
        self.has_powers = has_powers
        self.path = path
        self._checked_path()

    @property
    def anchors(self) -> int:
        """Keys of one neuron, the registers' and its own."""
        return len(self.get_buffer("keys"))

    def extra_repr(self) -> str:
        return f"{self.function}, anchors={self.anchors}, path={self.path!r}"

    def _attend(self, *inputs: Tensor) -> Tensor:
        """The entries of the inputs, all of one shape, by the chosen path, in the dtype of the first."""
        way = self._checked_path()
        dtype = functools.reduce(torch.promote_types, (x.dtype for x in inputs), self.get_buffer("keys").dtype)
        weights = {name: b.to(dtype) for name, b in self._buffers.items() if b is not None}
        compute = functools.partial(_compute, self.formula, weights, self.structure, way, dtype)
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
            return compute(*inputs)
        _mind_autocast(inputs[0].device.type)
        run = functools.partial(self._run, weights, way, dtype)
        if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
            return _Recomputed.apply(run, compute, *inputs)
        return run(*inputs)

    def _run(self, weights: Weights, way: str, dtype: torch.dtype, *inputs: Tensor) -> Tensor:
        """Without gradients: one kernel, one loop, or chunk by chunk."""
        first, path = inputs[0], self.path
        if path == "triton" or (path == "auto" and first.device.type == "cuda"):
            kernel = _kernel("gate" if len(inputs) == 2 else way, first)
            if kernel is not None:
                return kernel(weights, self.structure, *inputs)
            if path == "triton":
                raise RuntimeError(
                    f"path='triton' for {first.dtype} on {first.device}: it needs a CUDA device, the package triton, "
                    "and float32, float16 or bfloat16; choose path='auto'"
                )
        call = self.formula, weights, self.structure, way, dtype
        if path == "compiled":
            found = _compiled(*call, *(x.reshape(-1) for x in inputs))
            if found is not None:
                return found.view(first.shape)
        out = torch.empty_like(first, memory_format=torch.contiguous_format)
        size = IN_CACHE * torch.get_num_threads()
        if way == "plain" or first.device.type != "cpu":
            size = max(1, MEMORY // (dtype.itemsize * (6 * self.anchors if way == "plain" else 8)))
        for *parts, into in zip(*(x.reshape(-1).split(size) for x in (*inputs, out)), strict=True):
            into.copy_(_compute(*call, *parts, over=_itself))
        return out

    def _checked_path(self) -> str:
        """The way that the formula takes."""
        if self.path not in PATHS:
            raise ValueError(f"path={self.path!r}: the paths are {', '.join(PATHS)}")
        if self.path == "powers" and not self.has_powers:
            raise ValueError("path='powers', but the slopes of this head have no common step: choose 'auto'")
        return self.path if self.path in ("plain", "direct") else "powers" if self.has_powers else "direct"

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """As torch's, but half precision does not reach the weights."""
        before = dict(self._buffers)
        super()._apply(fn, recurse)
        for name, buffer in before.items():
            after = self._buffers[name]
            if buffer is not None and after is not None and after.dtype.itemsize < 4:
                self._buffers[name] = buffer.to(after.device)
        return self

    def _hold(self, name: str, numbers: Any, dtype: torch.dtype) -> None:
        held = torch.tensor(numbers, dtype=torch.float64, device="cpu")
        if not torch.isfinite(held).all():
            raise ValueError(f"the {name} of a head for {self.function} hold {held.tolist()}: all must be finite")
        self.register_buffer(name, held.to(dtype))


def _compute(
    formula: Callable[..., Tensor],
    weights: Weights,
    structure: Any,
    way: str,
    dtype: torch.dtype,
    *inputs: Tensor,
    over: Over | None = None,
) -> Tensor:
    """r in the dtype of the first input, computed in another."""
    return formula(weights, structure, way, *(x.to(dtype) for x in inputs), over=over).to(inputs[0].dtype)


def _own(weights: Weights, own_index: int, way: str, s: Tensor, over: Over | None = None) -> Tensor:
    """r(s); with `over`, intermediate arrays are overwritten."""
    if way == "powers":
        r = _quotient(weights, own_index, s, over or _anew)
    else:
        values = [*weights["values"].unbind(), *(value * s for value in weights["own_value"].unbind())]
        r = _softmax(way, weights["keys"], values, s, over or _anew)
    if len(weights["straight"]):
        skip, bias = weights["straight"].unbind()
        r = torch.addcmul(bias, skip, s) + r
    return r


def _gate(
    weights: Weights, counts: tuple[int, ...], way: str, g: Tensor, u: Tensor, over: Over | None = None
) -> Tensor:
    """r(g, u), likewise."""
    nothing = torch.zeros((), dtype=g.dtype, device=g.device)
    total = torch.zeros_like(g)
    for factor, keys in zip(weights["factors"].unbind(), weights["keys"].split(counts), strict=True):
        values = [nothing] * (len(keys) - 1) + [factor * u]
        total = total + _softmax(way, keys, values, g, over or _anew)
    return total


class SelfKeyAttention(_Attention):
    """r(s), entry by entry of s (..., neurons).

    numbers     slopes, offsets, values of the registers (lists); own: None, or slope, offset, value; skip, bias;
                dtype; powers: None, or rate, low, high, numerator, denominator, own, own_index of the quotient
    structure   own_index; -1 where there is none

        r(s) = skip s + bias + (own s y^own_index + sum_k numerator_k y^k) / sum_k denominator_k y^k,
        y = e^(rate t),   t = s clipped to [low, high]
    """

    formula = staticmethod(_own)

    def __init__(self, numbers: Mapping[str, Any], path: str = "auto") -> None:
        quotient, own, dtype = numbers.get("powers"), numbers["own"], _dtype(numbers)
        super().__init__(numbers, path, quotient is not None)
        keys = list(zip(numbers["slopes"], numbers["offsets"], strict=True))
        if len(keys) != len(numbers["values"]):
            raise ValueError(f"{len(keys)} slopes, but {len(numbers['values'])} values: give one of each a register")
        self._hold("keys", keys if own is None else [*keys, (own["slope"], own["offset"])], dtype)
        self._hold("values", numbers["values"], dtype)
        self._hold("own_value", [] if own is None else [own["value"]], dtype)
        straight = [numbers["skip"], numbers["bias"]]
        self._hold("straight", straight if any(straight) else [], dtype)
        self.structure = -1
        if quotient is not None:
            if len(quotient["numerator"]) != len(quotient["denominator"]):
                raise ValueError("the numerator and the denominator of a quotient have as many coefficients each")
            four = [quotient[name] for name in ("rate", "low", "high", "own")]
            self._hold("quotient", [*four, *quotient["numerator"], *quotient["denominator"]], dtype)
            self.structure = -1 if own is None else int(quotient["own_index"])

    def forward(self, s: Tensor) -> Tensor:
        return self._attend(s)


class GateAttention(_Attention):
    """r(g, u), entry by entry of g and u (..., neurons).

    numbers     parts, each with slopes, offsets (lists) and a factor; dtype
    structure   how many of the keys belong to each part; its last is the token's own
    """

    formula = staticmethod(_gate)

    def __init__(self, numbers: Mapping[str, Any], path: str = "auto") -> None:
        super().__init__(numbers, path, has_powers=False)
        dtype = _dtype(numbers)
        tables = [[*zip(part["slopes"], part["offsets"], strict=True), (0.0, 0.0)] for part in numbers["parts"]]
        self._hold("keys", [key for table in tables for key in table], dtype)
        self._hold("factors", [part["factor"] for part in numbers["parts"]], dtype)
        self.structure = tuple(len(table) for table in tables)

    def forward(self, g: Tensor, u: Tensor) -> Tensor:
        if g.shape != u.shape:
            raise ValueError(f"g has shape {tuple(g.shape)}, u {tuple(u.shape)}: every neuron has a gate and a value")
        return self._attend(g, u)


def _softmax(way: str, keys: Tensor, values: Sequence[Tensor], s: Tensor, over: Over) -> Tensor:
    """Attention of queries [s, 1] over keys (p, 2); a value is a number, or an array like s: the token's own."""
    if way == "plain":
        return _plain(keys, values, s)
    slopes, offsets = (column.unbind() for column in keys.unbind(-1))
    top = torch.addcmul(offsets[0], slopes[0], s)
    for slope, offset in zip(slopes[1:], offsets[1:], strict=True):
        top = torch.maximum(top, torch.addcmul(offset, slope, s), out=over(top))
    mean, weight = torch.zeros_like(s), torch.zeros_like(s)
    for slope, offset, value in zip(slopes, offsets, values, strict=True):
        e = torch.addcmul(offset, slope, s)
        e = torch.sub(e, top, out=over(e))
        e = torch.exp(e, out=over(e))
        weight = torch.add(weight, e, out=over(weight))
        mean = torch.addcmul(mean, value, e, out=over(mean))
    return torch.div(mean, weight, out=over(mean))


def _plain(keys: Tensor, values: Sequence[Tensor], s: Tensor) -> Tensor:
    """The same with an axis of keys: a batch of all entries, one query each."""
    flat = s.reshape(-1)
    queries = torch.stack([flat, torch.ones_like(flat)], dim=-1)[:, None, :]
    table = torch.stack([value.reshape(-1).expand(flat.shape) for value in values], dim=-1)[:, :, None]
    with torch.autocast(s.device.type, enabled=False):
        read = F.scaled_dot_product_attention(queries, keys.expand(flat.shape[0], -1, -1), table, scale=1.0)
    return read.reshape(s.shape)


def _quotient(weights: Weights, own_index: int, s: Tensor, over: Over) -> Tensor:
    """The same as a quotient of polynomials in one exponential."""
    numbers = list(weights["quotient"].unbind())
    rate, low, high, own = numbers[:4]
    half = len(numbers) // 2 + 2
    numerator, denominator = numbers[4:half], numbers[half:]
    y = torch.maximum(s, low)
    y = torch.minimum(y, high, out=over(y))
    y = torch.mul(y, rate, out=over(y))
    y = torch.exp(y, out=over(y))
    if own_index >= 0:
        numerator[own_index] = torch.addcmul(numerator[own_index], own, s)
    return _horner(numerator, y, over) / _horner(denominator, y, over)


def _horner(coefficients: Sequence[Tensor], y: Tensor, over: Over) -> Tensor:
    """sum_k coefficients_k y^k, from the highest power down; coefficients are numbers, or arrays like y."""
    total = coefficients[-1]
    for step, coefficient in enumerate(reversed(coefficients[:-1])):
        total = torch.addcmul(coefficient, total, y, out=over(total) if step else None)
    return total


def _itself(array: Tensor) -> Tensor:
    return array


def _anew(array: Tensor) -> None:
    return None


class _Recomputed(torch.autograd.Function):
    """Any path forwards; backwards the formula once more, chunk by chunk, so that nothing but the inputs is kept."""

    @staticmethod
    def forward(ctx: Any, run: Callable, compute: Callable, *inputs: Tensor) -> Tensor:
        ctx.compute = compute
        ctx.save_for_backward(*inputs)
        return run(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (gradient,) = gradients
        inputs = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted, so the graph is
            wanted = [x for x in inputs if x.requires_grad]
            found = iter(torch.autograd.grad(ctx.compute(*inputs), wanted, gradient, create_graph=True))
            return (None, None, *(next(found) if x.requires_grad else None for x in inputs))
        out = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in inputs]
        size = IN_CACHE * torch.get_num_threads() if gradient.device.type == "cpu" else MEMORY // 256
        for g, *parts in zip(*(x.reshape(-1).split(size) for x in (gradient, *inputs, *out)), strict=True):
            some = [x.detach().requires_grad_() for x in parts[: len(inputs)]]
            with torch.enable_grad():
                r = ctx.compute(*some)
            for into, slope in zip(parts[len(inputs) :], torch.autograd.grad(r, some, g), strict=True):
                into.copy_(slope)
        return (None, None, *out)


_uncompilable: list[str] = []


def _compiled(*call: Any) -> Tensor | None:
    """The formula as one loop over the entries; None, with one warning, where nothing compiles it."""
    if _uncompilable:
        return None
    try:
        return _compile(_compute)(*call)
    except (RuntimeError, ImportError, OSError) as error:
        _uncompilable.append(next(iter(str(error).strip().splitlines()), type(error).__name__))
        warnings.warn(
            f"torch.compile does not work here ({_uncompilable[0]}), so path='compiled' runs in chunks instead: "
            "install a C++ compiler such as g++, or choose path='auto'",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


@functools.cache
def _compile(function: Callable) -> Callable:
    return torch.compile(function, dynamic=True)


def _mind_autocast(kind: str) -> None:
    """Heads compute as they are stored whatever is around them; the maps of the model that they stand in do not."""
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        warnings.warn(
            f"under torch.autocast the linear maps around heads run in {torch.get_autocast_dtype(kind)}: what is "
            "proven of a layer does not hold there, only what is proven of its heads; leave autocast off",
            stacklevel=2,
        )


def _kernel(name: str, like: Tensor) -> Callable[..., Tensor] | None:
    """The kernel of this name, where it runs: on CUDA, with triton, up to float32."""
    if like.device.type != "cuda" or like.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return None
    try:
        from .attend_triton import KERNELS
    except ImportError:
        return None
    return KERNELS[name]


def _dtype(numbers: Mapping[str, Any]) -> torch.dtype:
    named = {"float32": torch.float32, "float64": torch.float64}
    if numbers.get("dtype") not in named:
        raise ValueError(f"dtype={numbers.get('dtype')!r} of a head: heads are stored in float32 or float64")
    return named[numbers["dtype"]]

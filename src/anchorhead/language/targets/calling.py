"""How a function that is known by its values alone is called: with arrays, with tensors, or number by number; always
with one argument.

Whichever it takes, values are arrays of float64, and complex ones are refused.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from anchorhead.errors import AnchorheadError

NEEDED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def called(f: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    """f(x), for a function of arrays, or of tensors."""
    if _is_module(f):
        return with_tensors(f, x)
    try:
        return with_arrays(f, x)
    except (TypeError, AttributeError):
        if "torch" not in sys.modules:
            raise
        return with_tensors(f, x)


def with_arrays(f: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    return _numbers(f(x.copy()))


def with_tensors(f: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    torch = sys.modules.get("torch")  # a function of tensors comes with torch imported
    if torch is None:
        raise TypeError("takes no arrays")
    with torch.no_grad() if _is_module(f) else nullcontext():  # a function may take gradients itself
        return _numbers(f(tensor_for(f, x)))


def with_numbers(f: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    """(N, m), for x (N,), at least one: f of each number."""
    return np.stack([_numbers(f(float(point))).reshape(-1) for point in x])


def tensor_for(f: Any, x: np.ndarray) -> Any:
    """x as a tensor; for a torch module, of the dtype and on the device of its parameters."""
    torch = sys.modules["torch"]
    tensor = torch.from_numpy(x.copy())
    if _is_module(f):
        own = next((one for one in (*f.parameters(), *f.buffers()) if one.is_floating_point()), None)
        tensor = tensor if own is None else tensor.to(own)
    return tensor


def require_one_argument(f: Callable[..., Any], called: str, variables: Sequence[str] = ()) -> None:
    """Refuses `lambda a, b: …` with what to write instead.

    variables   the names of its inputs; none: a function of one number
    """
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # some builtins do not say
        return
    names = [one.name for one in parameters if one.kind in NEEDED and one.default is inspect.Parameter.empty]
    if len(names) < 2:
        return
    takes = f"{called} takes {len(names)} arguments, {', '.join(names)}"
    several = "on={" + ", ".join(f"'{name}': (-1, 1)" for name in names) + "}"
    columns = ", ".join(f"x[:, {j}]" for j in range(len(names)))
    instead = f"write lambda x: f({columns})"
    if not variables:
        raise AnchorheadError(
            f"{takes}, and a head is for a function of one: use ah.approximate with {several}, and there {instead}"
        )
    count = f"{len(variables)} input{'s' * (len(variables) != 1)}"
    fits = "" if len(variables) == len(names) else f"; on= has {count}, {', '.join(variables)}"
    raise AnchorheadError(f"{takes}, but is called with one array (batch, inputs): {instead}{fits}")


def require_float64(f: Callable[..., Any]) -> None:
    """Refuses a torch module of a coarser dtype where a proof takes its values as right to 2 ulp of float64."""
    if not _is_module(f):
        return
    dtype = tensor_for(f, np.zeros(1)).dtype
    if dtype != sys.modules["torch"].float64:
        raise AnchorheadError(
            f"lipschitz= with a module that computes in {dtype}: its values are rounded too coarsely for a proof; give "
            "module.double(), or leave lipschitz= out, and the error is measured"
        )


def _is_module(f: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(f, torch.nn.Module)


def _numbers(y: Any) -> np.ndarray:
    """What a function gave, in float64."""
    if hasattr(y, "detach"):
        y = y.detach().cpu()
        y = (y if y.is_complex() else y.double()).numpy()
    if np.iscomplexobj(y):
        raise TypeError("it gives complex numbers, and real ones are needed: give their real part, or their size")
    return np.asarray(y, dtype=np.float64)

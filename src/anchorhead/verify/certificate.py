"""The certificate: what a file claims, read strictly, and which of its fields mean something.

verified      kind, bound, on (the box), dtype, conditions (what the claim is restricted to), evaluations: "plain" is
              attention as it is written, "direct" what `direct` describes
consistent    terms add up to the bound, up to 10%; no error that is named as found exceeds the bound
not verified  method, target, arithmetic and reference: words for people. The target is the program's; the model of
              arithmetic is this verifier's own, which its report prints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, Unreadable, require
from anchorhead.verify.files import Stored

FIELDS = {
    "kind", "bound", "on", "dtype", "arithmetic", "terms", "method", "target", "reference", "conditions", "worst",
}  # fmt: skip
Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class Certificate:
    """low, high: the ends of the box, (tokens, features). excluded: intervals that no argument of a function is in."""

    bound: float
    low: np.ndarray
    high: np.ndarray
    dtype: str
    excluded: Intervals
    conditions: tuple[Mapping[str, Any], ...]
    evaluations: tuple[str, ...] = ("plain",)


def read_certificate(stored: Stored, shape: tuple[int, int]) -> Certificate:
    """The certificate of a file, for inputs of a shape (tokens, features)."""
    data = stored.certificate
    if data is None:
        raise Unreadable("there is no certificate: nothing is claimed")
    if set(data) - {"evaluations"} != FIELDS:
        raise Unreadable(f"a certificate has the fields {sorted(FIELDS)}; this one has {sorted(map(str, data))}"[:300])
    if data["kind"] != "proven":
        raise NotVerified(f"the certificate is {str(data['kind'])[:20]!r}: no bound is claimed that could be verified")
    bound = _number(data["bound"], "bound")
    _consistent(data, bound)
    on = data["on"]
    if not isinstance(on, dict) or set(on) != {"low", "high"}:
        raise Unreadable("the box of the certificate is damaged")
    low, high = (_end(on[name], shape) for name in ("low", "high"))
    require(bool((low <= high).all()), "the box of the certificate is empty")
    conditions = data["conditions"]
    if not isinstance(conditions, list) or not all(isinstance(one, dict) for one in conditions):
        raise Unreadable("the conditions of the certificate are damaged")
    excluded: Intervals = ()
    for one in conditions:
        if one.get("kind") == "excluded":
            if set(one) != {"kind", "intervals"} or not isinstance(one["intervals"], list):
                raise Unreadable("a condition on excluded intervals is damaged")
            excluded = tuple((_any(a), _any(b)) for a, b in one["intervals"])
    ways = data.get("evaluations", ["plain"])
    if ways not in (["plain"], ["plain", "direct"]):
        raise Unreadable(f"the certificate covers the evaluations {str(ways)[:60]}: plain, or plain and direct")
    return Certificate(bound, low, high, str(data["dtype"]), excluded, tuple(conditions), tuple(ways))


def require_only(certificate: Certificate, *kinds: str) -> None:
    """A condition makes a claim weaker, and is granted only where its meaning is used: here those of some kinds, none
    twice."""
    stated = [str(one.get("kind")) for one in certificate.conditions]
    for kind in stated:
        require(kind in kinds, f"a condition of the kind {kind[:40]!r}, which means nothing here")
    require(len(set(stated)) == len(stated), "the certificate states a condition twice")


def _consistent(data: Mapping[str, Any], bound: float) -> None:
    terms = _amounts(data["terms"])
    total = sum(_number(value, "a term") for value in terms)
    if terms and not 0.9 * bound <= total <= bound * (1 + 1e-6):
        raise NotVerified(f"the terms of the certificate add up to {total:.6g}, its bound is {bound:.6g}")
    worst = data["worst"]
    if worst is not None:
        found = _number(worst.get("error") if isinstance(worst, dict) else None, "the largest error found")
        require(found <= bound, f"the certificate names an error of {found:.6g}, above its own bound {bound:.6g}")


def _amounts(terms: Any) -> list[Any]:
    """The numbers of terms: each has a kind, what it is of and an amount; in files of before they are under words."""
    if isinstance(terms, dict):
        return list(terms.values())
    if not isinstance(terms, list) or not all(
        isinstance(one, dict) and {"kind", "of", "amount"} <= set(one) for one in terms
    ):
        raise Unreadable("the terms of the certificate are damaged")
    return [one["amount"] for one in terms]


def _end(value: Any, shape: tuple[int, int]) -> np.ndarray:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "if" or array.size > np.prod(shape):
            raise ValueError("not numbers")
        array = np.broadcast_to(array.astype(np.float64), shape)
    except (ValueError, TypeError) as error:
        raise Unreadable(f"the box of the certificate does not fit inputs of shape {shape}") from error
    if not np.isfinite(array).all():
        raise Unreadable("the box of the certificate is not finite")
    return array


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise Unreadable(f"{what} of the certificate is {str(value)[:40]!r}: a finite number, 0 or more")
    return float(value)


def _any(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Unreadable(f"{str(value)[:40]!r} in a condition: a finite number")
    return float(value)

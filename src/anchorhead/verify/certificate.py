"""The certificate: what a file claims, read strictly, and which of its fields mean something.

verified      kind, bound, on (the box), dtype, conditions (what the claim is restricted to), evaluations: "plain" is
              attention as it is written, "direct" what `direct` describes
consistent    terms add up to the bound, up to 10%; no error that is named as found exceeds the bound
not verified  method, target, arithmetic and reference: words for people. The target is the program's; the model of
              arithmetic is this verifier's own, which its report prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorhead.verify.errors import NotVerified, number, require
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
        raise NotVerified("there is no certificate: nothing is claimed")
    same = set(data) - {"evaluations"} == FIELDS
    require(same, f"a certificate has the fields {sorted(FIELDS)}; this one has {sorted(map(str, data))}"[:300])
    kind, on = str(data["kind"])[:20], data["on"]
    require(kind == "proven", f"the certificate is {kind!r}: no bound is claimed that could be verified")
    bound = _amount(data["bound"], "the bound")
    _consistent(data, bound)
    require(isinstance(on, dict) and set(on) == {"low", "high"}, "the box of the certificate is damaged")
    low, high = (_end(on[name], shape) for name in ("low", "high"))
    require(bool((low <= high).all()), "the box of the certificate is empty")
    conditions = data["conditions"]
    good = isinstance(conditions, list) and all(isinstance(one, dict) for one in conditions)
    require(good, "the conditions of the certificate are damaged")
    excluded: Intervals = ()
    for one in conditions:
        if one.get("kind") == "excluded":
            good = set(one) == {"kind", "intervals"} and isinstance(one["intervals"], list)
            require(good, "a condition on excluded intervals is damaged")
            excluded = tuple(tuple(number(end, "an end") for end in (a, b)) for a, b in one["intervals"])  # type: ignore[misc]
    ways = data.get("evaluations", ["plain"])
    good = ways in (["plain"], ["plain", "direct"])
    require(good, f"the certificate covers the evaluations {str(ways)[:60]}: plain, or plain and direct")
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
    total = sum(_amount(value, "a term") for value in terms)
    fits = not terms or 0.9 * bound <= total <= bound * (1 + 1e-6)
    require(fits, f"the terms of the certificate add up to {total:.6g}, its bound is {bound:.6g}")
    worst = data["worst"]
    if worst is not None:
        found = _amount(worst.get("error") if isinstance(worst, dict) else None, "the largest error found")
        require(found <= bound, f"the certificate names an error of {found:.6g}, above its own bound {bound:.6g}")


def _amounts(terms: Any) -> list[Any]:
    """The numbers of terms: each has a kind, what it is of and an amount; in files of before they are under words."""
    if isinstance(terms, dict):
        return list(terms.values())
    fields = {"kind", "of", "amount"}
    good = isinstance(terms, list) and all(isinstance(one, dict) and fields <= set(one) for one in terms)
    require(good, "the terms of the certificate are damaged")
    return [one["amount"] for one in terms]


def _end(value: Any, shape: tuple[int, int]) -> np.ndarray:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "if" or array.size > np.prod(shape):
            raise ValueError("not numbers")
        array = np.broadcast_to(array.astype(np.float64), shape)
    except (ValueError, TypeError) as error:
        raise NotVerified(f"the box of the certificate does not fit inputs of shape {shape}") from error
    require(np.isfinite(array).all(), "the box of the certificate is not finite")
    return array


def _amount(value: Any, what: str) -> float:
    found = number(value, f"{what} of the certificate")
    require(found >= 0, f"{what} of the certificate is {found:g}, below 0")
    return found

"""What users give, read in one place: numbers, arrays of them, counts and words.

Whatever has a value as a float64 is a number, Python's own, numpy's and torch's, fractions and decimals; a text or a
truth value is none. Nothing here raises anything but an AnchorheadError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from anchorhead.errors import AnchorheadError

SHOWN = 120
"""How many signs of what was given an error shows."""

LARGEST_COUNT = 10**12
"""Nothing can be counted that far."""


def shown(given: Any) -> str:
    """What was given, for an error: not longer than a line, whatever it is."""
    try:
        text = repr(given)
    except Exception:  # an int of 5000 digits has no repr, and objects may have any
        return f"a {type(given).__name__}"
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}…{text[-SHOWN // 4 :]}"


def number(given: Any) -> float:
    """As a float64: infinite beyond its range, and NaN where it is no real number at all."""
    if isinstance(given, bool | np.bool_ | str | bytes | bytearray):
        return math.nan
    try:
        return float(given)
    except OverflowError:
        return math.inf if given > 0 else -math.inf
    except Exception:  # of whatever kind: tensors without data, decimals that signal, any object
        return math.nan


def numbers(given: Any) -> Float[np.ndarray, "..."] | None:
    """An array as float64, infinite beyond its range; None where it does not hold real numbers, or has no data."""
    try:
        plain = given.detach().cpu() if hasattr(given, "detach") else given
        array = np.asarray(plain)
        with np.errstate(over="ignore"):
            if array.dtype.kind in "fiub":
                return array.astype(np.float64)
        if array.dtype.kind == "O" and array.size:
            found = np.array([number(one) for one in array.reshape(-1)]).reshape(array.shape)
            return None if np.isnan(found).any() else found
    except Exception:  # ragged lists, tensors that are sparse, quantized or have no data
        return None
    return None


def pair(given: Any) -> tuple[Any, Any] | None:
    """The two things that something holds, if it holds two."""
    try:
        first, second = given
    except Exception:  # not iterable, or not two of them
        return None
    return first, second


def checked_number(
    name: str, given: Any, needed: str, least: float = -math.inf, above: float = -math.inf, below: float = math.inf
) -> float:
    """A finite number with least <= x, above < x < below; else an error that says what is needed."""
    found = number(given)
    if not (math.isfinite(found) and least <= found and above < found < below):
        raise AnchorheadError(f"{name}={shown(given)}: {needed}")
    return found


def checked_within(within: Any) -> float:
    """The error that is asked for."""
    return checked_number("within", within, "the error asked for, a number above 0 that float64 can hold", above=0.0)


def checked_count(name: str, given: Any, least: int = 1, most: int = LARGEST_COUNT) -> int:
    """A whole number from least to most."""
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not whole or not least <= given <= most:
        plain = most == LARGEST_COUNT and not (whole and given > most)
        needed = f"of at least {least}" if plain else f"from {least} to {most:,}"
        raise AnchorheadError(f"{name}={shown(given)}: a whole number {needed}")
    return int(given)


def checked_text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise AnchorheadError(f"{name}={shown(given)}: a text")
    return given


def checked_word(name: str, given: Any, allowed: Sequence[str]) -> Any:
    """One of a few words."""
    if not isinstance(given, str) or given not in allowed:
        raise AnchorheadError(f"{name}={shown(given)}: one of {', '.join(map(repr, allowed))}")
    return given


def require_finite(array: Shaped[np.ndarray, "..."], what: str, which: str = "all") -> None:
    """Refuses numbers of which some are not finite: "the weight of a layer has" the entry nan at (0, 1)."""
    places = np.argwhere(~np.isfinite(array))
    if len(places):
        place = tuple(int(i) for i in places[0])
        raise AnchorheadError(f"{what} the entry {array[place]} at {place}: {which} must be finite")


def require_even_tokens(tokens: int, variables: int, outputs: int) -> None:
    """Refuses tokens that do not share variables and outputs evenly."""
    if tokens < 1 or variables % tokens or outputs % tokens:
        raise AnchorheadError(
            f"tokens={tokens!r} for {variables} variables and {outputs} outputs: a number that divides both"
        )

"""The errors and warnings of all rooms: each message says what was given, what is allowed and what to do."""

from __future__ import annotations

from typing import Any

from anchorhead.as_html import block, shown


class AnchorheadError(ValueError):
    """Something that was given cannot be used."""


class CertificateError(AnchorheadError):
    """A certificate's bound is not justified by the weights it comes with.

    report   of the verifier, which lists what was checked; None where it was not asked
    """

    def __init__(self, message: str, report: Any = None) -> None:
        super().__init__(message)
        self.report = report


class NotReached(AnchorheadError):
    """The error asked for was not reached.

    network  the best network there was, a Network with a certificate of its own
    bound    what that certificate says
    within   what was asked for

        >>> try:
        ...     ah.head("abs(x)", on=(-1, 1), within=1e-6, dtype="float32", max_slope=50)
        ... except ah.NotReached as best:
        ...     print(best.bound > best.within)
        True
    """

    def __init__(self, message: str, network: Any, bound: float, within: float) -> None:
        super().__init__(message)
        self.network, self.bound, self.within = network, bound, within

    def _repr_html_(self) -> str:
        return block(self, f"the best there was, as error.network, for {self.within:g} asked for:", shown(self.network))


class NotAnExpression(AnchorheadError):
    """A text is not an expression.

    column   where, counted from 1
    """

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message)
        self.column = column


class NotDefined(AnchorheadError):
    """A function of one variable has no value, or a jump, somewhere on the interval asked for."""


class OutsideWarning(UserWarning):
    """An input lies outside the box that the certificate covers."""


class UnprovenWarning(UserWarning):
    """A proof that was asked for did not end: the certificate says "measured", and why."""

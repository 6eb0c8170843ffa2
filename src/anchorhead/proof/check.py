"""The check: does all that a network's certificate says follow from its stored weights and its stored target?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from anchorhead.certificate import Certificate
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.network import Network
from anchorhead.network.files import load
from anchorhead.progress import Progress, progress_line
from anchorhead.proof.ball_head import check_head
from anchorhead.proof.ball_kernel_smoother import check_kernel_smoother
from anchorhead.proof.ball_ramp import check_ramp
from anchorhead.proof.check_callable import check_callable
from anchorhead.proof.check_descent import check_descent
from anchorhead.proof.check_grid import check_grid
from anchorhead.proof.check_mlp import check_mlp
from anchorhead.proof.check_parts import check_parts
from anchorhead.proof.written import require_as_written
from anchorhead.targets import descent, expressions, kernel_smoother, mlp, opaque_several, ramp, scalar, several
from anchorhead.targets.record import TargetRecord

CHECKERS = {
    ramp.KIND: check_ramp,
    scalar.KIND: check_head,
    kernel_smoother.KIND: check_kernel_smoother,
    mlp.KIND: check_mlp,
    several.KIND: check_grid,
    expressions.KIND: check_parts,
    descent.KIND: check_descent,
}


def _target(network: Network) -> TargetRecord | None:
    try:
        return network.target
    except (AnchorheadError, LookupError, TypeError, ValueError) as error:
        raise CertificateError(f"nothing follows for the stored program: {error}") from error


@runtime_checkable
class HasNetwork(Protocol):
    """A head, or anything else that is a network inside."""

    @property
    def network(self) -> Network: ...


def check(
    thing: Network | HasNetwork | str | Path,
    function: Callable[..., Any] | None = None,
    progress: Progress | bool | None = True,
) -> Certificate:
    """Proves a certificate again, from the stored weights and the stored target, and returns it.

    Every field is compared with what follows. Truncated linear functions, kernel smoothers and the rounding of heads
    are checked by a route of their own; all else by the provers that built the network, run anew. Raises
    CertificateError where anything does not follow.

    function  of a network for a callable of several inputs: the callable, which files do not keep
    progress  a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   the certificate, if it follows

        >>> ah.check(ah.head("relu", on=(-1, 1), within=1e-6)).kind
        'proven'
    """
    inside = load(thing) if isinstance(thing, str | Path) else getattr(thing, "network", thing)
    if not isinstance(inside, Network):
        raise AnchorheadError(f"{type(thing).__name__} cannot be checked: give a network, a head or the path of a file")
    network = inside
    certificate, target = network.certificate, _target(network)
    if certificate is None or target is None:
        missing = "certificate" if certificate is None else "target"
        raise CertificateError(f"the network has no {missing}: there is nothing to check")
    if certificate.kind != "proven":
        raise CertificateError(f"the certificate says {certificate.kind!r}: only proven bounds can be checked")
    opaque = target.kind == opaque_several.KIND
    if function is not None and not opaque:
        raise CertificateError(
            f"function= is for callables of several inputs: {certificate.target} is stored, leave it out"
        )
    if target.kind not in CHECKERS and not opaque:
        raise CertificateError(f"no checker for targets of the kind {target.kind!r}: {', '.join(CHECKERS)}")
    try:
        require_as_written(network)
        with progress_line(progress, "checking"), np.errstate(all="ignore"):  # nothing follows from what overflows
            if opaque:
                follows = check_callable(network, target, certificate, function)
            else:
                follows = CHECKERS[target.kind](network, target, certificate)
            follows.require(certificate)
    except CertificateError:
        raise
    except (AnchorheadError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CertificateError(f"the bound is not established: {error}") from error
    return certificate

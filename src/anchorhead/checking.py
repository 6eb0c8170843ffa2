"""The check: the verifier, put to anything that holds a network."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from anchorhead.constructions.learners.learner import Learner
from anchorhead.constructions.learners.many import ManyLearner
from anchorhead.constructions.single.certified_head import Head
from anchorhead.disk import file_to_read
from anchorhead.errors import AnchorheadError, CertificateError
from anchorhead.incontext.loading import load
from anchorhead.language.targets.calling import called, with_numbers
from anchorhead.network import Network
from anchorhead.network.files import content_of, is_former
from anchorhead.progress import Progress, Status, progress_line
from anchorhead.verify import Report, verify


def check(
    thing: Network | Head | str | Path,
    function: Callable[..., Any] | None = None,
    prompt: Any = None,
    progress: Progress | bool | None = True,
) -> Report:
    """Verifies what a certificate says, from the stored weights and the stored program, by code that shares nothing
    with what built it: see anchorhead.verify.

    thing     a network, a head, a learner, the path of a file, or of the folder of an attention-only model
    function  of a network for a callable: the callable, which files do not keep
    prompt    of a learner: a prompt, and what is verified is the bound that net.certify(prompt) states for it
    progress  a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    returns   a Report: print it for every step; .stated is the bound, .found what follows. CertificateError where the
              bound does not follow: its message says what is not justified and where, its .report what was checked

        >>> report = ah.check(ah.head("relu", on=(-1, 1), within=1e-6))
        >>> report.verified, report.found <= report.stated <= 1e-6
        (True, True)
    """
    with progress_line(progress, "verifying") as line:

        def tell(done: int, total: int, what: str) -> None:
            line(Status(f"verifying {what}", share=done / total))

        given = None if function is None else partial(_called, function)
        if prompt is None:
            report = verify(_source(thing), given, tell=tell)
        else:
            certificate = _learner(thing).certify(prompt)
            report = verify(_source(thing), given, np.array(certificate.on.low), certificate.bound, tell)
    if not report.verified:
        raise CertificateError(report.why, report)
    return report


def _source(thing: Any) -> Path | bytes:
    """What the verifier reads: the path of a file or a folder, or what a file would hold."""
    if isinstance(thing, str | Path):
        if os.path.isdir(thing):
            return Path(thing)
        path = file_to_read(thing, "a saved network, or of the folder of an attention-only model")
        return content_of(load(path)) if is_former(path) else path
    network = getattr(thing, "network", thing)
    if not isinstance(network, Network):
        raise AnchorheadError(
            f"{type(thing).__name__} cannot be checked: give a network, a head, or the path of a file or a folder"
        )
    return content_of(network)


def _learner(thing: Any) -> Learner | ManyLearner:
    found = load(thing) if isinstance(thing, str | Path) else thing
    if not isinstance(found, Learner | ManyLearner):
        raise AnchorheadError(f"prompt= is for learners, which {type(found).__name__} is none of: leave it out")
    return found


def _called(function: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    """A function of arrays or of tensors, or of single numbers, at float64 points."""
    try:
        return called(function, x)
    except Exception:
        if x.ndim > 1:
            raise
        return with_numbers(function, x)

"""Networks that say which learner they are: its program, and with the derivation all that it is."""

from __future__ import annotations

from typing import Any, TypeVar

from anchorhead.errors import AnchorheadError
from anchorhead.language.entries import require_same
from anchorhead.language.of_learners import program_of
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.network import Network
from anchorhead.network.derivation import Derivation

N = TypeVar("N", bound=Network)
L = TypeVar("L", Descent, ManyLearners)
CONSTRUCTIONS = {Descent: "descent", ManyLearners: "many learners"}


def approximating(network: N, target: Descent | ManyLearners, on: Any = None) -> N:
    """The same network, which approximates this learner; on: the box of its examples, where it is known."""
    entries = () if network.derivation is None else network.derivation.entries
    known = Derivation(CONSTRUCTIONS[type(target)], target.to_json(), entries)
    return network.with_(program=program_of(target, on), derivation=known)


def learner_of(network: Network, kind: type[L]) -> L:
    """What the network approximates; its program must be that of the learner of which the derivation speaks."""
    if network.program is None or network.derivation is None or network.construction != CONSTRUCTIONS[kind]:
        raise AnchorheadError("a network that does not say which learner it is: incontext makes such as do")
    target = kind.from_json(network.derivation.data)
    require_same(network.program, program_of(target), "the descent that its derivation describes")
    return target

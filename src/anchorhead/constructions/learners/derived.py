"""What derivations say of learners: which layer computes which step of the body, and how far each is off.

Every layout has the same parts in the same order, some of which it does without (lemmas.learners.steps): so it is the
step that says which layer is which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from anchorhead.certificate import Certificate
from anchorhead.constructions.derivations import short_name
from anchorhead.language.program import Program
from anchorhead.language.targets.descent import Descent
from anchorhead.language.targets.many_learners import ManyLearners
from anchorhead.lemmas.learners.average import Average
from anchorhead.lemmas.learners.links import GridLink, HeadLink
from anchorhead.lemmas.learners.loop import PathBound
from anchorhead.lemmas.learners.steps import Step
from anchorhead.lemmas.learners.threshold import clip_error
from anchorhead.network import Attention, Network, Repeat
from anchorhead.network.claim_table import ClaimTable
from anchorhead.network.derivation import Entry

NOTHING = PathBound()
N = TypeVar("N", bound=Network)


def derived(network: Network, target: Descent | ManyLearners, step: Step, path: PathBound = NOTHING) -> Network:
    """The network of a learner, whose derivation says what its layers compute; path: what is proven of that."""
    if network.program is None:
        return network
    place = network.program.output
    repeat: Any = network.program.steps[place]
    found: list[Entry] = []
    copied = repeat.carried[0]
    for number, layer in enumerate(network.layers):
        if isinstance(layer, Attention):
            found.append(Entry(number, "copy", "w, from who holds it", layer.heads, 1, None, 0.0, step=(copied,)))
        if isinstance(layer, Repeat):
            for inner, some in enumerate(_parts(layer.layers, repeat.body, target, step, path)):
                found += [replace(one, layer=number, body=inner, step=(place, *one.step)) for one in some]
            what = "the path of w, errors of all steps together"
            found.append(Entry(number, "loop", what, 0, 0, None, *_off(path.total, path.rounding), (place,)))
            copied = place
    return network.with_entries(found, ClaimTable.empty())


def certified_path(network: N, certificate: Certificate) -> N:
    """The network with a certificate; where that is measured, so is the path."""
    known = network.derivation
    if known is not None and certificate.kind != "proven":
        found = [
            replace(entry, error=certificate.bound, measured=True) if entry.lemma == "loop" else entry
            for entry in known.entries
        ]
        network = network.with_(derivation=replace(known, entries=tuple(found)))
    return network.with_(certificate=certificate)


def of_other_steps(network: N) -> N:
    """The network for a path of another length: what was proven of a step, and of the path, is not said of that."""
    known = network.derivation
    if known is None:
        return network
    kept = (
        one if one.lemma == "copy" else replace(one, error=None, rounding=None, measured=False) for one in known.entries
    )
    return network.with_(derivation=replace(known, entries=tuple(kept)))


def _parts(
    layers: tuple[Any, ...], body: Program, target: Descent | ManyLearners, step: Step, path: PathBound
) -> Iterator[list[Entry]]:
    """Of each layer of the body, with places in the body."""
    left, after = iter(layers), body.outputs[0]
    off = {part: _off(*both) for part, both in path.parts.items()}
    if step.scoring is not None:
        layer, what = next(left), "what links ask with, w·x less the label" if step.residual else "w·x"
        yield [_entry(layer, "score", what, 2, off.get("score"), body.names.index("s"))]
    links = [link for link in step.links if isinstance(link, HeadLink | GridLink)]
    if links:
        layer = next(left)
        at = body.names.index("link")
        yield [_link_entry(link, layer, target, off.get("link"), at) for link in links]
    layer, clip = next(left), step.collect.clip if isinstance(step.collect, Average) else None
    lemma = "signed average" if isinstance(step.collect, Average) else "plain average"
    what = "w after the step, with all that the step errs by"
    moved: Any = body.steps[after]
    yield [_entry(layer, lemma, what, 0, off.get("update"), after if clip is None else moved.of[0])]
    if clip is not None and isinstance(target, Descent):
        known = None
        if path.parts:
            found = clip_error(clip, target.rate, target.threshold)
            known = found.exact, found.rounding
        yield [_entry(next(left), "threshold", "the soft threshold of an entry of w", len(clip), known, after)]


def _link_entry(link: HeadLink | GridLink, layer: Any, target: Descent | ManyLearners, off: Any, place: int) -> Entry:
    """Of many learners nothing is proven but for a prompt, and links up to the reach that is meant to come up."""
    what, ends, heads = f"the link {short_name(str(link.phi))}", (link.low, link.high), layer.heads
    if isinstance(link, GridLink):
        made = _entry(layer, "grid head", what, math.prod(link.atom.sides), off, place)
    else:
        if isinstance(target, ManyLearners):
            ends, heads = (-target.reach, target.reach), link.count
            off = link.facts_on(*ends).error, None
        made = _entry(layer, "scalar head", what, max(map(len, link.parts)), off, place)
    return replace(made, heads=heads, on=ends if math.isfinite(ends[1] - ends[0]) else None)


def _entry(layer: Any, lemma: Any, what: str, anchors: int, off: tuple[Any, Any] | None, place: int) -> Entry:
    return Entry(None, lemma, what, layer.heads, anchors, None, *(off or (None, None)), (place,))


def _off(every: float, rounding: float) -> tuple[float | None, float | None]:
    """What is left beside rounding, and that: of rounding alone less may be known than of all."""
    if not math.isfinite(every):
        return None, None
    rounding = min(rounding, every)
    return every - rounding, rounding

"""One walk through a network: what is known of every feature, layer by layer, until the output is reached.

Features are affine forms in exact quantities of the program (proof.arithmetic.affine_forms): first in the inputs, and
after every claim (lemmas.known) in what it makes of them, such as the exact values of neurons. Linear maps carry forms.
Attention and softmax groups are lowered to readings (proof.arithmetic.readings), and each is explained by the first
lemma that fits: a scalar head, if it is one of the neurons that the program has next; one in which the token is a key
itself, if these are neurons of that kind; a grid, if it has functions of several quantities next; a copy; else the
interval in which a mean of values always lies. The layers of a Repeat are met as often as they run. Everything is read
from the stored weights; of shapes only what was proven. Where no token sees another, any number of tokens is one, as
often as there are tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from anchorhead.errors import AnchorheadError
from anchorhead.lemmas.attention import after_attention, after_neurons_as_tokens
from anchorhead.lemmas.grid_head import after_grid
from anchorhead.lemmas.groups import after_groups, shares
from anchorhead.lemmas.kernel import after_kernel
from anchorhead.lemmas.known import Claim, Known
from anchorhead.lemmas.one_number import after_whole_head
from anchorhead.lemmas.record import Record
from anchorhead.network import Attention, Linear, Network, Repeat, Softmax
from anchorhead.network.network import Layer
from anchorhead.proof.arithmetic.affine_forms import Forms, Sources, after_linear, embedded
from anchorhead.proof.arithmetic.arithmetic import arithmetic_of
from anchorhead.proof.arithmetic.readings import Refusal

MAX_LAYERS = 2_000
"""How many layers are walked through one by one, those of a Repeat counted each time."""


def walk(
    network: Network, claims: Sequence[Claim], sources: Sources, cast: bool = True, record: Record | None = None
) -> tuple[Forms, Sources]:
    """What is known of the input tokens at the end, as forms of what the last claim makes, and these.

    sources  between what the inputs lie, token by token, or as each token's own
    cast     inputs may be of another type than the network's
    record   gets what softmaxes are found to compute
    """
    record = record or Record()
    steps = unrolled(network.layers[1:])
    if network.embed.tokens is None and not all(map(_on_each_token, steps)):
        raise AnchorheadError("a network of any number of tokens that see one another has no affine forms")
    arithmetic = arithmetic_of(network.dtype)
    inputs, others = embedded(network.embed, sources, arithmetic, cast)
    states = network.streams[0].states
    known = Known(inputs, others, states, sources, tuple(claims), arithmetic, network.embed, cast, record)
    while steps:
        record.tokens = len(known.inputs.constant)
        known, taken = _after(known, steps)
        steps = steps[taken:]
        record.passed(taken)
    while known.claims:  # what no layer was found to compute: of what depends on the others, intervals are left
        exact = known.claims[0].after(known.sources)
        inputs = known.inputs.over(known.sources, exact.count)
        known = replace(known, inputs=inputs, sources=exact, claims=known.claims[1:])
    return known.inputs, known.sources


def unrolled(layers: Sequence[Layer]) -> list[Layer]:
    """The layers one by one, those of a Repeat as often as they run."""
    found: list[Layer] = []
    for layer in layers:
        if isinstance(layer, Repeat):
            inner = unrolled(layer.layers)
            if len(found) + len(inner) * layer.times > MAX_LAYERS:
                raise AnchorheadError(
                    f"{layer.times:,} rounds of {len(inner):,} layers: at most {MAX_LAYERS:,} layers are walked through"
                )
            found += inner * layer.times
        else:
            found.append(layer)
    return found


def _on_each_token(layer: object) -> bool:
    """Whether no input token sees another."""
    match layer:
        case Attention():
            return layer.grid is not None or layer.mask in ("self+registers", "registers+states")
        case Linear():
            return not layer.across
    return isinstance(layer, Softmax)


def _after(known: Known, steps: list) -> tuple[Known, int]:
    """What is known after the first steps, and how many that are."""
    match steps:
        case [Attention() as layer]:
            for lemma in (after_whole_head, after_kernel):
                with suppress(Refusal):
                    return lemma(known, layer), 1
    known = known.loose()
    match steps:
        case [Linear() as before, Softmax() as softmax, Linear() as after, *_]:
            with suppress(Refusal):
                return after_groups(known, before, softmax, after), 3
        case [Attention() as layer, Linear() as after, *_] if after.across:
            with suppress(Refusal):
                return after_neurons_as_tokens(known, layer, after), 2
    match steps[0]:
        case Linear() as layer:
            inputs, others = after_linear(layer, known.inputs, known.others, known.sources, known.arithmetic)
            states = 0 if layer.across else known.states
            return replace(known, inputs=inputs, others=others, states=states, embed=None), 1
        case Attention() as layer:
            if layer.grid is not None:
                with suppress(Refusal):
                    return after_grid(known, layer), 1
            return after_attention(known, layer), 1
        case Softmax():
            inputs, others = (shares(x, known.arithmetic) for x in (known.inputs, known.others))
            return replace(known, inputs=inputs, others=others, embed=None), 1
    raise AnchorheadError(f"no lemma knows of a {type(steps[0]).__name__}")

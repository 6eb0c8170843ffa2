"""One walk through a network: what is known of every feature, layer by layer, until the output meets the program's.

Linear maps carry forms. Softmaxes are lowered to readings, and each reading is explained by the first lemma that fits:
a copy or another constant softmax, a scalar head, else the interval that a mean of values always lies in. Only bounded
is what registers read, and what tokens read in the last layer that are not put out, with all that is made of it.
"""

from __future__ import annotations

import numpy as np

from anchorhead.verify.attention import after_attention
from anchorhead.verify.context import Context, Tokens, every
from anchorhead.verify.errors import NotVerified, require
from anchorhead.verify.forms import Forms, joined, summed
from anchorhead.verify.grammar import Attention, Embed, Linear, Network, Repeat, Softmax
from anchorhead.verify.groups import after_groups, shares
from anchorhead.verify.programs.exact import Exact

MAX_LAYERS = 2_000
"""How many layers are followed one by one, those of a Repeat counted each time."""


def walk(network: Network, context: Context) -> Forms:
    """What is known of the tokens that are put out."""
    embed = network.embed
    require(embed.tokens is not None, "a network of any number of tokens is not modelled by this walk")
    tokens = _embedded(embed, context)
    layers = unrolled(network.layers)
    named = max(context.named.units, default=-1)
    require(named < len(layers), f"claims for layer {named + 1} of {len(layers)}")
    place = 0
    while place < len(layers):
        context.tell(place, len(layers), f"layer {place + 1} ({type(layers[place]).__name__})")
        match layers[place : place + 3]:
            case [Linear() as before, Softmax() as softmax, Linear() as after]:
                linear = after_linear(context, before, tokens)
                tokens = after_groups(context, before, softmax, after, tokens, linear, place)
                place += 3
                continue
            case [Linear() as layer, *_]:
                tokens = after_linear(context, layer, tokens)
            case [Attention() as layer, *_]:
                last = place + 1 == len(layers)
                asking = {network.output} if last else {"input", "state", network.output}
                tokens = after_attention(context, layer, tokens, asking, place)
            case [Softmax(), *_]:
                tokens = {kind: shares(forms) for kind, forms in tokens.items()}
        place += 1
    return tokens[network.output]


def unrolled(layers: tuple) -> list:
    found: list = []
    for layer in layers:
        if isinstance(layer, Repeat):
            inner = unrolled(layer.layers)
            require(len(found) + len(inner) * layer.times <= MAX_LAYERS, f"more than {MAX_LAYERS} layers")
            found += inner * layer.times
        else:
            found.append(layer)
    return found


def _embedded(embed: Embed, context: Context) -> Tokens:
    inputs = context.exact.of(0)
    tokens, features = inputs.shape
    require((embed.tokens, embed.weight.shape[2]) == (tokens, features), "the program takes another input")
    # an input below the smallest normal number may be taken for 0
    x = Forms(inputs.ids, *inputs.arrays[:3], np.full((tokens, features), context.model.tiny))
    source = np.arange(tokens) if embed.source is None else embed.source
    bias = np.broadcast_to(embed.bias, (len(source), embed.bias.shape[1]))
    if len(embed.weight) == 1:
        found = context.map(embed.weight[0], bias, x.tokens(source))
    else:
        rows = [context.map(embed.weight[i], bias[i], x.tokens([int(p)])) for i, p in enumerate(source)]
        found = joined(rows)
    extra = {"register": embed.registers, "state": embed.states}
    return {"input": found, **{kind: Forms.constants(rows) for kind, rows in extra.items() if len(rows)}}


def after_linear(context: Context, layer: Linear, tokens: Tokens) -> Tokens:
    """On each token, or across all of them; a mix is a sum of its own."""
    if not layer.across:
        weight = layer.on_features()
        return {kind: context.map(weight, layer.bias, forms) for kind, forms in tokens.items()}
    x = every(tokens)
    if layer.mix is not None:
        each = context.map(layer.on_features(), None, x)
        found = _turned(context.map(layer.mix, None, _turned(each)))
        return {"input": found if layer.bias is None else context.map(np.eye(layer.outputs), layer.bias, found)}
    out, outputs = layer.weight.shape[:2]
    flat = x.reshaped(1, x.shape[0] * x.shape[1])
    bias = None if layer.bias is None else np.broadcast_to(layer.bias, (out, outputs)).reshape(1, -1)
    return {"input": context.map(layer.weight.reshape(out * outputs, -1), bias, flat).reshaped(out, outputs)}


def _turned(forms: Forms) -> Forms:
    """Tokens and features exchanged."""
    return Forms(forms.ids, *(np.swapaxes(array, 0, 1) for array in forms.arrays))


def compared(found: Forms, exact: Exact) -> Forms:
    """What is computed less the program's output, whose coefficients should cancel."""
    target = exact.output
    if found.shape != target.shape:
        raise NotVerified(f"the network puts out {found.shape} (tokens, features), the program {target.shape}")
    minus = Forms(target.ids, -target.coefficients, -target.constant, target.approximation, target.rounding)
    return summed([found, minus], exact.quantities)

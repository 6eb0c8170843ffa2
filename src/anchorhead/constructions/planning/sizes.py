"""How large a converted network becomes, by formula: what the layouts would build, counted and not built.

Parameters are the numbers that are stored. Multiply-adds are the products of one input sequence as the module computes
them with dense weights: linear maps, queries, keys and values of the input tokens, logits, weighted sums, outputs and
skips. Keys and values of registers are the same for every input and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from anchorhead.constructions.build_options import BuildOptions
from anchorhead.constructions.layouts import sequence_layout
from anchorhead.constructions.layouts.laid_out import FAR, out_of_reach
from anchorhead.constructions.neuron_layers import Laid, Neurons
from anchorhead.constructions.planning.uniform_estimates import UniformEstimate, lengths
from anchorhead.proof.heads.activation_head import ActivationHead


@dataclass(frozen=True)
class Sizes:
    """One network, or the largest numbers of several.

    layers         Embed, Linear, Attention and Softmax
    heads          of all attention layers, those that gather the sequence included, and the groups of a Softmax
    anchors        of one softmax, at most: the paper's p
    keys           over how many tokens, or logits of a group, one softmax runs: anchors times tokens, and inputs
    beta           the paper's inverse temperature, where its anchors are used
    largest_logit  a bound on every |logit|, of anchors and of what is put out of reach
    multiply_adds  for one input sequence
    """

    layers: int
    heads: int
    anchors: int
    keys: int
    beta: float | None
    parameters: int
    largest_logit: float
    multiply_adds: int

    def joined(self, other: Sizes) -> Sizes:
        """The larger number of each."""
        pairs = [(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)]
        return Sizes(*(two if one is None else one if two is None else max(one, two) for one, two in pairs))


def sizes_of(laid: Laid, tokens: int, options: BuildOptions) -> Sizes:
    """The sizes of the network that would be built of these neurons in this way."""
    tally = (_Transformer if options.layout == "transformer" else _Sequence)(laid, tokens, options.causal)
    {"two-layer": tally.two_layer, "attention-softmax": tally.attention_softmax, "deep": tally.deep}[options.form]()
    shapes = [shape for neurons in laid.neurons for shape in neurons.shapes]
    betas = [shape.beta for shape in shapes if isinstance(shape, UniformEstimate)]
    # two things can put an anchor out of reach at once: its own offset, and a gate
    logit = laid.largest_logit + 2 * out_of_reach(laid.largest_logit)
    return Sizes(
        layers=tally.layers,
        heads=tally.heads,
        anchors=max((max(lengths(shape)) for shape in shapes), default=0),
        keys=tally.keys,
        beta=max(betas, default=None),
        parameters=tally.parameters,
        largest_logit=max(logit, 2 * FAR) if shapes else 2 * FAR,
        multiply_adds=tally.multiply_adds,
    )


def width_of(laid: Laid, tokens: int, options: BuildOptions) -> int:
    """How many features a token has when the first neurons are asked for: the terms of a query, zeros included."""
    inputs = len(laid.middle)
    if options.layout == "transformer" and options.form != "attention-softmax":
        return inputs + _Transformer(laid, tokens, options.causal).constants(registers=True)
    if options.form != "attention-softmax":
        return inputs
    extra = (
        tokens
        if options.layout == "sequence"
        else _Transformer(laid, tokens, options.causal).constants(registers=False)
    )
    return inputs + inputs // tokens + extra


def dealt(laid: Laid, tokens: int) -> bool:
    """Whether the attention-softmax form in the sequence layout deals pre-activations out, or mixes logits at once."""
    (neurons,) = laid.neurons
    size = neurons.count * neurons.parts * longest(neurons) * tokens * neurons.count
    return size <= sequence_layout.MAX_DEALT


def longest(neurons: Neurons) -> int:
    """The anchors of the longest part of any shape."""
    return max(length for shape in neurons.shapes for length in lengths(shape))


def part_length(shape: ActivationHead, part: int) -> int:
    """The anchors of a part; one that the shape does not have is a single anchor of value 0."""
    return lengths(shape)[part] if part < len(shape.parts) else 1


class _Tally:
    """Layers are told one after the other; what they hold and compute adds up."""

    def __init__(self, laid: Laid, tokens: int, causal: bool) -> None:
        self.laid, self.n, self.causal = laid, tokens, causal and tokens > 1
        self.d, self.o = len(laid.middle) // tokens, len(laid.bias) // tokens
        self.layers = self.heads = self.parameters = self.multiply_adds = self.keys = 0

    def embed(self, width: int, positions: int, registers: int = 0) -> None:
        self.layers += 1
        self.parameters += width * (self.d + positions + registers)
        self.multiply_adds += self.n * width * self.d

    def linear(self, weight: int, bias: int, tokens: int) -> None:
        self.layers += 1
        self.parameters += weight + bias
        self.multiply_adds += weight * tokens

    def attention(
        self,
        heads: int,
        size: int,
        width: int,
        values: int,
        outputs: int,
        key_heads: int,
        value_heads: int,
        asking: int,
        registers: int,
        skip: bool,
        bias: int = 0,
    ) -> None:
        """`asking` tokens ask and are seen, `registers` are seen."""
        self.layers += 1
        self.heads += heads
        self.keys = max(self.keys, asking + registers)
        query, key, value = heads * size * width, key_heads * size * width, value_heads * values * width
        output, skipped = heads * outputs * values, outputs * width if skip else 0
        self.parameters += query + key + value + output + skipped + bias
        self.multiply_adds += asking * (query + key + value + output + skipped)
        self.multiply_adds += heads * asking * (asking + registers) * (size + values)

    def softmax(self, groups: int, size: int) -> None:
        self.layers += 1
        self.heads += groups
        self.keys = max(self.keys, size)


class _Transformer(_Tally):
    """See transformer_layout."""

    @property
    def tables(self) -> list[tuple[ActivationHead, int, bool]]:
        """The columns of anchors: a shape, a part of it, and whether it is for the last layer of several tokens."""
        found: dict[tuple[ActivationHead, int, bool], None] = {}
        for number, neurons in enumerate(self.laid.neurons, start=1):
            last = number == len(self.laid.neurons) and self.n > 1
            for k in np.unique(neurons.assigned):
                found |= dict.fromkeys((neurons.shapes[k], part, last) for part in range(neurons.parts))
        return list(found)

    def constants(self, registers: bool) -> int:
        """Features that hold no input: 1, positions twice, and what registers carry."""
        positions = 2 * self.n if self.n > 1 else 0
        if not registers:
            return 1 + positions + self.causal
        columns = sum(2 + (self.n if last else 1) for _, _, last in self.tables)
        return 2 + positions + self.causal + columns + (self.n if self.n > 1 else 0)

    @property
    def rows(self) -> int:
        """Registers."""
        need = [part_length(shape, part) * (self.n if last else 1) for shape, part, last in self.tables]
        return max(need, default=0) + self.causal

    def gather(self, width: int, rows: int, after: int, skip: bool, bias: int = 0) -> None:
        self.attention(self.n, 1, width, self.d, after, self.n, 1, self.n, rows, skip, bias)

    def two_layer(self) -> None:
        constants = self.constants(registers=True)
        width = self.n * self.d + constants
        self.embed(self.d + constants, self.n, self.rows)
        self.gather(self.d + constants, self.rows, width, skip=True)
        self.linear(width * width, width, self.n)
        self.compute(self.laid.neurons[0], width, last=True)
        self.readout()

    def deep(self) -> None:
        constants = self.constants(registers=True)
        self.embed(self.d + constants, self.n, self.rows)
        width = self.n * self.d + constants
        if self.n > 1:
            self.gather(self.d + constants, self.rows, width, skip=True)
        for number, neurons in enumerate(self.laid.neurons, start=1):
            self.compute(neurons, width, last=number == len(self.laid.neurons))
            width += neurons.count - neurons.weight.shape[1]
        if self.laid.neurons:
            self.readout()
        else:
            self.linear(self.o * width, self.o, self.n)

    def compute(self, neurons: Neurons, width: int, last: bool) -> None:
        gated = last and self.n > 1
        kinds = len(np.unique(neurons.assigned)) * neurons.parts
        heads = neurons.count * neurons.parts
        after = self.o + (self.n if gated else 0) if last else neurons.count + width - neurons.weight.shape[1]
        shared = 1 if kinds == 1 else heads
        columns = self.n if gated else 1
        size = 3 + (self.n if gated else 0)
        skip = gated or not last
        self.attention(heads, size, width, columns, after, shared, shared, self.n, self.rows, skip)

    def readout(self) -> None:
        after = self.o + (self.n if self.n > 1 else 0)
        self.linear(self.o * after, 0 if self.n > 1 else self.o, self.n)

    def attention_softmax(self) -> None:
        (neurons,) = self.laid.neurons
        width = self.d + self.constants(registers=False)
        several = self.n > 1
        block, blocks = 1 + (self.n if several else 0), neurons.count * neurons.parts + several
        size = longest(neurons) * self.n
        self.embed(width, self.n, int(self.causal))
        self.gather(width, int(self.causal), blocks * block, skip=several, bias=blocks * block)
        self.linear(blocks * size * block, blocks * size, self.n)
        self.softmax(blocks, size)
        self.linear(self.o * blocks * size, self.o, self.n)


class _Sequence(_Tally):
    """See sequence_layout."""

    def two_layer(self) -> None:
        self.copied()
        self.attended(self.laid.neurons[0], self.n, self.d)
        self.readout()

    def deep(self) -> None:
        self.embed(self.d, self.n)
        tokens, features = self.n, self.d
        for neurons in self.laid.neurons:
            self.attended(neurons, tokens, features)
            tokens, features = self.places(neurons), 1
        if self.laid.neurons:
            self.readout()
        else:
            self.linear(self.n * self.o * self.n * self.d, self.n * self.o, 1)

    def attention_softmax(self) -> None:
        (neurons,) = self.laid.neurons
        tokens, size = neurons.count * neurons.parts, longest(neurons)
        if dealt(self.laid, self.n):
            width = self.d + self.n
            self.embed(width, self.n)
            self.attention(
                self.n, 1, width, self.d, neurons.count, self.n, 1, self.n, 0, skip=False, bias=neurons.count
            )
            self.linear(tokens * size * self.n * neurons.count, tokens * size, 1)
        else:
            self.copied()
            self.linear(tokens * size * self.n * self.d, tokens * size, 1)
        self.softmax(1, size)
        self.linear(self.n * self.o * tokens * size, self.n * self.o, 1)

    def copied(self) -> None:
        width = self.d + self.n
        self.embed(width, self.n)
        self.attention(1, self.n, width, self.d, self.d, 1, 1, self.n, 0, skip=False)

    def places(self, neurons: Neurons) -> int:
        """Tokens: as many as neurons, or as anchors of all shapes."""
        kinds = np.unique(neurons.assigned)
        rows = sum(max(part_length(neurons.shapes[k], part) for part in range(neurons.parts)) for k in kinds)
        return max(neurons.count, rows)

    def attended(self, neurons: Neurons, tokens: int, features: int) -> None:
        places, parts = self.places(neurons), neurons.parts
        kinds = len(np.unique(neurons.assigned))
        gates = kinds if kinds > 1 else 0
        width = 2 + 3 * parts + 2 * gates
        self.linear(places * width * tokens * features, places * width, 1)
        self.attention(parts, 2 + gates, width, 1, 1, parts, parts, places, 0, skip=False)

    def readout(self) -> None:
        self.linear(self.n * self.o * self.places(self.laid.neurons[-1]), self.n * self.o, 1)

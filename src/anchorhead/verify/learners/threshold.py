"""The layer of a soft threshold at the end of a step, a head for each entry of w that is shrunk.

Tokens hold slope, offset and value of a clip. The state sees itself and all registers and asks with (w_j, 1): what it
reads is a softmax on one number w_j (clip.py). The skip keeps w, and a head subtracts what it reads.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from anchorhead.verify.errors import require
from anchorhead.verify.grammar import Attention
from anchorhead.verify.learners.clip import Clip
from anchorhead.verify.learners.heads import part_of
from anchorhead.verify.learners.written import Features, Given, attention
from anchorhead.verify.rounding import SLACK


def shrinking(given: Given, f: Features, one: str) -> tuple[Attention, Clip]:
    """The layer, written, and what it computes. one: a feature that is 1 in the state."""
    target, embed = given.target, given.network.embed
    require(not target.momentum, "with momentum and a threshold at once nothing is known")
    shrunk = [(j, tau) for j, tau in enumerate(target.thresholds) if tau is not None]
    query = np.stack([np.concatenate([f("w")[[j]], f(one)]) for j, _ in shrunk])
    output = np.stack([-f("w")[[j]].T for j, _ in shrunk])
    slope, offset, value = f("clip")
    layer = attention(query, np.stack([slope, offset]), value[None], output, np.eye(f.width), "self+registers")
    anchors = np.concatenate([embed.registers, embed.states])[:, f.at["clip"]]
    tau = shrunk[0][1]
    off = float(abs(tau - Fraction(float(tau)))) * SLACK
    aim = 0.01 * given.stated / (target.times * math.sqrt(target.size))
    return layer, Clip(part_of(anchors, given.model), float(tau), off, len(shrunk), aim)

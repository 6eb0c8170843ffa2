"""Learners as attention layers: gradient descent in a forward pass, on the examples of a prompt."""

from anchorhead.incontext.gradient_descent import gradient_descent
from anchorhead.incontext.learner import Learner
from anchorhead.incontext.many import ManyLearner, many_learners
from anchorhead.incontext.prompts import prompt, standardised
from anchorhead.incontext.trace import Trace, trace
from anchorhead.targets.losses import LOSSES, Loss, link, named_loss

__all__ = [
    "LOSSES",
    "Learner",
    "Loss",
    "ManyLearner",
    "Trace",
    "gradient_descent",
    "link",
    "many_learners",
    "named_loss",
    "prompt",
    "standardised",
    "trace",
]

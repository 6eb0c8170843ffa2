"""Learners as attention layers: gradient descent in a forward pass, on the examples of a prompt."""

from anchorhead.incontext.gradient_descent import gradient_descent
from anchorhead.incontext.learner import Learner
from anchorhead.incontext.prompts import prompt, standardised
from anchorhead.targets.losses import LOSSES, Loss, link, named_loss

__all__ = ["LOSSES", "Learner", "Loss", "gradient_descent", "link", "named_loss", "prompt", "standardised"]

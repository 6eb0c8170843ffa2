"""One network, many learners: loss, rate, penalty and start are what the prompt says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anchorhead.certificate import Certificate
from anchorhead.constructions.build_request import BuildRequest
from anchorhead.constructions.learners.approximating import learner_of
from anchorhead.constructions.learners.link_heads import link_head
from anchorhead.constructions.learners.many_prompts import many_prompt
from anchorhead.constructions.learners.networks import many_network
from anchorhead.constructions.learners.prompts import array_of
from anchorhead.constructions.learners.written import step_of
from anchorhead.decimals import counted
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.language.program import Program
from anchorhead.language.targets.losses import Loss
from anchorhead.language.targets.many_learners import ManyLearners, Rows, rows_of
from anchorhead.lemmas.learners.prompt import Prompt, steepness
from anchorhead.lemmas.learners.prove import prove_rows
from anchorhead.lemmas.learners.steps import Step
from anchorhead.network import Network, Outside
from anchorhead.network.dtypes import dtype_name
from anchorhead.network.guard import checked_outside
from anchorhead.network.named_inputs import the_only
from anchorhead.network.tensors import as_numbers, without_torch


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ManyLearner(Network):
    """net(net.prompt(X, y, loss="huber", rate=0.3, penalty=0.1)) are the fitted weights; path=True gives all steps."""

    @cached_property
    def learners(self) -> ManyLearners:
        """What it approximates."""
        return learner_of(self, ManyLearners)

    @cached_property
    def step(self) -> Step:
        """The numbers that are free in its step; CertificateError where it is not the network of its learners."""
        return step_of(self, self.learners)

    def prompt(
        self,
        X: Any,
        y: Any,
        loss: str,
        rate: float,
        penalty: float = 0.0,
        start: Any = None,
        standardise: bool = False,
    ) -> Any:
        """The prompt of examples X (n, d) with labels y (n,).

        loss      one of the network's
        rate      w <- w - rate gradient
        penalty   ridge: the penalty |w|^2 / 2 times this, the intercept left out
        start     (weights,) where the descent starts; 0 if not given. So a prompt of some of the examples goes on from
                  where one of others ended: minibatches
        """
        tensors = isinstance(X, Tensor)
        examples, labels = (array_of(one, name).astype(np.float64) for name, one in (("X", X), ("y", y)))
        begin = without_torch(start, "start")
        made = many_prompt(self.learners, examples, labels, loss, rate, penalty, begin, standardise).astype(self.dtype)
        return torch.from_numpy(made).to(X.device) if tensors else made

    def __call__(self, *inputs: Any, outside: Outside | None = None, path: bool = False, **named: Any) -> Any:
        """The fitted weights, (..., weights); with path, (..., steps + 1, weights) of all steps from the start on."""
        x = the_only(inputs, named, "a prompt, as net.prompt(X, y) makes it")
        way = checked_outside(self.outside if outside is None else outside)
        if way != "ignore":
            self._require_safe(self._rows(x))
        if not path:
            return self._calls.run(x, way)[..., 0, :]
        return self._calls.path(x, way)[..., 0, :]

    def exact(self, x: Any, path: bool = False) -> Float[np.ndarray, "..."]:
        """What the descent that the prompt's rows spell out gives itself, in float64."""
        learners = self.learners
        paths = [learners.path(rows) for rows in self._rows(x)]
        found = np.array(paths).reshape(*np.shape(x)[:-2], learners.steps + 1, learners.weights)
        return found if path else found[..., -1, :]

    def _require_safe(self, sets: list[Rows]) -> None:
        """Refuses a prompt whose descent diverges; links without a largest slope are left out of account."""
        for rows in sets:
            steepest = steepness(self._slopes[rows.loss], Prompt.of_rows(rows))
            if steepest > 2 * (1 + 1e-2):
                raise AnchorheadError(
                    f"the rate is too large for the {len(rows.a)} rows of this prompt: gradient descent diverges. At "
                    f"most {2 / steepest:.4g} of it is safe; standardised columns allow larger ones"
                )

    @cached_property
    def _slopes(self) -> Float[np.ndarray, " losses"]:
        return np.array([_slope(loss, self.learners.reach, self.dtype) for loss in self.learners.losses])

    def certify(self, x: Any) -> Certificate:
        """A certificate for one prompt: a bound on |w_t - exact w_t| at all steps t, exact being what its rows say."""
        array = as_numbers(without_torch(x, "a prompt"))
        cast = array.astype(self.dtype)
        sets = self._rows(cast)
        if len(sets) != 1:
            raise AnchorheadError(f"{len(sets)} prompts: certify one at a time")
        learners = self.learners
        where = f"{learners}, for one prompt of {counted(len(sets[0].a), 'row')}"
        found = prove_rows(self.step, learners, sets[0], where, self.dtype)
        if found is None:
            raise AnchorheadError(
                f"nothing is proven for this prompt in {self.dtype}: its scores may leave the range in which heads "
                f"serve. Use {'float64, ' if self.dtype == 'float32' else ''}fewer steps, or more than "
                f"reach={learners.reach:g}"
            )
        given = cast.reshape(cast.shape[-2:]).astype(np.float64)
        return found.certificate(Box.of((given, given)), self.dtype)

    def _rows(self, x: Any) -> list[Rows]:
        array = as_numbers(without_torch(x, "a prompt"))
        learners = self.learners
        if array.ndim < 2 or array.shape[-1] != learners.columns.count or array.shape[-2] % 2:
            raise AnchorheadError(
                f"a prompt of shape {array.shape}: needed is (..., tokens, {learners.columns.count}), as net.prompt "
                "makes it"
            )
        return [rows_of(one, learners) for one in array.reshape(-1, *array.shape[-2:])]


def build_many(target: ManyLearners, program: Program, request: BuildRequest) -> ManyLearner:
    """The network of many learners."""
    return ManyLearner.of(many_network(target, request.dtype)).with_(program=program, outside=request.outside)


def _slope(loss: Loss, reach: float, dtype: str) -> float:
    """The largest slope of a link on the whole line, 0 if there is none."""
    facts = link_head(loss.link, (-reach, reach), dtype_name(dtype)).facts
    bounded = loss.link.affine() is not None or (np.isinf(facts.low) and np.isinf(facts.high))
    return max(facts.slope, 0.0) if bounded else 0.0

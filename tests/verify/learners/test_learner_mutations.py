"""The verification of learners broken in one place: some test of it then fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.files import Stored
from anchorhead.verify.grids import rounding as grid_rounding
from anchorhead.verify.learners import (
    average,
    body,
    box,
    form,
    growth,
    heads,
    held,
    learner,
    link,
    link_error,
    prompt,
    reading,
    score,
    target,
    threshold,
    update,
)

from ..mutations.mutations import forget
from . import forged_learners as forged
from . import test_forged_learners as of_forged
from . import test_learner_lemmas as lemmas
from . import test_learner_many as of_many
from . import test_learner_paths as paths
from . import test_learners as learners
from .learner_files import changed

Noticed = Callable[[], bool]
"""Whether a claim of the other tests fails."""


def fails(test: Callable[..., None], *args: Any) -> Noticed:
    def noticed() -> bool:
        try:
            test(*args)
        except (AssertionError, NotVerified, pytest.fail.Exception):
            return True
        return False

    return noticed


def accepts(name: str, change: Callable[[Stored], Stored], certificate: dict | None = None) -> Noticed:
    """A file that must be refused is accepted."""
    return lambda: learners.accepted(change(learners.stored(name)), certificate)


def weights(end: str, change: Callable[[np.ndarray], np.ndarray], which: int = 0) -> Callable[[Stored], Stored]:
    def changes(file: Stored) -> Stored:
        names = sorted(name for name in file.tensors if name.startswith("layers.") and name.endswith(end))
        return changed(file, names[which], change)

    return changes


def near(array: np.ndarray) -> np.ndarray:
    """What is out of reach comes within."""
    return np.where(array <= -1600, -850.0, array)


def more(array: np.ndarray, place: tuple[int, ...], by: float = 1.0) -> np.ndarray:
    array[place] += by
    return array


def _conditions(name: str, kind: str, changes: dict) -> dict:
    return learners._with_condition(name, kind, changes)


@dataclass(frozen=True)
class Mutation:
    """owner.name replaced by make(what was there)."""

    owner: Any
    name: str
    make: Callable[[Any], Any]
    noticed: Noticed


def _of_result(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda f: lambda *args, **named: change(f(*args, **named))


def _uneven(file: Stored) -> Stored:
    """A point of a grid with another value."""
    value = list(file.network["layers"][0]["features"]).index("value of the grid")
    return weights("registers", lambda array: more(array, (7, value), 0.5))(file)


MIRROR, SLOW = (fails(paths.test_exact_paths_keep_to_their_invariants, name) for name in ("a mirror", "slow"))
LOGISTIC = "logistic, sequence, float32"


def _by_constants(f: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Logits as if all quantities were 0."""

    def heard(self: held.Symbols, *both: held.Held) -> np.ndarray:
        fixed = [held.Held(np.where(one.symbol == held.ONE, one.number, 0.0), one.symbol) for one in both]
        logits = fixed[0].number @ fixed[1].number.T
        return logits + 800 > np.nanmax(logits, axis=1, keepdims=True)

    return heard


def _one_pass(self: body.Body, start: held.Held, steps: tuple[Any, ...]) -> held.Held:
    """What tokens hold after the first step, taken for what they hold after all."""
    for t in self.carriers:
        start.number[t, self.w + self.v], start.symbol[t, self.w + self.v] = 1.0, self.of_w[0] + self.of_v[0]
    end = start
    for layer in steps:
        end = self.layers.after(layer, end)
    return end


def _read_by_scores(f: Callable[..., list[held.Read]]) -> Callable[..., list[held.Read]]:
    """What is read with constants and labels alone is nothing."""

    def reads(self: held.Layers, *args: Any) -> list[held.Read]:
        given = [held.ONE, *self.symbols.rounded, *self.symbols.rounded.values()]
        found = []
        for one in f(self, *args):
            moved = (one.terms != 0) & ~(np.isin(one.asks, given) & np.isin(one.holds, given))
            nothing = replace(one.values, number=0 * one.values.number)
            found.append(one if moved.any() else replace(one, values=nothing))
        return found

    return reads


def _though_it_vanished(f: Callable[..., held.Held]) -> Callable[..., held.Held]:
    """Powers of two are taken for factors that lose nothing: numbers are multiplied afterwards."""

    def summed(self: held.Symbols, weight: np.ndarray, x: held.Held) -> held.Held:
        by = np.where((x.symbol != held.ONE) & (np.abs(x.number) < 1) & (x.number != 0), 2.0**200, 1.0)
        found = f(self, weight / by, held.Held(x.number * by, x.symbol))
        return found

    return summed


def _both(self: held.Heard, asks: int, *holds: int) -> np.ndarray:
    """Products of the same numbers are added up."""
    here = (self.asks == asks) & np.isin(self.holds, holds)
    found = np.where(here, self.rest, 0.0).sum(axis=1)
    self.rest[here] = 0.0
    return found


MUTATIONS = {
    "box: the largest residual is the root mean square": Mutation(
        box, "invariant", _of_result(lambda along: replace(along, most=along.rms)), MIRROR
    ),
    "box: w is what one step pushes": Mutation(box.Along, "weight", lambda f: lambda self, t: self.push, SLOW),
    "box: a push is half of one": Mutation(
        box, "invariant", _of_result(lambda along: replace(along, push=along.push / 2)), SLOW
    ),
    "box: residuals of momentum are those without": Mutation(
        box, "invariant", _of_result(lambda along: replace(along, rms=along.rms / 3)),
        fails(paths.test_exact_paths_keep_to_their_invariants, "with momentum"),
    ),
    "box: arguments reach half as far": Mutation(
        box, "invariant", _of_result(lambda along: replace(along, low=along.low / 2, high=along.high / 2)), MIRROR
    ),
    "box: links are smaller than they are": Mutation(
        box, "between", _of_result(lambda ends: (0.9 * ends[0], 0.9 * ends[1])),
        fails(paths.test_a_box_keeps_to_what_its_conditions_say),
    ),
    "average: examples push as their mean does": Mutation(
        lemmas, "box_moments", _of_result(lambda at: replace(at, pushes=at.pushes / 1.01)),
        fails(lemmas.test_the_pushes_of_examples_are_as_long_as_is_said),
    ),
    "growth: momentum does not add up": Mutation(
        growth.Drift, "step", lambda f: lambda self, error, apart, *more: f(replace_momentum(self), error, apart),
        fails(lemmas.test_errors_grow_no_faster_than_is_said, 0.9, False),
    ),
    "growth: another second derivative every time is no matter": Mutation(
        growth.Varying, "bound", lambda f: property(lambda self: self.norm / 2),
        fails(lemmas.test_errors_grow_no_faster_than_is_said, 0.5, True),
    ),
    "growth: tokens round alike": Mutation(
        growth.Apart, "step", lambda f: lambda self, *by: f(self, *by[:3], 0.0),
        fails(paths.test_tokens_come_no_further_apart_than_is_said, 0.0),
    ),
    "growth: norms are traces": Mutation(
        growth, "SQUARINGS", lambda n: 0, fails(lemmas.test_curvature_is_bounded_closely)
    ),
    "average: links are not wrong": Mutation(
        average.Average, "error", lambda f: lambda self, rate, at, by: f(self, rate, replace(at, wrong_pull=0.0), by),
        fails(lemmas.test_links_that_are_wrong_move_the_gradient_by_what_is_said),
    ),
    "average: no rounding": Mutation(
        average.Average, "_rounding", lambda f: lambda *args: 0.0,
        fails(lemmas.test_rounding_that_is_chosen_against_signed_averages),
    ),
    "mean: weights do not round": Mutation(
        average.Mean, "error", _of_result(lambda found: (found[0], 0.0, found[2])),
        fails(paths.test_rounding_that_is_chosen_against_plain_means),
    ),
    "mean: any rate will do": Mutation(
        average.Mean, "error", lambda f: lambda self, rate, *more: f(self, -self.output, *more),
        fails(paths.test_rounding_that_is_chosen_against_plain_means),
    ),
    "score: tanh is a line": Mutation(
        score.Score, "distance", _of_result(lambda found: 0 * found),
        fails(lemmas.test_scores_are_as_far_from_their_arguments_as_is_said),
    ),
    "link error: slopes are 0": Mutation(
        link_error, "slopes", _of_result(lambda ends: (0.0, 0.0)),
        fails(paths.test_links_are_off_by_slopes_times_scores),
    ),
    "heads: sums over w do not round": Mutation(
        heads.Heads, "_wrong", _of_result(lambda found: 0 * found),
        fails(paths.test_logits_that_are_sums_over_w_may_be_off_by_what_is_said, "one argument"),
    ),
    "heads: the grid's logits round like inputs": Mutation(
        grid_rounding, "axis_errors", lambda f: lambda grid, *more: f(replace(grid, wrong=()), *more),
        fails(paths.test_logits_that_are_sums_over_w_may_be_off_by_what_is_said, "a grid"),
    ),
    "link error: a grid is as good as it is allowed to be": Mutation(
        link_error.LinkError, "prove_grid", lambda f: lambda self: None, accepts("two variables", _uneven),
    ),
    "link: slopes are those of the middle": Mutation(
        link, "quotients", lambda f: lambda phi, name, a, b, others: f(
            phi, name, ((a + b) / 2).mid(), ((a + b) / 2).mid(), {"y": others["y"].mid()}),
        fails(paths.test_slopes_and_ranges_of_links_of_two_variables),
    ),
    "link: one label will do": Mutation(
        link.Link, "strips", lambda f: property(lambda self: [(0.0, 0.0)]),
        fails(paths.test_slopes_and_ranges_of_links_of_two_variables),
    ),
    "clip: thresholds have no error": Mutation(
        threshold.Clip, "error", lambda f: lambda *args: 0.0, accepts("lasso", forged.another_threshold),
    ),
    "update: stored factors are right": Mutation(
        update.Update, "error", lambda f: lambda self, *more: f(replace(self, wrong=0.0), *more),
        accepts("ridge with an intercept", weights("skip.weight", lambda a: more(a, (5, 5), 1e-6))),
    ),
    "held: symbols are 0": Mutation(
        held.Symbols, "heard", _by_constants, accepts("poisson, sequence", weights("query", near)),
    ),
    "prompt: no rate is too large": Mutation(
        prompt.PromptPath, "_between", lambda f: lambda self: _slowly(f, self),
        lambda: _steep_accepted(),
    ),
    "conditions: any limit will do": Mutation(
        learner, "number", lambda f: lambda one, name: min(f(one, name), 2.0) if name == "limit" else f(one, name),
        lambda: learners.accepted(
            learners.stored("squared"), _conditions("squared", "safe rate", {"limit": 2.1})
        ),
    ),
    "conditions: any argument will do": Mutation(
        learner, "ARGUMENTS", lambda known: dict.fromkeys(known, "s - y"),
        lambda: learners.accepted(
            learners.stored(learners.CURVED), _conditions(learners.CURVED, "keeps within", {"quantity": "s - y"})
        ),
    ),
    "held: what other links read is heard at 0 or not at all": Mutation(
        held.Symbols, "heard", _by_constants,
        fails(of_forged.test_forged_files_of_many_learners_are_refused, forged.steep_anchors_of_others),
    ),
    "reading: rows of either sign need not agree": Mutation(
        reading, "alike", lambda f: lambda found, what: found[0],
        accepts("logistic", lambda file: forged.put(file, "layers.0.registers", (-1, _value(file)), 9.0)),
    ),
    "form: it does not matter what else depends on a label": Mutation(
        link, "phi_of", lambda f: lambda g, form, *more: f(g, form, *more) or f(g, "both"),
        fails(paths.test_the_forms_of_links, "tanh(s - 2*y)"),
    ),
    "form: products are sums": Mutation(
        form, "_line", lambda f: lambda op, *more: f("add" if op == "mul" else op, *more),
        fails(paths.test_which_links_are_lines, "2*x - 1"),
    ),
    "update: the skip is added last": Mutation(
        reading, "update_of", _of_result(lambda found: replace(found, roundings=(1, 3, 3))),
        fails(of_forged.test_what_heads_read_is_added_to_w_in_any_order, "squared, float32"),
    ),
    "finite: numbers may overflow": Mutation(
        learner, "require_finite", lambda f: lambda *args: None,
        fails(learners.test_numbers_that_may_overflow_are_refused),
    ),
    "held: a skip leaves everything as it is": Mutation(
        held.Layers, "_kept", lambda f: lambda self, skip, x: held.Held(x.number.copy(), x.symbol.copy()),
        fails(learners.test_a_speed_that_changes_before_it_is_used_is_refused, "v1", "asks"),
    ),
    "reading: every token reads an example of its own": Mutation(
        reading.Reading, "_examples", lambda f: lambda self, reads, t: [self.body.carriers.index(t)],
        accepts(LOGISTIC, forged.an_example_twice),
    ),
    "held: products of the same numbers are one": Mutation(
        held.Heard, "take", lambda f: _both, accepts(LOGISTIC, forged.slopes_in_two),
    ),
    "held: what vanishes may be multiplied again": Mutation(
        held.Symbols, "summed", _though_it_vanished, accepts("squared, float32", forged.drained),
    ),
    "mean: pushes are off by the same factor in all entries": Mutation(
        average.Mean, "error", lambda f: lambda self, rate, at, by: f(
            self, rate, replace(at, spread=at.wrong_pull / at.wrong), by),
        fails(paths.test_entries_of_pushes_are_off_each_on_their_own),
    ),
    "target: a program need not be the one that is written": Mutation(
        target, "same", lambda f: lambda one, other: True,
        fails(learners.test_another_program_or_structure_is_refused, "start"),
    ),
    "body: what holds after one step holds after all": Mutation(
        body.Body, "_settled", lambda f: _one_pass, accepts("logistic lasso", forged.reference_that_moves),
    ),
    "held: what is off reads nothing": Mutation(
        held.Layers, "_reads", _read_by_scores, accepts("two variables", forged.something_that_is_off),
    ),
    "held: what heads made is small": Mutation(
        held.Symbols, "make", lambda f: lambda self, made: _small(self, f(self, made)),
        lambda: not _refused_of_many(forged.links_of_registers),
    ),
    "held: several tokens are one": Mutation(
        held.Layers, "single", lambda f: lambda self, keys: True, accepts("lasso", forged.anchors_of_rows),
    ),
    "held: rows of a sort are one token": Mutation(
        held.Layers, "single", lambda f: lambda self, keys: True,
        accepts("tanh, sequence", forged.rows_that_are_anchors),
    ),
    **{
        f"held: what cancels does not matter, {change.__name__}": Mutation(
            held.Heard, "done", lambda f: lambda self: None, accepts(name, change)
        )
        for change, name in of_forged.FORGED if change in (forged.scores_drowned, forged.residuals_drowned)
    },
    "held: what rounds is silent": Mutation(
        held.Symbols, "heard", _by_constants, accepts(LOGISTIC, forged.silence_drowned)
    ),
}  # fmt: skip


def _value(file: Stored) -> int:
    return list(file.network["layers"][0]["features"]).index("value of the link")


def _small(symbols: held.Symbols, symbol: int) -> int:
    symbols.sizes[symbol] = 1.0
    return symbol


def replace_momentum(drift: growth.Drift) -> growth.Drift:
    drift.momentum = 0.0
    return drift


def _slowly(between: Callable[[prompt.PromptPath], None], path: prompt.PromptPath) -> None:
    target = path.target
    path.target = replace(target, rate=1e-6)
    between(path)
    path.target = target


def _refused_of_many(change: Callable[[Stored], Stored]) -> bool:
    _, file = of_many.many("float32")
    given = of_many.prompt_of("float32", "logistic", 0.1, None)
    try:
        other = change(file)
        return not of_many.bound_of(other, given, 1e-3) <= 1e-3
    except NotVerified:
        return True


def _steep_accepted() -> bool:
    """A prompt on which descent diverges."""
    net, file = learners.learner("squared"), learners.stored("squared")
    given = np.asarray(net.prompt(np.full((3, 2), 8.0), np.ones(3)))
    try:
        return (
            learners.bound_for_one_prompt(learners.read_network(file), learners.read_program(file), given, 1.0) <= 1.0
        )
    except NotVerified:
        return False


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_verifier_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = MUTATIONS[name]
    forget()
    assert not mutation.noticed(), "nothing is broken yet"
    monkeypatch.setattr(mutation.owner, mutation.name, mutation.make(getattr(mutation.owner, mutation.name)))
    forget()
    noticed = mutation.noticed()
    forget()
    assert noticed

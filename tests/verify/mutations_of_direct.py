"""The evaluation "direct" broken in one place, and which test notices."""

from __future__ import annotations

from .mutations import Mutation

_LINE, _KINK, _FAR = (
    f"direct_lemmas: series err by no more than is derived ({name}, float32)"
    for name in ("a line", "a kink", "a kink far from 0")
)
_LEFT_OUT = "direct_lemmas: keys that are left out weigh nothing anywhere (0)"

# fmt: off
DIRECT = (
    Mutation("direct.py", "Directly.read", "+ 6 * self.model.unit * size", "",
             "direct_lemmas: folded sums err by no more (1)"),
    Mutation("direct.py", "Directly.read", "sum(series.magnitude(low, high))", "0.0",
             "direct_lemmas: folded sums err by no more (1)"),
    Mutation("direct.py", "within_reach", ".min(axis=1) < SILENT", ".min(axis=1) < 0", _LEFT_OUT),
    Mutation("direct.py", "within_reach", "noise).min(axis=1)", "noise).max(axis=1)", _LEFT_OUT),
    Mutation("direct.py", "Directly.read", "ends[0] < low or ends[1] > high", "False",
             "direct_lemmas: equal heads are counted on all of their intervals"),
    Mutation("forms.py", "mapped", "once * np.abs(bias)", "0.0",
             "direct_lemmas: folded sums err by no more (1)"),
    Mutation("scalar.py", "Softmax.rounding", "np.maximum(error, part.direct[0])", "error",
             "direct_lemmas: heads are as far off as their series"),
    Mutation("scalar.py", "Softmax.rounding", "np.maximum(result + error, least)", "result + error",
             "direct_lemmas: heads are as far off as their series"),
    Mutation("scalar.py", "Softmax.rounding", "np.maximum(mass + error, least)", "mass + error",
             "direct_lemmas: heads are as far off as their series"),
    Mutation("scalar.py", "Part.worse", "max(self.direct[0], other.direct[0])", "other.direct[0]",
             "direct_lemmas: heads are as far off as their series"),
    Mutation("attention.py", "_directly", "else found", "else (0.0, 0.0)",
             "direct_lemmas: heads of a network are as far off as their series"),
    Mutation("attention.py", "_reads", "form.rounding + error", "form.rounding",
             "direct_lemmas: heads of a network are as far off as their series"),
    Mutation("attention.py", "_directly", "require(bool(exactly)", "require(True",
             "direct_lemmas: heads of a network are as far off as their series"),
    Mutation("verifier.py", "_verify_network", 'direct="direct" in certificate.evaluations', "direct=False",
             "direct_lemmas: a bound that holds for plain alone is refused"),
    Mutation("series.py", "Series._gamma", "float(self.model.gamma(n)) * SLACK", "0.0", _LINE),
    Mutation("series.py", "Series.error", "+ rest + exact(off)", "+ exact(off)", _LINE),
    Mutation("series.py", "Series.error", "+ rest + exact(off)", "+ rest", _FAR),
    Mutation("series.py", "Series.error", "max(map(above, [far, *near]))", "above(far)", _KINK),
    Mutation("series.py", "Series._furthest", "exact(max(map(above, ends)))", "exact(max(map(above, ends))) / 4",
             _LINE),
)
# fmt: on

"""The evaluation "direct" broken in one place, and which test notices."""

from __future__ import annotations

from .mutations import Mutation

_LINE, _OFF, _STEP = (
    f"direct_lemmas: series err by no more than is derived ({name}, float32)"
    for name in ("a line", "a kink off the line", "a step")
)
_STEEP, _POLE = (
    f"direct_lemmas: quotients round by no more than is derived ({name})" for name in ("steep", "towards a pole")
)
_RUN, _COUNTED, _HEARD = (
    f"weighed: {what}"
    for what in (
        "bases are those that run (a kink, float32, 0)",
        "groups are off by no more than is counted (a kink, float32)",
        "groups of which one key is heard are as far off as their series",
    )
)
_TOLD = "weighed: keys of which cannot be told whether they are heard are refused"
_LEFT_OUT = "direct_lemmas: keys that are left out weigh nothing anywhere (0)"

_NOTHING, _FOLDED, _BEYOND, _OWN, _OTHER, _UNREAD = (
    f"forged_direct: what is accepted holds ({name})"
    for name in (
        "series_of_nothing",
        "keys_folded_into_queries",
        "reads_beyond_the_dtype",
        "logits_of_one_feature",
        "logits_of_another_feature",
        "heads_that_read_nothing",
    )
)

_TANH, _FAR, _SCALED = (
    f"two_keys: sigmoids err by no more than is derived ({name})"
    for name in ("tanh, float32", "far from 0, float32", "scaled, float64")
)
_RATE, _LEAD, _SHIFT = (
    f"two_keys: sigmoids with another number are as far off (sigmoid, float64, {number})"
    for number in ("rate", "lead", "shift")
)
_ELBOW = "pieces: pieces err by no more than is derived (an elbow, float64)"
_SUMS = "pieces: sums of pieces round by no more than is derived"
_HELD = "pieces: pieces of which nothing is taken or that may overflow are counted"
_UNITS = "pieces: units are as far off as their series"
_MORE = "two_keys: heads of more keys are no sigmoids"
_KEYS = "direct_lemmas: heads of more keys than a series are softmaxes"
_JOINED = "context: what is taken of units that are joined is off by no more"
_BETWEEN = "context: parts of a unit lie between their values"

# fmt: off
DIRECT = (
    Mutation("series.py", "Series._whole", "abs(one.scale) * off", "0.0", _SUMS),
    Mutation("series.py", "Series._whole", "model.gamma(len(self.beside) + 2) * most", "0.0", _SUMS),
    Mutation("series.py", "Series._whole", "model.tiny * (4 + size)", "4 * model.tiny", _HELD),
    Mutation("series.py", "Series._whole", "numbers < model.largest / 4", "True", _HELD),
    Mutation("series.py", "Series._whole", ", *(abs(one.scale) for one in self.beside)", "", _HELD),
    Mutation("series.py", "Series._function", "q if piece is self else made", "q if True else made", _ELBOW),
    Mutation("claims.py", "Claims._proven", "max(found.total, self._directly(job, intervals, found.total))",
             "found.total", _UNITS),
    Mutation("claims.py", "Claims._proven", "max(found.total, self._directly(job, intervals, found.total))",
             "self._directly(job, intervals, found.total)", _UNITS),
    Mutation("claims.py", "Claims._directly", ".total + off", ".total", _UNITS),
    Mutation("claims.py", "Claims._directly", "part.direct[0] + _moved", "_moved", _UNITS),
    Mutation("claims.py", "Claims._directly", "if part.series is None] or", "if False] or", _UNITS),
    Mutation("claims.py", "_moved", "known.slope * lean", "0.0", _UNITS),
    Mutation("claims.py", "_moved", "abs(series.alpha) * ", "", _UNITS),
    Mutation("scalar/cells.py", "_Proof.__init__", "*map(_Claimed, claim.more)", "", _UNITS),
    Mutation("scalar/part.py", "Part.key", ", self.series)", ")", "pieces: units with other series are others"),
    Mutation("scalar/part.py", "Part.most", "max(held, self.direct[1])", "held", _BETWEEN),
    Mutation("joint.py", "_times", "replace(part.series, alpha=part.series.alpha * ratio)", "part.series", _JOINED),
    Mutation("joint.py", "joint", "replace(part.series, scale=sign, shift=shift)", "part.series",
             "context: numbers of opposite signs that nearly agree lean by how far they are apart"),
    Mutation("two_keys.py", "TwoKeys.read", "(d + 2 * u) ** 2 / (4 * d)", "d / 4", _TANH),
    Mutation("two_keys.py", "TwoKeys.read", "product * u * abs(self.rate)", "0.0", _FAR),
    Mutation("two_keys.py", "TwoKeys.read", "scaled * u * (1 + sigmoid)", "0.0", _SCALED),
    Mutation("two_keys.py", "TwoKeys.read", "_apart(self.rate, a) + ", "", _RATE),
    Mutation("two_keys.py", "TwoKeys.read", "_apart(self.lead, g) * (1 + u) + ", "", _LEAD),
    Mutation("two_keys.py", "TwoKeys.read", ") + ends + ", ") + ", _SHIFT),
    Mutation("series.py", "that_runs", "list(one.keys) == heard", "True", _MORE),
    Mutation("series.py", "that_runs", "list(one.keys) == heard", "True", _KEYS),
    Mutation("series.py", "that_runs", "keys[1] + off", "keys[1]", _KEYS),
    Mutation("series.py", "read_series", "len({one.keys for one in found}) == len(found)", "True", _KEYS),
    Mutation("series.py", "_read", "one[:2] < other[:2]", "True", _KEYS),
    Mutation("two_keys.py", "read_two_keys", "len(keys) == 2", "True", _MORE),
    Mutation("two_keys.py", "read_two_keys", "require(held", "require(True", _MORE),
    Mutation("two_keys.py", "read_two_keys", " and keys[0][0] != keys[1][0]", "", _MORE),
    Mutation("series.py", "_read", "any(columns[0])", "True", _KEYS),
    Mutation("series.py", "_read", "any(columns[2])", "True", _UNREAD),
    Mutation("series.py", "Series.magnitude", "sum(found) < model.largest / 4", "True", _BEYOND),
    Mutation("attention.py", "_reads", "if shown.zero.all()", "if column.zero.all()", _NOTHING),
    Mutation("groups.py", "_groups", "one = replace(one, every=alone.every)", "pass", _OWN),
    Mutation("groups.py", "valued", "np.abs(head.take) * error * SLACK if whole else 0.0", "0.0", _OWN),
    Mutation("groups.py", "_groups", "elif alone is not None and", "elif one is not None and", _OTHER),
    Mutation("direct.py", "Directly.read", "total < self.model.largest", "True",
             "direct_lemmas: softmaxes of values whose sum overflows are refused"),
    Mutation("direct.py", "Directly.weighed", "array + 0.0", "array",
             "weighed: groups whose logits differ in the sign of a 0 have one base"),
    Mutation("attention.py", "_require_logits", "max(back, ", "max(0.0, ", _FOLDED),
    Mutation("series.py", "Series.read", "+ 6 * model.unit * size", "",
             "direct_lemmas: folded sums err by no more (1)"),
    Mutation("series.py", "Series.read", "sum(self.magnitude(low, high, model))", "0.0",
             "direct_lemmas: folded sums err by no more (1)"),
    Mutation("reach.py", "within_reach", ".min(axis=1) < SILENT", ".min(axis=1) < 0", _LEFT_OUT),
    Mutation("reach.py", "within_reach", "noise).min(axis=1)", "noise).max(axis=1)", _LEFT_OUT),
    Mutation("reach.py", "within_reach", "(0.01, -1.01)", "(-0.99, -1.01)", _TOLD),
    Mutation("direct.py", "Directly.read", "ends[0] < low or ends[1] > high", "False",
             "direct_lemmas: equal heads are counted on all of their intervals"),
    Mutation("forms.py", "mapped", "once * np.abs(bias)", "0.0",
             "direct_lemmas: folded sums err by no more (1)"),
    Mutation("scalar/softmax.py", "Softmax.rounding", "off if self.part.series is None else 0.0", "0.0",
             "direct_lemmas: heads are as far off as their series"),
    Mutation("scalar/softmax.py", "Softmax.rounding", "np.maximum(on.result + error, most)", "on.result + error",
             "direct_lemmas: heads are as far off as their series"),
    Mutation("scalar/softmax.py", "Softmax.rounding", "np.maximum(mass + error, most)", "mass + error",
             "direct_lemmas: heads are as far off as their series"),
    Mutation("scalar/part.py", "Part.worse", "max(self.direct[0], other.direct[0])", "other.direct[0]",
             "direct_lemmas: heads are as far off as their series"),
    Mutation("attention.py", "_directly", "return context.directly.read(", "return NOTHING and (",
             "direct_lemmas: heads of a network are as far off as their series"),
    Mutation("attention.py", "_constant", "form.rounding + error", "form.rounding",
             "direct_lemmas: heads of a network are as far off as their series"),
    Mutation("attention.py", "_directly", "require(bool(exactly)", "require(True",
             "direct_lemmas: heads of a network are as far off as their series"),
    Mutation("readings.py", "lowered", "cancels=len(rounded) > 0", "cancels=False",
             "readings: a number that no input moves is told from a stored one"),
    Mutation("verifier.py", "_verify_network", 'direct="direct" in certificate.evaluations', "direct=False",
             "direct_lemmas: a bound that holds for plain alone is refused"),
    Mutation("series.py", "Series._computed", "model.gamma(2 * j + min(n, j + 1) + bool(k))", "0.0", _LINE),
    Mutation("series.py", "Series._computed", "2 * j + min(n, j + 1)", "2 * j", _POLE),
    Mutation("series.py", "Series._computed", "+ bool(k))", ")", _STEEP),
    Mutation("series.py", "Series._computed", "+ q * other", "", _POLE),
    Mutation("series.py", "Series._computed", "(wrong + q * other) / kept", "(wrong + q * other) / kept.max()", _POLE),
    Mutation("series.py", "Series._computed", "bool(self.below) * (model.unit * (q + off) + model.tiny)", "0.0",
             _STEEP),
    Mutation("series.py", "Series._computed", "(kept > 0).all()", "True",
             "direct_lemmas: quotients whose denominators may be 0 are refused"),
    Mutation("series.py", "Series._computed", "value - wide", "value",
             "direct_lemmas: quotients whose denominators may be 0 are refused"),
    Mutation("series.py", "Series._function", 'made("add", 1.0, *below)', "1.0", _STEP),
    Mutation("series.py", "Series.error", "found.approximation + rounded", "rounded", _OFF),
    Mutation("series.py", "Series._computed", "for t in (low, high)", "for t in (low / 4, high / 4)", _LINE),
    Mutation("series.py", "Series._computed", "(far**top).max(), total", "total",
             "direct_lemmas: series that may overflow are refused ((5, 1e-30))"),
    Mutation("series.py", "that_runs", "own.issuperset(one.keys)", "own > set(one.keys)",
             "direct_lemmas: equal heads are counted on all of their intervals"),
    Mutation("series.py", "that_runs", "np.abs(offsets - g) <= off", "offsets == g",
             "direct_lemmas: heads that may have the keys of a series are refused"),
    Mutation("series.py", "_quotient", "float(np.dtype(dtype).type(one)) == one", "True",
             "direct_lemmas: ends of series are numbers of the dtype"),
    Mutation("direct.py", "Directly.weighed", "-base if base[0] > base[-1] else base", "base",
             "weighed: bases are those that run (a kink, float32, 1)"),
    Mutation("direct.py", "Directly.weighed", "int(np.abs(rows).max(axis=2).argmax())", "0", _RUN),
    Mutation("direct.py", "Directly.weighed", "2 * ROUNDED * self.model.unit", "0.0", _RUN),
    Mutation("direct.py", "Directly.weighed", "partial(self.read, ", "partial(lambda *a, **k: NOTHING, ", _RUN),
    Mutation("direct.py", "Directly.weighed", "max(highs)", "highs[0]",
             "weighed: groups of one base are counted on all of their intervals"),
    Mutation("groups.py", "_apart", "np.abs(own - meant)[:, live].max(axis=1, initial=0.0)", "0 * largest", _COUNTED),
    Mutation("groups.py", "_apart", "2 * few * model.unit * largest", "0.0",
             "weighed: groups that are alone are granted more"),
    Mutation("groups.py", "valued", "(head.take != 0) * (_counted", "(_counted",
             "weighed: groups that are alone are granted more"),
    Mutation("groups.py", "valued", "np.maximum(wrong, _apart(", "np.minimum(wrong, _apart(", _COUNTED),
    Mutation("groups.py", "valued", "most * error, most * size", "0.0, most * size", _COUNTED),
    Mutation("groups.py", "valued", "most * error, most * size", "most * error, 0.0", _COUNTED),
    Mutation("groups.py", "valued", "most = float(np.abs(ratios)", "most = float(0.9 * np.abs(ratios)", _COUNTED),
    Mutation("groups.py", "valued", "alpha=series.alpha * ratio", "alpha=series.alpha", _COUNTED),
    Mutation("groups.py", "valued", "wrong + apart * size * SLACK", "wrong",
             "weighed: large series are counted where outputs take a little more or less"),
    Mutation("groups.py", "valued", "float(base[top] / runs[top]) if runs[top] else 0.0",
             "float(ratios[np.abs(take).argmax()])", "weighed: groups of one base have one series"),
    Mutation("groups.py", "valued", "context.model, few) + np.abs(head.take) * error", "context.model, few)", _HEARD),
    Mutation("groups.py", "_follows", "head is not None and claimed is not None", "False",
             "weighed: groups of which one key is heard may follow what is claimed of them"),
    Mutation("groups.py", "valued", "not own.any() and head is None", "not own.any()", _HEARD),
    Mutation("groups.py", "_groups", "require(not constant", "require(True",
             "weighed: groups of constants are refused"),
    Mutation("scalar/part.py", "Part.most", "+ self.direct[0]", "", _BETWEEN),
    Mutation("context.py", "Context.between", "np.maximum(found.size, sum(part.direct[1] for part in unit.parts))",
             "found.size", _BETWEEN),
    Mutation("joint.py", "_times", "error, size = (more * one", "error, size = (one", _JOINED),
    Mutation("joint.py", "_times", "part.value_error * more", "part.value_error", _JOINED),
)
# fmt: on

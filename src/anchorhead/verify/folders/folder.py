"""A folder of an attention-only model: its heads, and the error of every layer, from its files alone.

config.json holds the heads' numbers and which head stands where; model.safetensors the matrices, which stayed under the
names that transformers gives them; attention_only_report.json what is stated of each layer. For each layer: from the
norm's stored weights where pre-activations lie (folder_layer), the head on all of these for its stated relative error
(self_key, gate), and the layer's stated bound. What the folder's Python files compute is not looked at: the claim is
about evaluations as self_key and gate state them, plain and direct, and powers where a head has these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from anchorhead.verify.errors import NotVerified, require, whole
from anchorhead.verify.folders.activations import Activation, activation_of
from anchorhead.verify.folders.layer import Map, Norm, Range, gated_bound, plain_bound, range_of
from anchorhead.verify.rounding import Arithmetic, arithmetic_of
from anchorhead.verify.self_keys.gate import GatePart, underflow, verify_gate
from anchorhead.verify.self_keys.powers import Quotient
from anchorhead.verify.self_keys.self_key import SelfKey, verify_self_key

REPORT = "attention_only_report.json"
MAX_JSON, MAX_NUMBERS, MAX_LAYERS = 2**26, 2**28, 2_000


@dataclass(frozen=True)
class Family:
    """Where a layer's parts are, from the layer; `place` is what the heads stand for."""

    place: str
    norm: str | Callable[[Mapping[str, Any]], str]
    up: str
    down: str
    gate: str | None = None
    centred: bool = True
    gain: float = 0.0
    transposed: bool = False
    renamed: tuple[tuple[str, str], ...] = ()
    """What stands in the names of stored arrays for parts of the modules' own names, where that is something else."""
    biased: Callable[[Mapping[str, Any]], bool] = lambda config: True
    """Whether its maps have biases: what is stored for one that has none is never loaded."""


def _bert_norm(config: Mapping[str, Any]) -> str:
    crossed = config.get("is_decoder") and config.get("add_cross_attention")
    return ("crossattention" if crossed else "attention") + ".output.LayerNorm"


def _opt_norm(config: Mapping[str, Any]) -> str:
    return "final_layer_norm" if config.get("do_layer_norm_before", True) else "self_attn_layer_norm"


_BERT = Family("intermediate.intermediate_act_fn", _bert_norm, "intermediate.dense", "output.dense")
_VIT = (("layers.", "encoder.layer."), ("mlp.fc1", "intermediate.dense"), ("mlp.fc2", "output.dense"))
_WHISPER = Family("activation_fn", "final_layer_norm", "fc1", "fc2")


def _gated(norm: str = "post_attention_layernorm", gain: float = 0.0) -> Family:
    maps = "mlp.up_proj", "mlp.down_proj", "mlp.gate_proj"
    return Family("mlp", norm, *maps, centred=False, gain=gain, biased=lambda config: False)


FAMILIES = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "distilbert": Family("ffn.activation", "sa_layer_norm", "ffn.lin1", "ffn.lin2"),
    "vit": Family("mlp.activation_fn", "layernorm_after", "mlp.fc1", "mlp.fc2", renamed=_VIT),
    "whisper": _WHISPER,
    "gpt2": Family("mlp.act", "ln_2", "mlp.c_fc", "mlp.c_proj", transposed=True),
    "opt": Family("activation_fn", _opt_norm, "fc1", "fc2", biased=lambda config: config.get("enable_bias", True)),
    "llama": replace(_gated(), biased=lambda config: config.get("mlp_bias", False)),
    **{name: _gated() for name in ("mistral", "qwen2", "qwen3")},
    "gemma": _gated(gain=1.0),
    "gemma2": _gated("pre_feedforward_layernorm", 1.0),
    "gemma3_text": _gated("pre_feedforward_layernorm", 1.0),
}


@dataclass(frozen=True)
class LayerChecked:
    """One layer: the range of its pre-activations, what is stated of its heads and of its outputs, what follows, and
    the evaluations that it is stated for."""

    name: str
    low: float
    high: float
    relative: float
    stated: float
    bound: float
    evaluations: tuple[str, ...]


Tell = Callable[[int, int, str], object]


def verify_folder(folder: str | Path, tell: Tell = lambda done, total, what: None) -> list[LayerChecked]:
    """Every layer of the folder, first to last; raises NotVerified where something stated does not follow. tell: told
    how much is done, of how much, and what comes next."""
    try:
        return _verified(Path(folder), tell)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise NotVerified(f"{folder} is no folder of an attention-only model: {error!r}"[:300]) from error


def _verified(folder: Path, tell: Tell) -> list[LayerChecked]:
    config = _json(folder / "config.json")
    settings = config.get("attention_only")
    if not isinstance(settings, dict) or settings.get("format") != 2:
        raise NotVerified(f"{folder} holds no attention-only model")
    if not (folder / REPORT).exists():
        raise NotVerified(
            f"{folder} has no {REPORT}, so that nothing is stated: report.save(folder), of the report that "
            "ah.attention_only returns beside the model, writes it"
        )
    report = _json(folder / REPORT)
    require(report.get("kind") == "proven", f"{folder}: its errors are measured, nothing is stated as proven")
    model = arithmetic_of(str(settings.get("dtype")))
    require(report.get("dtype") == config.get("dtype") == model.dtype, "config and report name different dtypes")
    require(config.get("quantization_config") is None, "matrices that are rounded when they are loaded")
    kind = str(config.get("model_type")).removeprefix("attention_only_")
    require(kind in FAMILIES, f"models of type {kind[:40]!r} are not known")
    family, arrays = FAMILIES[kind], _Arrays(folder, FAMILIES[kind], model)
    places, layers = settings["layers"], report["layers"]
    require(isinstance(places, dict) and 0 < len(places) == len(layers) <= MAX_LAYERS, "a report of other layers")
    prepared, which = [], []
    for number, stated in enumerate(layers):
        place = f"{stated['name']}.{family.place}"
        require(place in places, f"the report has {stated['name']}, where no heads stand")
        tell(number, len(layers), f"reading {place}")
        which.append(whole(places[place], 0, len(settings["heads"]), f"the head of {place}"))
        _require_same_numbers(arrays, place, settings["heads"][which[-1]])
        prepared.append(_prepared(family, config, stated, arrays, model))
    require(len({one.name for one in prepared}) == len(places), "the report has a layer twice")
    _check_heads(settings, which, prepared, model, tell)
    heads = [settings["heads"][place] for place in which]
    return [_checked(one, numbers, model) for one, numbers in zip(prepared, heads, strict=True)]


@dataclass(frozen=True, eq=False)
class _Prepared:
    name: str
    s: Range
    u: Range | None
    down: Map
    activation: Activation
    relative: float
    bound: float
    evaluations: tuple[str, ...]


def _prepared(
    family: Family, config: Mapping[str, Any], stated: Mapping[str, Any], arrays: _Arrays, model: Arithmetic
) -> _Prepared:
    name, certificate = str(stated["name"]), stated["certificate"]
    require(certificate.get("kind") == "proven", f"{name} states a measured error")
    where = family.norm if isinstance(family.norm, str) else family.norm(config)
    require(config.get("layer_norm_elementwise_affine", True), "norms that have no weights")
    weight, stored = arrays.weight_and_bias(f"{name}.{where}", family.centred)
    scale = weight + family.gain
    shift = np.zeros_like(scale) if stored is None else stored
    (image,) = [one for one in certificate["conditions"] if one.get("kind") == "image of a norm"]
    same = np.array_equal(image["scale"], scale) and np.array_equal(image["shift"], shift)
    require(same and image["norm"] == ("LayerNorm" if family.centred else "RMSNorm"), f"{name}: another norm")
    for key in ("layer_norm_eps", "layer_norm_epsilon", "rms_norm_eps"):
        require(config.get(key, 0.0) >= 0, f"{key} below 0: the norm's output may be of any length")
    norm = Norm(scale, shift, family.centred, float(image["slack"]), float(image["rounding"]))
    require(norm.slack >= 1e-3 and norm.rounding >= 4 * model.unit, f"{name}: no room for the norm's own rounding")

    def read(path: str) -> Map:
        weight, bias = arrays.weight_and_bias(f"{name}.{path}", family.biased(config))
        return Map(weight.T if family.transposed else weight, bias)

    up = range_of(read(family.up), norm, model)
    gate = None if family.gate is None else range_of(read(family.gate), norm, model)
    activation = activation_of(str(stated["activation"]))
    for given in config["attention_only"]["activations"].values():
        require(activation_of(given) == activation, f"{name}: {given} in config.json, {stated['activation']} stated")
    s, u = (up, None) if gate is None else (gate, up)
    relative, bound = float(stated["relative"]), float(certificate["bound"])
    ways = tuple(map(str, certificate.get("evaluations", ["plain"])))
    return _Prepared(name, s, u, read(family.down), activation, relative, bound, ways)


def _check_heads(
    settings: Mapping[str, Any],
    which: list[int],
    prepared: list[_Prepared],
    model: Arithmetic,
    tell: Tell,
) -> None:
    """Each head once, on all pre-activations of the layers in which it stands, for the least error stated of it."""
    for index, numbers in enumerate(settings["heads"]):
        layers = [one for one, place in zip(prepared, which, strict=True) if place == index]
        if not layers:
            continue
        tell(index, len(settings["heads"]), f"head {index + 1} of {len(settings['heads'])}")
        low, high = min(one.s.low for one in layers), max(one.s.high for one in layers)
        least, activation = min(one.relative for one in layers), layers[0].activation
        require(all(one.activation == activation for one in layers), "one head stands for several activations")
        require(numbers["dtype"] == model.dtype, "a head of another dtype than the model's")
        gated = numbers["kind"] == "gate"
        require(all((one.u is not None) == gated for one in layers), "a gate where no gate is, or none where one is")
        if gated:
            verify_gate(_parts(numbers, model), activation.function, low, high, model.dtype, least)
        else:
            verify_self_key(*_self_key(numbers, model), activation.function, low, high, model.dtype, least)


def _require_same_numbers(arrays: _Arrays, place: str, numbers: Mapping[str, Any]) -> None:
    """Heads are stored beside the matrices too, and loaded from there: they must be those of config.json."""
    if numbers["kind"] == "gate":
        parts = numbers["parts"]
        keys = [key for part in parts for key in (*zip(part["slopes"], part["offsets"], strict=True), (0.0, 0.0))]
        wanted = {"keys": keys, "factors": [part["factor"] for part in parts]}
        place = f"{place}.heads"
    else:
        own, made = numbers["own"], numbers["powers"]
        keys = [*zip(numbers["slopes"], numbers["offsets"], strict=True)]
        straight = [numbers["skip"], numbers["bias"]]
        wanted = {
            "keys": keys if own is None else [*keys, (own["slope"], own["offset"])],
            "values": numbers["values"],
            "own_value": [] if own is None else [own["value"]],
            "straight": straight if any(straight) else [],
        }
        if made is not None:
            four = [made[name] for name in ("rate", "low", "high", "own")]
            wanted["quotient"] = [*four, *made["numerator"], *made["denominator"]]
    for name, numbers_there in wanted.items():
        found = arrays.get(f"{place}.{name}")
        same = found is None or np.array_equal(found.reshape(-1), np.asarray(numbers_there, np.float64).reshape(-1))
        require(same, f"{place}.{name} are stored otherwise than config.json says")


def _checked(one: _Prepared, numbers: Mapping[str, Any], model: Arithmetic) -> LayerChecked:
    covered = {"plain", "direct", "powers"} if one.u is None and numbers["powers"] is not None else {"plain", "direct"}
    require(set(one.evaluations) <= covered, f"{one.name} states evaluations that its heads do not have"[:300])
    steep, growth = one.activation.on(float(one.s.magnitude.max()))
    if one.u is None:
        bound = plain_bound(one.s, one.down, one.relative, steep, growth, model)
    else:
        lost = underflow(_parts(numbers, model), model.dtype)
        bound = gated_bound(one.s, one.u, one.down, one.relative, steep, growth, lost, model)
    if not bound <= one.bound:
        raise NotVerified(f"{one.name} states an error of {one.bound:.6g}: only {bound:.6g} follows")
    return LayerChecked(one.name, one.s.low, one.s.high, one.relative, one.bound, bound, one.evaluations)


def _self_key(numbers: Mapping[str, Any], model: Arithmetic) -> tuple[SelfKey, Quotient | None]:
    own, made = numbers["own"], numbers["powers"]
    columns = [_floats(numbers[name], model) for name in ("slopes", "offsets", "values")]
    if own is not None:
        columns = [
            [*column, *_floats([own[name]], model)]
            for column, name in zip(columns, ("slope", "offset", "value"), strict=True)
        ]
    skip, bias = _floats([numbers["skip"], numbers["bias"]], model)
    quotient = None
    if made is not None:
        rate, low, high, factor = _floats([made[name] for name in ("rate", "low", "high", "own")], model)
        above, below = (_floats(made[name], model) for name in ("numerator", "denominator"))
        factor = factor if own is not None else 0.0
        quotient = Quotient(rate, low, high, above, below, factor, int(made["own_index"]))
    slopes, offsets, values = columns
    return SelfKey(slopes, offsets, values, own is not None, skip, bias), quotient


def _parts(numbers: Mapping[str, Any], model: Arithmetic) -> list[GatePart]:
    return [
        GatePart(_floats(part["slopes"], model), _floats(part["offsets"], model), _floats([part["factor"]], model)[0])
        for part in numbers["parts"]
    ]


def _floats(numbers: Any, model: Arithmetic) -> list[float]:
    """Numbers that the dtype holds exactly: the module that computes with them rounds none."""
    found = np.asarray(numbers, np.float64)
    require(found.ndim == 1 and bool(np.isfinite(found).all()), "a head whose numbers are not finite")
    require(bool((found.astype(model.dtype) == found).all()), f"a head with numbers that {model.dtype} does not hold")
    return found.tolist()


class _Arrays:
    """The model's matrices, in float64, by their names from the base model: whatever that itself is called in them."""

    def __init__(self, folder: Path, family: Family, model: Arithmetic) -> None:
        self.files: dict[str, list[Path]] = {}
        self.renamed = family.renamed
        self.wanted = {"float32": "F32", "float64": "F64"}[model.dtype]
        try:
            for path in sorted(folder.glob("*.safetensors")):
                with safe_open(path, framework="numpy") as file:
                    for name in file.keys():  # noqa: SIM118
                        self.files.setdefault(name, []).append(path)
        except (OSError, SafetensorError, ValueError) as error:
            raise NotVerified(f"{folder} cannot be read: {error}") from error

    def _spelled(self, name: str) -> set[str]:
        """The names under which it may be stored: transformers knows a module by each of them."""
        names = {name}
        for was, now in self.renamed:
            names |= {one.replace(was, now) for one in names}
        return names

    def get(self, name: str) -> np.ndarray | None:
        ends = tuple(f".{one}" for one in self._spelled(name))
        names = [one for one in self.files if f".{one}".endswith(ends)]
        if not names:
            return None
        require(len(names) == len(self.files[names[0]]) == 1, f"there are several arrays {name}")
        with safe_open(self.files[names[0]][0], framework="numpy") as file:
            part = file.get_slice(names[0])
            count = math.prod(part.get_shape())
            require(count <= MAX_NUMBERS and part.get_dtype() == self.wanted, f"{name}: {count} {part.get_dtype()}")
            found = np.asarray(file.get_tensor(names[0]), np.float64)
        require(bool(np.isfinite(found).all()), f"{name} has an entry that is not finite")
        return found

    def weight_and_bias(self, path: str, biased: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """Those of a module, of which nothing else is stored, under whatever name: only what a module has is loaded,
        and what has another name may be loaded in the place of what is looked at."""
        stored = sorted(
            f".{name}".partition(f".{one}.")[2]
            for name in self.files
            for one in self._spelled(path)
            if f".{one}." in f".{name}"
        )
        wanted = ["bias", "weight"] if biased else ["weight"]
        require(stored == wanted, f"{path} has the arrays {stored}: {wanted} are those that it is computed with"[:300])
        weight, bias = self.get(f"{path}.weight"), self.get(f"{path}.bias") if biased else None
        if weight is None or (biased and bias is None):
            raise NotVerified(f"the arrays of {path} have other names than the folder's others")
        return weight, bias


def _json(path: Path) -> dict[str, Any]:
    try:
        require(path.stat().st_size <= MAX_JSON, f"{path} is larger than {MAX_JSON:,} bytes")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise NotVerified(f"{path} cannot be read: {error}") from error
    require(isinstance(found, dict), f"{path} holds no settings")
    return found

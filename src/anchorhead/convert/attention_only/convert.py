"""`attention_only`: a transformers model in, the same model without feed-forward layers out, with a proof a layer."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from anchorhead.certificate import Certificate
from anchorhead.conditions import NormImage
from anchorhead.convert.attention_only.activations import ACTIVATION_KEYS, Activation, activation_of, is_activation
from anchorhead.convert.attention_only.families import (
    Map,
    Sublayer,
    feed_forward_sublayers,
    require_as_built,
    require_family,
)
from anchorhead.convert.attention_only.families.as_built import MERGE, resolve_parametrizations
from anchorhead.convert.attention_only.heads import (
    Heads,
    Need,
    anchors_of,
    evaluations_of,
    heads_for,
    numbers_of,
    stored_numbers,
)
from anchorhead.convert.attention_only.ranges import Range, asked_of_heads, norm_of, range_of, rows_of
from anchorhead.convert.attention_only.report import AttentionOnlyReport, LayerReport
from anchorhead.convert.attention_only.samples import (
    TOKENS,
    Before,
    Inputs,
    change_since,
    layer_error,
    normed_inputs,
    outputs_before,
)
from anchorhead.convert.attention_only.source import check_settings
from anchorhead.decimals import counted
from anchorhead.domain import Box
from anchorhead.errors import AnchorheadError
from anchorhead.given import checked_within
from anchorhead.heads.self_keys.gate import GateHead
from anchorhead.lemmas.activations import Activations, Steepness, evaluated, evaluated_gated
from anchorhead.network.dtypes import CERTIFIED
from anchorhead.progress import Progress, Status, progress_line
from anchorhead.proof.arithmetic.arithmetic import UP, Arithmetic, require_model
from anchorhead.proof.arithmetic.norm_image import NormSources
from anchorhead.proof.statement import stated_bound
from anchorhead.terms import Term

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Prepared:
    """A feed-forward sublayer and what is known of it before there are heads. s: of the gate, if there is one."""

    sublayer: Sublayer
    activation: Activation
    image: NormImage
    s: Range
    u: Range | None


def attention_only(
    model: Any,
    within: float = 1e-5,
    *,
    dtype: Any = None,
    inputs: Inputs | Sequence[Inputs] | None = None,
    inplace: bool = False,
    progress: Progress | bool | None = True,
) -> tuple[Any, AttentionOnlyReport]:
    """A transformers model with attention heads in the place of every feed-forward sublayer, and what is proven of it.

    model     a model of transformers: BERT, RoBERTa, DistilBERT, GPT-2, OPT, ViT, Whisper, Llama, Mistral, Qwen, Gemma
    within    the error asked for, of each activation, relative to max(1, |s|), rounding included
    dtype     float32 or float64, in which layers are proven, or bfloat16 or float16, measured; by default the model's
    inputs    what to measure the whole model's change on: inputs by name, as a tokenizer makes them, or a list of such;
              by default random ones
    inplace   change the model itself; by default it stays as it is, and a copy is changed
    progress  a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    The result is a model of transformers: it generates, saves and loads as the original does. Saved folders carry their
    code: AutoModel.from_pretrained(folder, trust_remote_code=True); without that they do not load. report.save(folder)
    writes beside a saved model what is stated of it, which ah.check(folder) verifies.

    The model must be what transformers builds of its config: maps are exactly torch.nn.Linear or Conv1D, without
    adapters, hooks (but those that move tensors between devices) or quantisation. Parametrizations are resolved.

    returns   the model, and a report: print it; report.layers have a certificate each

        >>> from transformers import BertModel
        >>> model, report = ah.attention_only(BertModel.from_pretrained("examples/tiny-bert"), within=1e-5)
        >>> [layer.certificate.kind for layer in report.layers]
        ['proven', 'proven']
    """
    transformers_or_error()
    within = checked_within(within)
    with progress_line(progress, "converting") as tell:
        kind = _checked(model, dtype)
        if not inplace:
            model = copy.deepcopy(model)
        resolve_parametrizations(model)
        model = model.to(DTYPES[kind])
        check_finite(model)
        certified = kind if kind in CERTIFIED else "float32"
        arithmetic = require_model(certified)
        prepared = []
        for sublayer in feed_forward_sublayers(model):
            tell(Status(f"bounding the neurons of {sublayer.name}"))
            prepared.append(_prepared(sublayer, arithmetic))
        heads = heads_for([_need(one) for one in prepared], within, certified, tell)
        tell(Status("running the original"))
        before = outputs_before(model, inputs)
        return _converted(model, prepared, heads, within, kind, arithmetic, before, tell)


def transformers_or_error() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise AnchorheadError(
            'attention-only models need transformers: pip install "anchorhead[transformers]"'
        ) from error
    return transformers


def _checked(model: Any, dtype: Any) -> str:
    """The dtype to convert in, after checks that this is a model that can be."""
    transformers = transformers_or_error()
    if not isinstance(model, transformers.PreTrainedModel):
        if hasattr(model, "merge_and_unload"):
            raise AnchorheadError(f"a {type(model).__name__} wraps a model in adapters: {MERGE}")
        raise AnchorheadError(
            f"a {type(model).__name__} is no model of transformers: give one that AutoModel.from_pretrained loads "
            "(of a SentenceTransformer, give model[0].auto_model)"
        )
    if getattr(model.config, "attention_only", None) is not None:
        raise AnchorheadError(
            f"this {type(model).__name__} has no feed-forward sublayers: it is attention only already"
        )
    require_family(model.config.model_type)
    if getattr(transformers, type(model).__name__, None) is not type(model):
        raise AnchorheadError(
            f"{type(model).__name__} is not a class that transformers itself exports, so that it could not be loaded "
            f"again: convert the model inside it, such as a {type(model.base_model).__name__}"
        )
    name = str(model.dtype if dtype is None else dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise AnchorheadError(f"dtype={dtype!r}: the model computes in one of {', '.join(DTYPES)}")
    require_as_built(model)
    check_settings("the model's config", {**model.config.to_dict(), "auto_map": None})  # which becomes our own
    return name


def check_finite(model: Any) -> None:
    for name, weight in model.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            place = tuple(int(i) for i in torch.argwhere(~torch.isfinite(weight))[0])
            raise AnchorheadError(f"{name} has the entry {weight[place].item()} at {place}: all weights must be finite")


def _prepared(sublayer: Sublayer, arithmetic: Arithmetic) -> Prepared:
    activation = activation_of(sublayer.activation, sublayer.gate is not None, sublayer.name)
    image = norm_of(sublayer.norm, sublayer.gain, sublayer.up.weight.shape[1], arithmetic)
    sources = NormSources.of(image)
    up = range_of(sublayer.up, sources, arithmetic)
    if sublayer.gate is None:
        return Prepared(sublayer, activation, image, up, None)
    return Prepared(sublayer, activation, image, range_of(sublayer.gate, sources, arithmetic), up)


def _need(one: Prepared) -> Need:
    return Need(one.activation, one.u is not None, *asked_of_heads(one.s.low, one.s.high))


def _converted(
    model: Any,
    prepared: list[Prepared],
    heads: list[Heads],
    within: float,
    kind: str,
    arithmetic: Arithmetic,
    before: Before,
    tell: Progress,
) -> tuple[Any, AttentionOnlyReport]:
    """Puts the heads in place and writes the report; `model` itself is changed."""
    from anchorhead.convert.attention_only.modeling_attention_only import attention, attention_only_class, place_heads

    original = type(model).__name__
    different = list({id(head): head for head in heads}.values())
    settings = {
        "format": 2,
        "within": within,
        "dtype": arithmetic.dtype,
        "activations": {
            key: name for key in ACTIVATION_KEYS if isinstance(name := getattr(model.config, key, None), str)
        },
        "heads": [numbers_of(head) for head in different],
        "layers": {one.sublayer.place: different.index(head) for one, head in zip(prepared, heads, strict=True)},
    }
    layers = []
    for one, head in zip(prepared, heads, strict=True):
        tell(Status(f"proving {one.sublayer.name}"))
        module = attention(numbers_of(head)).to(one.sublayer.up.weight.device)
        layers.append(_report(one, head, module, kind, arithmetic))
        _check_measured(layers[-1])
    place_heads(model, settings)
    model.__class__ = attention_only_class(type(model))
    _remember(model, settings)
    tell(Status("running the attention-only model"))
    changes = (change_since(before, model),)
    proven = "proven" if kind in CERTIFIED else "measured"
    return model, AttentionOnlyReport(original, kind, within, proven, tuple(layers), _left_alone(model), changes)


def _remember(model: Any, settings: dict[str, Any]) -> None:
    """What transformers needs to save the model with its code, and to load it."""
    from transformers.models.auto import modeling_auto

    from anchorhead.convert.attention_only import modeling_attention_only as code

    name = code.__name__.rpartition(".")[2]
    kind = type(model.config)
    auto_map = {"AutoConfig": f"{name}.{kind.__name__}"}
    for auto in (one for label, one in vars(modeling_auto).items() if label.startswith("AutoModel")):
        classes = getattr(auto, "_model_mapping", {}).get(kind, ())
        for base in classes if isinstance(classes, tuple | list) else (classes,):
            if not isinstance(base, type):
                continue
            if base.__name__ == type(model).__name__ or auto.__name__ not in auto_map:
                auto_map[auto.__name__] = f"{name}.{base.__name__}"
    model.config.attention_only = settings
    model.config.auto_map = auto_map
    model.config.__class__ = code.attention_only_config(kind)
    for key in settings["activations"]:
        setattr(model.config, key, code.LOAD_WITH_CODE)
    own = [auto for auto, made in auto_map.items() if made == f"{name}.{type(model).__name__}"]
    type(model)._auto_class = min(own, key=_least_special) if own else "AutoModel"


def _least_special(auto: str) -> tuple[bool, bool]:
    """AutoModel, then what a task names, then what stands for several tasks."""
    return auto != "AutoModel", auto in ("AutoModelForPreTraining", "AutoModelForTextEncoding")


def _report(one: Prepared, head: Heads, module: Any, kind: str, arithmetic: Arithmetic) -> LayerReport:
    sublayer, activation = one.sublayer, one.activation
    relative = head.bound
    underflow = head.underflow if isinstance(head, GateHead) else 0.0
    if isinstance(head, GateHead) and one.u is not None:
        _require_products(one.u, max(abs(part.factor) for part in head.parts), arithmetic, sublayer.name)
    before = sum(linear.numbers for linear in sublayer.maps)
    measured = layer_error(sublayer, module, normed_inputs(sublayer, one.image))
    return LayerReport(
        name=sublayer.name,
        neurons=sublayer.neurons,
        heads=sublayer.neurons * (len(head.parts) if isinstance(head, GateHead) else 1),
        activation=activation.name,
        anchors=anchors_of(head),
        low=one.s.low,
        high=one.s.high,
        relative=relative,
        certificate=_certificate(one, relative, underflow, measured, kind, arithmetic, evaluations_of(head)),
        measured=measured,
        samples=TOKENS,
        before=before,
        after=before + stored_numbers(head),
    )


def _check_measured(layer: LayerReport) -> None:
    """Refuses a proof that a sample refutes: then a part computes something else than what it was taken for."""
    if layer.certificate.kind == "proven" and not layer.measured <= layer.certificate.bound:
        raise AnchorheadError(
            f"{layer.name} errs by {layer.measured:.2g} on a sample, where {layer.certificate.bound:.2g} is proven: "
            f"its activation is no {layer.activation} as its class has it, or the device computes less exactly than "
            "the dtype does (set torch.backends.cuda.matmul.allow_tf32 = False)"
        )


def _certificate(
    one: Prepared,
    relative: float,
    underflow: float,
    measured: float,
    kind: str,
    arithmetic: Arithmetic,
    evaluations: tuple[str, ...],
) -> Certificate:
    """The layer's output against the exact feed-forward sublayer, on the outputs of the norm in front; evaluations: of
    its heads, which are all proven, and of which the last was measured."""
    sources, norm = NormSources.of(one.image), one.image.norm
    formula = (
        f"{one.activation.name} of {counted(one.sublayer.neurons, 'neuron')}{', gated' if one.u is not None else ''}"
    )
    common = Certificate(
        kind="measured",
        bound=measured,
        on=Box.of((sources.low, sources.high)),
        dtype=kind,
        arithmetic=kind,
        terms=(),
        method=f"the largest error at {TOKENS} outputs of the {norm} in front",
        target=f"the feed-forward sublayer of {one.sublayer.name}: {formula}, with the weights as stored",
        conditions=(one.image,),
        evaluations=evaluations[-1:],
    )
    if kind not in CERTIFIED:
        return common
    phi = Steepness(relative, *one.activation.on(float(one.s.magnitude.max())))
    neurons = evaluated(one.s, phi) if one.u is None else evaluated_gated(one.s, one.u, phi, underflow)
    bound, terms = _added_up(neurons, one.sublayer.down, arithmetic)
    return replace(
        common,
        kind="proven",
        bound=stated_bound(bound),
        terms=terms,
        arithmetic=str(arithmetic),
        evaluations=evaluations,
        method=(
            "the heads' proven errors and the rounding of the linear maps, added up over the neurons, for every "
            f"output of the {norm} in front"
        ),
    )


def _added_up(neurons: Activations, down: Map, arithmetic: Arithmetic) -> tuple[float, tuple[Term, ...]]:
    """The largest error of an output of sum_r c_or a_r + d_o, and the terms that it adds up there."""
    parts = []
    for weight, bias in rows_of(down):
        size, others = np.abs(weight), 0.0 if bias is None else np.abs(bias)
        rounding = neurons.rounding(size, others, float(bias is not None), arithmetic)
        parts.append(np.stack([neurons.off.weighed(size), size @ neurons.moved * UP, rounding]))
    each = np.concatenate(parts, axis=1)
    heads, maps, outputs = each[:, each.sum(axis=0).argmax()].tolist()
    of = (("error", heads, "heads"), ("rounding", maps, "pre-activations"), ("rounding", outputs, "output map"))
    return (heads + maps + outputs) * UP, tuple(Term(*one) for one in of)


def _require_products(u: Range, factor: float, arithmetic: Arithmetic, name: str) -> None:
    """Refuses gated neurons whose values times a head's factor may be beyond the dtype: no bound covers infinities."""
    largest, most = float(u.magnitude.max()) * factor, float(torch.finfo(getattr(torch, arithmetic.dtype)).max)
    if not largest < most / 4:
        raise AnchorheadError(
            f"the gated neurons of {name} reach {float(u.magnitude.max()):.3g}, times up to {factor:.3g} in their "
            f"heads: more than {arithmetic.dtype} holds. Rescale the model's weights, or use float64"
        )


def _left_alone(model: Any) -> tuple[str, ...]:
    """Activations that are no part of a feed-forward sublayer."""
    return tuple(f"{name} ({type(module).__name__})" for name, module in model.named_modules() if is_activation(module))

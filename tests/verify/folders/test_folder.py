"""Folders of attention-only models: every layer follows from the files; what was changed afterwards is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_series
from safetensors.numpy import load_file, save_file

from anchorhead.verify.balls import precision
from anchorhead.verify.errors import NotVerified
from anchorhead.verify.folders.activations import ACTIVATIONS
from anchorhead.verify.folders.folder import FAMILIES, REPORT, verify_folder
from anchorhead.verify.programs.expressions import Undecided

pytest.importorskip("transformers")


def test_every_family_is_known() -> None:
    from anchorhead.convert.attention_only.families import FAMILIES as CONVERTED

    assert set(FAMILIES) == set(CONVERTED)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_every_layer_follows(folders: Callable[[str], Path], name: str) -> None:
    layers = verify_folder(folders(name))
    assert len(layers) == 2
    assert all(0.9 * layer.stated < layer.bound <= layer.stated for layer in layers)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["roberta", "xlm-roberta", "distilbert", "opt", "opt, norm after", "vit", "whisper", "qwen3", "gemma3"]
)
def test_every_layer_of_other_families_follows(folders: Callable[[str], Path], name: str) -> None:
    assert len(verify_folder(folders(name))) >= 2


def tampered(folder: Path, out: Path, config: Any = None, report: Any = None, arrays: Any = None) -> Path:
    """A copy in which one of the three files was changed."""
    shutil.copytree(folder, out)
    for name, change in (("config.json", config), (REPORT, report)):
        if change is not None:
            data = json.loads((out / name).read_text())
            change(data)
            (out / name).write_text(json.dumps(data))
    if arrays is not None:
        held = load_file(out / "model.safetensors")
        arrays(held)
        save_file({name: np.ascontiguousarray(array) for name, array in held.items()}, out / "model.safetensors")
    return out


def scaled(name: str, factor: float) -> Callable[[dict[str, np.ndarray]], None]:
    def change(held: dict[str, np.ndarray]) -> None:
        (found,) = [one for one in held if one.endswith(name)]
        held[found] = held[found] * np.float32(factor)

    return change


def set_in(data: Any, *path: Any) -> Callable[[Any], None]:
    def change(whole: Any) -> None:
        for step in path[:-1]:
            whole = whole[step]
        whole[path[-1]] = data(whole[path[-1]])

    return change


HEAD = ("attention_only", "heads", 0)
CHANGES: dict[str, dict[str, Any]] = {
    "a smaller bound": {"report": set_in(lambda x: x * 0.97, "layers", 0, "certificate", "bound")},
    "a smaller error of the heads": {"report": set_in(lambda x: x * 0.5, "layers", 0, "relative")},
    "another activation": {"report": set_in(lambda x: "gelu_new", "layers", 0, "activation")},
    "another activation everywhere": {
        "report": set_in(lambda x: [{**one, "activation": "relu"} for one in x], "layers"),
        "config": set_in(lambda x: {"hidden_act": "relu"}, "attention_only", "activations"),
    },
    "a value of a head": {"config": set_in(lambda x: x + 2.0**-8, *HEAD, "values", 5)},
    "a coefficient of the powers": {"config": set_in(lambda x: x * 1.0625, *HEAD, "powers", "denominator", 4)},
    "a head as it is loaded": {"arrays": scaled("layer.0.intermediate.intermediate_act_fn.values", 1.001)},
    "powers as they are loaded": {"arrays": scaled("layer.1.intermediate.intermediate_act_fn.quotient", 1.001)},
    "a larger matrix of queries": {"arrays": scaled("layer.0.intermediate.dense.weight", 1.05)},
    "a larger output matrix": {"arrays": scaled("layer.1.output.dense.weight", 1.05)},
    "another norm": {"arrays": scaled("layer.0.attention.output.LayerNorm.weight", 1.02)},
    "no room for the norm": {"report": set_in(lambda x: 0.0, "layers", 0, "certificate", "conditions", 0, "slack")},
    "a norm that divides by less": {"config": set_in(lambda x: -1e-5, "layer_norm_eps")},
    "an evaluation that there is not": {
        "report": set_in(lambda x: [*x, "fast"], "layers", 0, "certificate", "evaluations")
    },
    "powers that are gone": {"config": set_in(lambda x: None, *HEAD, "powers")},
    "a layer less": {"report": set_in(lambda x: x[:1], "layers")},
    "a layer twice": {"report": set_in(lambda x: [x[0], x[0]], "layers")},
    "another dtype": {"config": set_in(lambda x: "float64", "attention_only", "dtype")},
    "a head that is not there": {
        "config": set_in(lambda x: 7, "attention_only", "layers", "encoder.layer.0.intermediate.intermediate_act_fn")
    },
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_is_refused(folders: Callable[[str], Path], tmp_path: Path, what: str) -> None:
    with pytest.raises(NotVerified):
        verify_folder(tampered(folders("bert"), tmp_path / "changed", **CHANGES[what]))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_no_steeper_and_no_larger(name: str) -> None:
    one = ACTIVATIONS[name]
    steep, growth = one.on(30.0)
    with precision(cap=2):
        for x in np.linspace(-30, 30, 1501).tolist():
            assert float(abs(one.function.ball({"x": arb(x)})).lower()) <= growth * max(1.0, abs(x))
            try:
                slope = one.function.series({"x": arb_series([x, 1])})[1]
            except Undecided:
                continue
            assert float(abs(slope).lower()) <= steep


def test_a_folder_has_a_report_like_a_file(folders: Callable[[str], Path], tmp_path: Path) -> None:
    import anchorhead as ah
    from anchorhead.verify.__main__ import main

    told: list[object] = []
    report = ah.check(folders("bert"), progress=told.append)
    assert report.verified
    assert [step.lemma for step in report.steps] == ["feed-forward layer"] * 2
    assert report.stated >= report.found == max(step.error for step in report.steps)
    assert told
    assert main([str(folders("bert"))]) == 0

    def halved(data: Any) -> None:
        data["layers"][1]["certificate"]["bound"] /= 2

    wrong = tampered(folders("bert"), tmp_path / "wrong", report=halved)
    assert main([str(wrong)]) == 1
    with pytest.raises(ah.CertificateError) as caught:
        ah.check(wrong)
    assert not caught.value.report.verified


def test_a_folder_says_which_evaluations_its_bounds_are_for(folders: Callable[[str], Path], tmp_path: Path) -> None:
    import anchorhead as ah

    assert "for the evaluations 'plain', 'direct', 'powers';" in ah.check(folders("bert"), progress=False).why
    assert "for the evaluations 'plain', 'direct';" in ah.check(folders("llama"), progress=False).why

    def of(ways: list[str]) -> Callable[[Any], None]:
        return lambda data: [layer["certificate"].update(evaluations=ways) for layer in data["layers"]]  # type: ignore[return-value]

    fewer = tampered(folders("bert"), tmp_path / "fewer", report=of(["plain"]))
    assert "for the evaluations 'plain';" in ah.check(fewer, progress=False).why
    for name, ways in (("llama", ["plain", "powers"]), ("bert", [])):
        with pytest.raises(ah.CertificateError, match="evaluation"):
            ah.check(tampered(folders(name), tmp_path / f"{name}, more", report=of(ways)), progress=False)

"""Folders that hold arrays which are loaded in the place of those that bounds are derived from, or never: refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from anchorhead.verify.errors import NotVerified
from anchorhead.verify.folders.folder import REPORT, verify_folder

pytest.importorskip("transformers")


def changed(folder: Path, out: Path, change: Callable[[dict, dict, dict], None]) -> Path:
    """A copy, after a change of its arrays, its settings and its report."""
    shutil.copytree(folder, out)
    held = load_file(out / "model.safetensors")
    files = [json.loads((out / name).read_text()) for name in ("config.json", REPORT)]
    change(held, *files)
    save_file({name: np.ascontiguousarray(array) for name, array in held.items()}, out / "model.safetensors")
    for name, data in zip(("config.json", REPORT), files, strict=True):
        (out / name).write_text(json.dumps(data))
    return out


def biases_that_no_map_has(held: dict[str, Any], config: dict[str, Any], report: dict[str, Any]) -> None:
    """With them silu is 0, and so is this head; without, which is how the model is loaded, it is not."""
    config["mlp_bias"] = False
    config["attention_only"]["heads"][0]["parts"] = [{"factor": 0.0, "offsets": [0.0], "slopes": [0.0]}]
    for layer in report["layers"]:
        layer["certificate"]["bound"], layer["relative"] = 0.1, 1e-6
    for name in held:
        if name.endswith("heads.factors"):
            held[name] = np.zeros(1, np.float32)
        elif name.endswith("heads.keys"):
            held[name] = np.zeros((2, 2), np.float32)
        elif name.endswith(("mlp.gate_proj.bias", "mlp.up_proj.bias", "mlp.down_proj.bias")):
            held[name] = np.full_like(held[name], -60.0 if "gate" in name else 0.0)


def norms_under_their_old_names(held: dict[str, Any], config: dict[str, Any], report: dict[str, Any]) -> None:
    """transformers takes gamma for weight, whatever that is."""
    held["encoder.layer.0.attention.output.LayerNorm.gamma"] = np.full(32, 10.0, np.float32)


def matrices_under_two_names(held: dict[str, Any], config: dict[str, Any], report: dict[str, Any]) -> None:
    held["bert.encoder.layer.0.intermediate.dense.weight"] = 2 * held["encoder.layer.0.intermediate.dense.weight"]


def heads_under_other_names(held: dict[str, Any], config: dict[str, Any], report: dict[str, Any]) -> None:
    """Those of the modules, and not of files."""
    own = held.pop("vit.encoder.layer.0.mlp.activation_fn.own_value")
    held["vit.layers.0.mlp.activation_fn.own_value"] = 2 * own


def norms_without_weights(held: dict[str, Any], config: dict[str, Any], report: dict[str, Any]) -> None:
    config["layer_norm_elementwise_affine"] = False


def matrices_that_are_rounded(held: dict[str, Any], config: dict[str, Any], report: dict[str, Any]) -> None:
    config["quantization_config"] = {"load_in_8bit": True, "quant_method": "bitsandbytes"}


@pytest.mark.all_cases
@pytest.mark.parametrize(
    ("name", "forged", "why"),
    [
        ("llama", biases_that_no_map_has, "mlp.up_proj has the arrays"),
        ("bert", norms_under_their_old_names, "LayerNorm has the arrays"),
        ("bert", matrices_under_two_names, "intermediate.dense has the arrays"),
        ("vit", heads_under_other_names, "stored otherwise"),
        ("bert", norms_without_weights, "no weights"),
        ("bert", matrices_that_are_rounded, "rounded"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_is_loaded_otherwise_is_refused(
    folders: Callable[[str], Path], tmp_path: Path, name: str, forged: Callable[..., None], why: str
) -> None:
    with pytest.raises(NotVerified, match=why):
        verify_folder(changed(folders(name), tmp_path / "forged", forged))

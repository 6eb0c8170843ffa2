"""The zoo: networks of known functions, with labels for every head and feature."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import anchorhead as ah
from anchorhead.cli import app
from anchorhead.cli.zoo import NAMES
from anchorhead.lab import zoo
from anchorhead.network.describe import labels


@pytest.fixture(scope="module")
def networks():
    return {name: zoo.ZOO[name].build() for name in zoo.ZOO}


def test_there_are_ten():
    assert len(zoo.ZOO) == 10
    assert tuple(zoo.ZOO) == NAMES


@pytest.mark.slow_for("classification", "sine")
@pytest.mark.parametrize("name", tuple(zoo.ZOO))
def test_every_network_computes_its_function_within_its_bound(name, networks):
    one, network = zoo.ZOO[name], networks[name]
    x = one.inputs(500)
    assert network.certificate.kind == "proven"
    assert np.abs(network(x) - one.truth(x)).max() <= network.certificate.bound


@pytest.mark.parametrize("name", tuple(zoo.ZOO))
def test_every_head_and_every_feature_has_a_label(name, networks):
    layers = labels(networks[name])
    heads = [label for layer in layers for label in layer.get("heads", ())]
    features = [label for layer in layers for label in layer.get("features", ())]
    assert heads
    assert not [label for label in heads if label.startswith("head ")]
    assert not [label for label in features if label.startswith("feature ")]


@pytest.mark.parametrize("name", ["clip-by-position", "product", "sort", "running-maximum", "relu-network"])
def test_every_head_that_has_a_label_matters(name, networks):
    pytest.importorskip("transformer_lens", reason="needs the extra lens", exc_type=ImportError)
    one, bridge = zoo.ZOO[name], ah.export(networks[name], to="transformer-lens")
    x = torch.from_numpy(one.inputs(200))
    with torch.no_grad():
        y = bridge(x)
        for block, heads in enumerate(bridge.head_labels):
            for head, label in enumerate(heads):
                cut = [(f"blocks.{block}.attn.hook_z", partial(_without, torch.tensor([head])))]
                changed = float((bridge.run_with_hooks(x, fwd_hooks=cut) - y).abs().max())
                assert changed == 0 if label == "unused" else changed > 0.05, label


def _without(head, z, hook):
    return z.index_fill(2, head, 0.0)


def test_every_relu_is_on_for_a_good_part_of_the_inputs_and_off_for_another():
    model = zoo._relu_network()
    share = (model[0](torch.from_numpy(zoo.ZOO["relu-network"].inputs(2000))) > 0).double().mean(0)
    assert share.min() > 0.2
    assert share.max() < 0.8


def test_the_functions_are_not_all_zero():
    for name in zoo.ZOO:
        one = zoo.ZOO[name]
        assert np.abs(one.truth(one.inputs(50))).max() > 0.1


@pytest.mark.slow
def test_the_command_writes_weights_labels_picture_and_page(tmp_path):
    result = CliRunner().invoke(app, ["zoo", "sine", "clip", "-o", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    made = {path.name for path in (tmp_path / "new").iterdir()}
    assert made == {
        "README.md",
        *(f"{name}.{end}" for name in ("sine", "clip") for end in ("safetensors", "json", "png")),
        *(f"{name}-circuit.png" for name in ("sine", "clip")),
    }
    about = json.loads((tmp_path / "new" / "sine.json").read_text())
    assert about["layers"][1]["heads"] == ["sin"]
    assert ah.load(tmp_path / "new" / "sine.safetensors").certificate.kind == "proven"
    assert (about["takes"], about["gives"]) == ([1, 1], [1, 1])
    assert about["largest error found"] <= about["proven bound"] <= 1e-6
    page = (tmp_path / "new" / "README.md").read_text()
    assert "![" in page
    assert 'ah.load("sine.safetensors")' in page
    assert "Takes (batch, 6, 3), gives (batch, 6, 1); 1 attention layer, 1 head, " in page


@pytest.mark.parametrize("name", tuple(zoo.ZOO))
def test_what_is_said_of_shapes_and_box_holds(name, networks):
    one = zoo.ZOO[name]
    about, x = zoo.about(one, networks[name], count=20), one.inputs(3)
    assert all(side in (None, real) for side, real in zip(about["takes"], x.shape[1:], strict=True))
    assert tuple(about["gives"]) == one.truth(x).shape[1:]
    assert (np.array(about["on"]["low"]) <= x).all()
    assert (x <= np.array(about["on"]["high"])).all()
    assert json.loads(json.dumps(about, allow_nan=False)) == about


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path):
    result = CliRunner().invoke(app, ["zoo", "unicorn", "-o", str(tmp_path / "new")])
    assert result.exit_code == 1
    assert "unicorn" in result.output
    assert "regression" in result.output
    assert not (tmp_path / "new").exists()


def test_the_list_builds_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["zoo", "--list"])
    assert result.exit_code == 0
    assert all(name in result.output for name in zoo.ZOO)
    assert not list(tmp_path.iterdir())

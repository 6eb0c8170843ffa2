"""The zoo: networks of known functions, with labels for every head and feature."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import anchorhead as ah
from anchorhead.cli import app
from anchorhead.lab import zoo
from anchorhead.network.describe import labels


@pytest.fixture(scope="module")
def networks():
    return {name: zoo.animal(name).build() for name in zoo.names()}


def test_there_are_ten():
    assert len(zoo.names()) == 10


@pytest.mark.parametrize("name", zoo.names())
def test_every_network_computes_its_function_within_its_bound(name, networks):
    one, network = zoo.animal(name), networks[name]
    x = one.inputs(500)
    assert network.certificate.kind == "proven"
    assert np.abs(network(x) - one.truth(x)).max() <= network.certificate.bound


@pytest.mark.parametrize("name", zoo.names())
def test_every_head_and_every_feature_has_a_label(name, networks):
    layers = labels(networks[name])
    heads = [label for layer in layers for label in layer.get("heads", ())]
    features = [label for layer in layers for label in layer.get("features", ())]
    assert heads
    assert not [label for label in heads if label.startswith("head ")]
    assert not [label for label in features if label.startswith("feature ")]


def test_the_functions_are_not_all_zero():
    for name in zoo.names():
        one = zoo.animal(name)
        assert np.abs(one.truth(one.inputs(50))).max() > 0.1


def test_the_command_writes_weights_labels_picture_and_page(tmp_path):
    result = CliRunner().invoke(app, ["zoo", "sine", "clip", "-o", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    made = {path.name for path in (tmp_path / "new").iterdir()}
    assert made == {
        "README.md",
        *(f"{name}.{end}" for name in ("sine", "clip") for end in ("safetensors", "json", "png")),
    }
    about = json.loads((tmp_path / "new" / "sine.json").read_text())
    assert about["layers"][1]["heads"] == ["sin"]
    assert ah.load(tmp_path / "new" / "sine.safetensors").certificate.kind == "proven"
    assert "![" in (tmp_path / "new" / "README.md").read_text()


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
    assert all(name in result.output for name in zoo.names())
    assert not list(tmp_path.iterdir())

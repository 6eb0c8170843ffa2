"""`anchorhead export` writes files that run without anchorhead, and `anchorhead convert` takes ONNX files."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import safetensors
import torch
from typer.testing import CliRunner

import anchorhead as ah
from anchorhead.cli.app import app

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("networks") / "net.safetensors"
    ah.head("tanh", on=(-3, 3), within=1e-3).network.save(path)
    return path


def run(*words):
    return RUNNER.invoke(app, [str(word) for word in words])


def test_a_saved_network_becomes_an_onnx_file_beside_it(saved):
    onnxruntime = pytest.importorskip("onnxruntime")
    result = run("export", saved, "--to", "onnx")
    assert result.exit_code == 0, result.output
    path = saved.with_suffix(".onnx")
    assert str(path) in result.output.replace("\n", "")
    x = np.linspace(-3, 3, 7).reshape(7, 1, 1)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert np.abs(session.run(None, {"x": x})[0] - np.tanh(x)).max() <= ah.load(saved).certificate.bound


def test_a_saved_head_becomes_a_theorem_of_coq_beside_it(saved):
    result = run("export", saved, "--to", "coq")
    assert result.exit_code == 0, result.output
    text = saved.with_suffix(".v").read_text()
    assert text == ah.export(saved, to="coq")
    assert "Theorem within : forall x, (-3) <= x <= 3 ->" in text
    assert "coqc" in result.output


def test_a_name_that_coq_does_not_take_is_changed_or_refused(saved):
    odd = saved.with_name("7-anchors.safetensors")
    odd.write_bytes(saved.read_bytes())
    assert run("export", odd, "--to", "coq").exit_code == 0
    assert saved.with_name("head_7_anchors.v").exists()
    result = run("export", odd, "-o", saved.with_name("my-head.v"))
    assert result.exit_code == 1
    assert "my_head.v" in result.output.replace("\n", "")


def test_the_ending_says_the_format(saved, tmp_path):
    result = run("export", saved, "-o", tmp_path / "n.onnx")
    assert result.exit_code == 0
    assert (tmp_path / "n.onnx").stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "neither --to nor --output"),
        (["-o", "net.xyz"], "does not end in .onnx or .pt2"),
        (["--to", "onnx", "-o", "nowhere/net.onnx"], "there is no folder"),
        (["--to", "onnx", "-o", "net.pt2"], "end it in .onnx"),
        (["--to", "lens", "-o", "net.onnx"], "end it in .lens.safetensors"),
        (["--to", "transformer-lens", "-o", "net.onnx"], "end it in .lens.safetensors"),
        (["--to", "coq", "-o", "net.onnx"], "end it in .v"),
    ],
)
def test_what_cannot_be_exported_is_said(saved, words, message):
    result = run("export", saved, *words)
    assert result.exit_code == 1
    assert message in result.output


@pytest.mark.parametrize("file", [".", "..", "missing.safetensors"])
def test_what_is_no_file_is_said(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("export", file, "--to", "onnx")
    assert result.exit_code == 1
    assert f"{file} is not a file" in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_network_is_said(tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    result = run("export", tmp_path / "bad.safetensors", "--to", "onnx")
    assert result.exit_code == 1
    assert "cannot be read" in result.output
    assert not (tmp_path / "bad.onnx").exists()


def test_without_the_extra_the_error_names_it(saved, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnx" or "export.onnx_" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run("export", saved, "-o", tmp_path / "n.onnx")
    assert result.exit_code == 1
    assert 'pip install "anchorhead[onnx]"' in result.output


def test_an_onnx_file_is_converted_without_an_activation(tmp_path):
    onnx = pytest.importorskip("onnx")
    rng = np.random.default_rng(0)
    held = {"w": rng.normal(size=(2, 3)), "b": rng.normal(size=3), "v": rng.normal(size=(3, 1))}
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "w", "b"], ["z"]),
        onnx.helper.make_node("Relu", ["z"], ["a"]),
        onnx.helper.make_node("MatMul", ["a", "v"], ["y"]),
    ]
    ends = [onnx.helper.make_tensor_value_info(n, 11, s) for n, s in (("x", ["n", 2]), ("y", ["n", 1]))]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(made, tmp_path / "mlp.onnx")
    out = tmp_path / "net.safetensors"
    result = run("convert", tmp_path / "mlp.onnx", "--on", "0:1", "--within", "1e-4", "--no-search", "-o", out)
    assert result.exit_code == 0, result.output
    assert "proven" in result.output
    x = rng.uniform(size=(20, 2))
    exact = np.maximum(x @ held["w"] + held["b"], 0) @ held["v"]
    assert np.abs(ah.load(out)(x) - exact).max() <= 1e-4
    part = run("convert", tmp_path / "mlp.onnx", "--on", "0:1", "--within", "1e-4", "--no-search", "--until", "z")
    assert part.exit_code == 0, part.output
    assert run("convert", out, "--on", "0:1", "--within", "1e-4").exit_code == 1


def test_a_file_for_transformer_lens_holds_its_weights_and_what_they_are(saved):
    pytest.importorskip("transformer_lens")
    result = run("export", saved, "--to", "lens")
    assert result.exit_code == 0, result.output
    with safetensors.safe_open(saved.with_suffix(".lens.safetensors"), "pt") as file:
        assert json.loads(file.metadata()["head_labels"])[0][0] == "tanh"
        assert "proven" in file.metadata()["anchorhead.certificate"]
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, a safe_open is no mapping
    bridge = ah.export(saved, to="transformer-lens")
    bridge.load_state_dict(held)
    assert abs(bridge(torch.tensor([[1.0]], dtype=torch.float64)).item() - np.tanh(1)) <= 1e-3

"""Saved attention-only models load with transformers alone, and folders that cannot be read are refused in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from attention_only_models import small
from safetensors import SafetensorError
from safetensors.torch import load_file

import anchorhead as ah
from anchorhead.convert.attention_only.folder import check_out, read_model, write_folder
from anchorhead.convert.attention_only.samples import random_inputs
from anchorhead.convert.attention_only.texts import embeddings, read_tokenizer
from anchorhead.errors import AnchorheadError

SAVED = ["bert", "gpt2", "vit", "whisper", "llama", "gemma2"]

LOADING = """
import sys
sys.modules["anchorhead"] = None
import json, torch, transformers
from safetensors.torch import load_file, save_file
for folder, auto in json.loads(sys.argv[1]):
    model = getattr(transformers, auto).from_pretrained(folder, trust_remote_code=True)
    inputs = load_file(folder + "/inputs.safetensors")
    with torch.no_grad():
        found = model(**inputs)
    output = found.logits if "logits" in found else found.last_hidden_state
    save_file({"output": output.contiguous()}, folder + "/output.safetensors")
    model.save_pretrained(folder + "/again")
    assert "AttentionOnly" in [one.__name__ for one in type(model).__mro__], type(model)
    # as the base model, from where the heads' places count, and with another head on it
    base = transformers.AutoModel.from_pretrained(folder, trust_remote_code=True)
    assert "AttentionOnly" in [one.__name__ for one in type(base).__mro__], type(base)
    with torch.no_grad():
        assert torch.equal(base(**inputs).last_hidden_state, model.base_model(**inputs).last_hidden_state)
print("anchorhead" in {name for name, module in sys.modules.items() if module is not None})
"""


def run(code, *arguments, home):
    env = {**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def output_of(model, inputs):
    with torch.no_grad():
        found = model(**inputs)
    return found.logits if "logits" in found else found.last_hidden_state


@pytest.mark.parametrize("names", [SAVED[:2], pytest.param(SAVED[2:], marks=pytest.mark.slow)])
def test_saved_models_load_without_anchorhead_and_give_the_same_numbers(names, tmp_path):
    from safetensors.torch import save_file

    expected, folders = {}, []
    for name in names:
        model, _ = ah.attention_only(small(name), within=1e-5)
        folder = tmp_path / name
        model.save_pretrained(folder)
        inputs = random_inputs(model)
        save_file(inputs, folder / "inputs.safetensors")
        expected[name] = output_of(model, inputs)
        folders.append((str(folder), type(model)._auto_class))
        files = {path.name for path in folder.iterdir()}
        assert {"config.json", "model.safetensors", "modeling_attention_only.py", "attend.py"} <= files
        assert not [one for one in files if one.endswith((".bin", ".pt", ".pkl"))]
    assert run(LOADING, json.dumps(folders), home=tmp_path / "home").strip() == "False"
    for name in names:
        found = load_file(tmp_path / name / "output.safetensors")["output"]
        assert torch.equal(found, expected[name]), name
        again = tmp_path / name / "again"
        assert (again / "attend.py").read_text() == (tmp_path / name / "attend.py").read_text()
        assert load_file(again / "model.safetensors").keys() == load_file(tmp_path / name / "model.safetensors").keys()


def test_a_folder_is_read_converted_and_written_with_all_that_came_along(tmp_path):
    source, out = tmp_path / "source", tmp_path / "out"
    small("bert").save_pretrained(source)
    (source / "tokenizer.json").write_text("{}")
    (source / "1_Pooling").mkdir()
    (source / "1_Pooling" / "config.json").write_text("{}")
    (source / "pytorch_model.bin").write_bytes(b"no")
    (source / "code.py").write_text("raise SystemExit")
    (source / "README.md").write_text("the original's")
    model, report = ah.attention_only(read_model(source), within=1e-5)
    write_folder(model, report, out, source)
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {"tokenizer.json", "1_Pooling/config.json", "attention_only_report.json", "README.md"} <= files
    assert not files & {"pytorch_model.bin", "code.py"}
    assert json.loads((out / "attention_only_report.json").read_text())["layers"][0]["neurons"] == 48
    assert "as attention only" in (out / "README.md").read_text()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    with pytest.raises(AnchorheadError, match="exists"):
        write_folder(model, report, out, source)
    (out / "mine").write_text("")
    with pytest.raises(AnchorheadError, match="holds mine, which anchorhead did not write"):
        write_folder(model, report, out, source, force=True)
    (out / "mine").unlink()
    (out / "README.md").write_text("old")
    write_folder(model, report, out, source, force=True)
    assert "as attention only" in (out / "README.md").read_text()
    assert [path.name for path in tmp_path.iterdir() if path != source] == ["out"]
    with pytest.raises(AnchorheadError, match="attention only already"):
        read_model(out)


def test_what_is_saved_from_python_is_checked_with_its_report(tmp_path):
    model, report = ah.attention_only(small("bert"), within=1e-5)
    model.save_pretrained(tmp_path / "model")
    with pytest.raises(ah.CertificateError, match=r"no attention_only_report.json.*report\.save\(folder\)"):
        ah.check(tmp_path / "model", progress=False)
    report.save(tmp_path / "model")
    checked = ah.check(tmp_path / "model", progress=False)
    assert checked.stated == max(layer.certificate.bound for layer in report.layers)
    assert "for the evaluations 'plain', 'direct', 'powers'" in checked.why
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("intermediate.dense.weight"):
                weight.mul_(1.5)
    model.save_pretrained(tmp_path / "trained")
    report.save(tmp_path / "trained")
    with pytest.raises(ah.CertificateError):
        ah.check(tmp_path / "trained", progress=False)
    with pytest.raises(AnchorheadError, match="is not a folder"):
        report.save(tmp_path / "none")


def test_layers_name_the_evaluations_that_their_bounds_cover():
    of = {name: ah.attention_only(small(name), within=1e-5)[1] for name in ("bert", "llama")}
    assert of["bert"].evaluations == ("plain", "direct", "powers")
    assert of["llama"].evaluations == ("plain", "direct")
    for report in of.values():
        assert f"evaluations that this holds for: {', '.join(report.evaluations)}" in str(report)
        for layer in report.to_json()["layers"]:
            assert tuple(layer["certificate"]["evaluations"]) == report.evaluations
    _, measured = ah.attention_only(small("bert"), within=1e-3, dtype="bfloat16")
    assert measured.evaluations == ("powers",), "the one that was measured"


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    model, report = ah.attention_only(small("bert"), within=1e-3)

    for error in (OSError("no space left"), SafetensorError("no space left")):

        def full(*args, error=error, **kwargs):
            raise error

        monkeypatch.setattr(type(model), "save_pretrained", full)
        with pytest.raises(AnchorheadError, match="no space left"):
            write_folder(model, report, tmp_path / "out")
        assert not list(tmp_path.iterdir())


def test_weights_can_be_read_by_whom_the_rest_of_the_folder_can(tmp_path):
    model, report = ah.attention_only(small("bert"), within=1e-3)
    write_folder(model, report, tmp_path / "out")
    modes = {name: (tmp_path / "out" / name).stat().st_mode for name in ("model.safetensors", "config.json")}
    assert modes["model.safetensors"] == modes["config.json"]


def _config(folder: Path, **changes) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / "config.json"
    config = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**config, **changes}))


def test_folders_that_are_no_model_are_refused(tmp_path):
    folder = tmp_path / "model"

    def said() -> str:
        with pytest.raises(AnchorheadError) as caught:
            read_model(folder)
        return str(caught.value)

    assert "is not a folder" in said()
    folder.mkdir()
    assert "has no config.json" in said()
    (folder / "config.json").write_text("{")
    assert "cannot be read" in said()
    (folder / "config.json").write_text("[1]")
    assert "names no model_type" in said()
    _config(folder / "t5", model_type="t5")
    (folder / "config.json").write_text('{"model_type": "t5"}')
    assert "'t5' cannot be converted" in said()
    assert "bert" in said()
    assert "gemma2" in said()
    (folder / "config.json").write_text('{"model_type": "bert", "auto_map": {"AutoModel": "evil.Model"}}')
    assert "which is not run" in said()
    (folder / "config.json").write_text('{"model_type": "bert"}')
    assert "holds no weights" in said()
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    assert "runs code when it is read" in said()
    (folder / "model.safetensors").write_bytes(b"\x00" * 100)
    assert "cannot be loaded" in said()


@pytest.mark.parametrize(("name", "key"), [("bert", "hidden_act"), ("gpt2", "activation_function")])
def test_activations_that_transformers_does_not_know_are_named_with_those_that_have_a_head(tmp_path, name, key):
    small(name).save_pretrained(tmp_path / "model")
    _config(tmp_path / "model", **{key: "selu"})
    with pytest.raises(AnchorheadError, match=rf"'selu' \({key}\).*no head.*gelu.*relu"):
        read_model(tmp_path / "model")


@pytest.mark.parametrize(
    "changes",
    [{"num_attention_heads": 0}, {"hidden_size": "wide"}, {"hidden_size": 7}, {"vocab_size": -1}, {"hidden_act": []}],
)
def test_a_config_that_makes_no_model_is_refused(tmp_path, changes):
    small("bert").save_pretrained(tmp_path / "model")
    _config(tmp_path / "model", **changes)
    with pytest.raises(AnchorheadError, match=r"cannot be loaded as a model|do not fit"):
        read_model(tmp_path / "model")


def test_texts_need_a_tokenizer_that_is_there(tmp_path):
    small("bert").save_pretrained(tmp_path / "model")
    with pytest.raises(AnchorheadError, match=r"no tokenizer.*vocab\.txt"):
        read_tokenizer(tmp_path / "model")


class _Tokenizer:
    """Makes the same tokens of every text."""

    model_max_length = 8

    def __init__(self, tokens):
        self.tokens = tokens

    def __call__(self, texts, **options):
        return self.tokens


def test_texts_need_the_tokenizer_of_the_model():
    tokens = {"input_ids": torch.tensor([[1, 99]]), "attention_mask": torch.ones(1, 2)}
    with pytest.raises(AnchorheadError, match=r"token 99.*knows 99.*another model's"):
        embeddings(small("bert"), _Tokenizer(tokens), ["text"])


@pytest.mark.parametrize("names", [{"a": 1}, 5, [], [3], "BertModel"])
def test_a_folder_whose_config_names_no_class_is_read_as_the_base_model(tmp_path, names):
    small("bert").save_pretrained(tmp_path / "model")
    _config(tmp_path / "model", architectures=names)
    assert type(read_model(tmp_path / "model")).__name__ == "BertModel"


def test_weights_that_do_not_fit_or_are_missing_are_named(tmp_path):
    small("bert").save_pretrained(tmp_path / "model")
    _config(tmp_path / "model", intermediate_size=64)
    with pytest.raises(AnchorheadError, match=r"intermediate\.dense"):
        read_model(tmp_path / "model")
    _config(tmp_path / "model", intermediate_size=48, num_hidden_layers=3)
    with pytest.warns(UserWarning, match=r"layer\.2.*made at random"):
        read_model(tmp_path / "model")


def test_names_that_no_folder_can_have_are_refused_before_any_work(tmp_path):
    for out in (tmp_path / ("o" * 300), tmp_path / ("o" * 300) / "out"):
        with pytest.raises(AnchorheadError, match="cannot be looked up"):
            check_out(out, None, force=False)
        with pytest.raises(AnchorheadError, match="cannot be looked up"):
            read_model(out)


def test_the_output_folder_is_apart_from_the_models(tmp_path):
    model, report = ah.attention_only(small("bert"), within=1e-3)
    for out in (tmp_path, tmp_path / "inside"):
        with pytest.raises(AnchorheadError, match="one in the other"):
            write_folder(model, report, out, tmp_path, force=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(AnchorheadError, match="is not a folder"):
        write_folder(model, report, tmp_path / "file", force=True)
    with pytest.raises(AnchorheadError, match="there is no folder"):
        write_folder(model, report, tmp_path / "none" / "out")

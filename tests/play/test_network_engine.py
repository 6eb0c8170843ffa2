"""Saved networks in the page against ours: outputs, attention weights, what heads add, and files that are refused."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import anchorhead as ah
from anchorhead.network import Attention, Embed, Network, Repeat
from tests.networks import inputs, names, network
from tests.networks.accuracy import last_digits

RUN = """([file, x, options]) => {
    const bytes = Uint8Array.from(atob(file), (sign) => sign.charCodeAt(0));
    const opened = anchorhead.openNetwork(bytes.buffer);
    const { output, attention, path } = anchorhead.run(opened.network, x, options);
    const plain = (note) => ({ ...note, weights: [...note.weights], added: [...note.added] });
    return { output, path, attention: attention?.map(plain),
             parameters: opened.network.parameters, dtype: opened.dtype };
}"""
REFUSED = """(file) => {
    const bytes = Uint8Array.from(atob(file), (sign) => sign.charCodeAt(0));
    try { anchorhead.openNetwork(bytes.buffer); } catch (error) { return [error.constructor.name, error.message]; }
    return null;
}"""


def encoded(net: Network, folder: Path) -> str:
    net.save(folder / "network.safetensors")
    return base64.b64encode((folder / "network.safetensors").read_bytes()).decode()


def in_page(page: Any, net: Network, x: np.ndarray, folder: Path, **options: bool) -> dict[str, Any]:
    return page.evaluate(RUN, [encoded(net, folder), np.atleast_2d(x).tolist(), options])


@pytest.mark.parametrize("name", names("float64"))
def test_outputs_and_attention_are_those_of_python(name: str, mathematics: Any, tmp_path: Path) -> None:
    net = network(name)
    x = inputs(net, 1)[0]
    found = in_page(mathematics, net, x, tmp_path, record=True)
    ours = np.atleast_2d(Network.__call__(net, x, outside="ignore"))
    np.testing.assert_allclose(found["output"], ours, rtol=0, atol=last_digits(net))
    assert found["parameters"] == net.parameters
    maps = net.attention(x)
    assert len(found["attention"]) == len(maps)
    for note, weights in zip(found["attention"], maps, strict=True):
        shape = (note["heads"], len(note["asking"]), len(note["seen"]))
        assert shape == weights.shape
        # logits of the nested repeat reach 1e5, so that weights feel their last bits
        np.testing.assert_allclose(np.reshape(note["weights"], shape), weights, atol=1e-10, rtol=0)


def test_a_float32_network_runs_in_float64_with_its_own_weights(mathematics: Any, tmp_path: Path) -> None:
    net = network("head (float32)")
    x = inputs(net, 1)[0]
    found = in_page(mathematics, net, x, tmp_path)
    assert found["dtype"] == "float32"
    exact = net.module().double()(torch.from_numpy(x.astype(np.float64))).detach().numpy()
    np.testing.assert_allclose(found["output"], exact, rtol=1e-14)


def test_what_heads_add_makes_the_output(mathematics: Any, tmp_path: Path) -> None:
    net = ah.truncated_linear(np.ones((6, 1)), np.zeros(6), -1, 1, heads=3, on=(-2, 2))
    x = np.linspace(-2, 2, 6)[:, None]
    found = in_page(mathematics, net, x, tmp_path, record=True)
    (note,) = found["attention"]
    added = np.reshape(note["added"], (3, 6, 1))
    np.testing.assert_allclose(added.sum(axis=0), found["output"], atol=1e-15)  # the middle of the range is 0
    assert [token["kind"] for token in note["seen"]] == ["input"] * 6
    assert note["labels"][0] == "owns [-1, -0.333333] and all below"


def test_the_path_of_a_repeat_is_that_of_python(mathematics: Any, tmp_path: Path) -> None:
    net = network("learner, momentum (float64)")
    x = inputs(net, 1)[0]
    found = in_page(mathematics, net, x, tmp_path, path=True)
    ours = net(x, path=True, outside="ignore")
    np.testing.assert_allclose(np.array(found["path"])[:, 0], ours, rtol=0, atol=1e-12 * np.abs(ours).max())


def saved() -> tuple[dict[str, Any], bytes]:
    """The header and the data of a good file."""
    raw = (files("anchorhead.play") / "examples" / "gelu.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def packed(header: Any, data: bytes) -> str:
    text = json.dumps(header).encode()
    return base64.b64encode(struct.pack("<Q", len(text)) + text + data).decode()


def tampered(change: Callable[[dict[str, Any]], None]) -> str:
    """The good file with its description changed."""
    header, data = saved()
    body = json.loads(header["__metadata__"]["anchorhead"])
    change(body)
    header["__metadata__"]["anchorhead"] = json.dumps(body)
    return packed(header, data)


def damaged() -> dict[str, tuple[str, str]]:
    """Files that must be refused, by what is wrong, each with a piece of the message."""
    header, data = saved()
    name = next(one for one in header if one.endswith("query"))
    beyond = header | {name: header[name] | {"data_offsets": [0, 10**12]}}
    huge = header | {name: header[name] | {"shape": [2**40, 2, 5]}}
    strange = header | {name: header[name] | {"dtype": "C128"}}
    nan = bytearray(data)
    nan[header[name]["data_offsets"][0] : header[name]["data_offsets"][0] + 8] = struct.pack("<d", np.nan)
    deep: dict[str, Any] = {"layer": "Softmax", "groups": [1]}
    for _ in range(40):
        deep = {"layer": "Repeat", "layers": [deep], "times": 10}
    return {
        "empty": ("", "0 bytes"),
        "no safetensors": (base64.b64encode(b"hello, world, this is a text").decode(), "not a safetensors file"),
        "cut short": (packed(header, data[:-9]), "outside the file"),
        "goes on": (packed(header, data + b"12345678"), "goes on after"),
        "header not JSON": (base64.b64encode(struct.pack("<Q", 4) + b"{{{{").decode(), "not JSON"),
        "header longer than it could be": (base64.b64encode(struct.pack("<Q", 2**62) + b"{}").decode(), "header"),
        "array beyond the file": (packed(beyond, data), "outside the file"),
        "array of a huge shape": (packed(huge, data), "shape"),
        "unknown type": (packed(strange, data), "unknown type"),
        "not finite": (packed(header, bytes(nan)), "not finite"),
        "not ours": (packed({k: v for k, v in header.items() if k != "__metadata__"}, data), "not a network"),
        "newer format": (tampered(lambda body: body.update(format=99)), "format 99"),
        "no layers": (tampered(lambda body: body["network"].pop("layers")), "damaged"),
        "unknown layer": (
            tampered(lambda body: body["network"]["layers"][1].update(layer="constructor")),
            "unknown kind",
        ),
        "missing array": (tampered(lambda body: body["network"]["layers"][1].update(query={"tensor": "x"})), "lacks"),
        "names too few": (tampered(lambda body: body["network"]["layers"][0].update(features=["a"])), "name for each"),
        "tokens without end": (
            tampered(
                lambda body: (
                    body["network"].update(token_axis=True) or body["network"]["layers"][0].update(tokens=10**9)
                )
            ),
            "more than this page",
        ),
        "deep repeats": (tampered(lambda body: body["network"]["layers"].append(deep)), "nested too deep"),
        "certificate damaged": (tampered(lambda body: body["certificate"].update(bound="small")), "certificate"),
        "box damaged": (tampered(lambda body: body["certificate"].update(on={"low": [1, 2, 3], "high": 1})), "box"),
    }


def test_damaged_files_are_refused_with_a_message(mathematics: Any) -> None:
    for case, (text, piece) in damaged().items():
        found = mathematics.evaluate(REFUSED, text)
        assert found is not None, f"opened: {case}"
        assert found[0] == "FileError", (case, found)
        assert piece in found[1], (case, found)


def test_too_much_work_is_refused_before_it_is_done(mathematics: Any, tmp_path: Path) -> None:
    square = np.ones((1, 4, 4))
    layer = Attention(square, square, square, square)
    net = Network([Embed(np.ones((4, 1)), np.zeros(4)), Repeat((layer,), 1000)])
    text = encoded(net, tmp_path)
    script = """(file) => {
        const bytes = Uint8Array.from(atob(file), (sign) => sign.charCodeAt(0));
        const opened = anchorhead.openNetwork(bytes.buffer);
        try { anchorhead.run(opened.network, Array(2000).fill([1])); } catch (error) { return error.message; }
    }"""
    assert "multiplications" in mathematics.evaluate(script, text)


def test_files_with_random_damage_are_opened_or_refused_and_nothing_else(mathematics: Any) -> None:
    rng = np.random.default_rng(0)
    strange = [None, 0, -1, 1e9, "x", [], {}, [1, 2], True, {"tensor": "x"}, [[1]], 1.5, "__proto__"]

    def damage(part: Any) -> None:
        keys = list(part) if isinstance(part, dict) else list(range(len(part)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(part[key], dict | list) and rng.random() < 0.8:
            damage(part[key])
        else:
            part[key] = strange[rng.integers(len(strange))]

    refused = 0
    for _ in range(150):
        found = mathematics.evaluate(REFUSED, tampered(damage))
        assert found is None or found[0] == "FileError", found
        refused += found is not None
    assert 50 < refused < 150

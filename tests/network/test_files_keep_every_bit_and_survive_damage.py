"""A saved network comes back bit for bit; a damaged or foreign file is an AnchorheadError, nothing else."""

from __future__ import annotations

import json
import os
from dataclasses import fields

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

import anchorhead as ah
from anchorhead.errors import AnchorheadError
from anchorhead.language.canonical import to_data
from anchorhead.network import Attention, Derivation, Embed, Linear, Network, Repeat, Softmax
from anchorhead.network.derivation import Entry
from anchorhead.network.files import FORMAT, load
from tests import networks as table

from .certificates import certificate

X = np.random.default_rng(0).uniform(-1, 1, (2, 3, 2))
DERIVATION = Derivation(
    "expression",
    {"tree": ["add", ["x", 1.5], {"deep": None}], "name": "Größe"},
    (Entry(1, "copy", "größer", 3, 2, (-1.0, 0.1), 1e-3),),
)


def full(name="repeat, nested (float64)"):
    """A network of one layer with a certificate and a target of many types; others have their own."""
    network = table.network(name)
    if "layer" not in table.tags(name):
        return network.with_(outside="clip")
    on = (np.full((3, 2), -1.0), np.linspace(1, 2, 6).reshape(3, 2))
    return network.with_(certificate=certificate(on, dtype=network.dtype), derivation=DERIVATION, outside="clip")


def same(one, other):
    """The same classes with the same values, arrays bit for bit."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, Embed | Linear | Attention | Softmax | Repeat):
        for item in fields(one):
            same(getattr(one, item.name), getattr(other, item.name))
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        assert one == other


def as_json(derivation):
    """A derivation in JSON, which knows no tuples, with its claims bit for bit."""
    if derivation is None:
        return None
    claims = {} if derivation.claims is None else derivation.claims.arrays
    arrays = {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in claims.items()}
    return derivation.kind, json.dumps(derivation.data), derivation.entries, arrays


@pytest.mark.parametrize("name", table.names())
def test_round_trip_is_exact(name, tmp_path):
    network = full(name)
    network.save(tmp_path / "net.safetensors")
    again = ah.load(str(tmp_path / "net.safetensors"))
    assert type(again) is type(network)
    same(network.layers, again.layers)
    assert as_json(again.derivation) == as_json(network.derivation)
    assert (again.program is None) == (network.program is None)
    if network.program is not None:
        (data, arrays), (saved, others) = to_data(network.program), to_data(again.program)
        assert json.dumps(data) == json.dumps(saved)
        assert {n: a.tobytes() for n, a in arrays.items()} == {n: a.tobytes() for n, a in others.items()}
    assert again.certificate == network.certificate
    assert (again.output, again.outside, again.dtype) == (network.output, network.outside, network.dtype)
    assert (again.token_axis, again.variables) == (network.token_axis, network.variables)
    x = table.inputs(network, 2)
    assert np.array_equal(*(Network.__call__(one, x, outside="ignore") for one in (network, again)))
    again.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "net.safetensors").read_bytes()


def test_extreme_weights_survive_and_subnormal_ones_are_zeros(tmp_path):
    weight = np.array([[2.2250738585072014e-308, -0.0], [1.7976931348623157e308, 0.1]])
    Network([Embed(weight, np.zeros(2))]).save(tmp_path / "f")
    assert load(tmp_path / "f").embed.weight.tobytes() == weight.tobytes()
    for dtype, least in (("float32", 1e-40), ("float64", -5e-324)):
        made = Embed(np.array([[least]], dtype), np.zeros(1, dtype)).weight
        assert made.tobytes() == np.array([[np.copysign(0.0, least)]], dtype).tobytes()


def test_nested_as_deep_as_allowed(tmp_path):
    layer = table.network("attention, causal (float64)").layers[1]
    for _ in range(8):
        layer = Repeat([layer], 1)
    network = Network([table.network("attention, causal (float64)").embed, layer])
    network.save(tmp_path / "f")
    assert np.array_equal(load(tmp_path / "f")(X), network(X))


def usable(path):
    """Refused with an AnchorheadError, or a network that can be described and called."""
    try:
        network = load(path)
    except AnchorheadError:
        return False
    with np.errstate(all="ignore"):
        assert max(map(len, network.describe().splitlines())) <= 100
    if network.parameters < 1000 and all(getattr(layer, "times", 1) < 100 for layer in network.layers):
        tokens = network.embed.tokens or 1
        if tokens < 1000:
            network(np.zeros((tokens, network.embed.inputs)), outside="ignore")
    return True


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "f"
    full().save(path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 50), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(AnchorheadError):
            load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(AnchorheadError):
        load(path)


@pytest.mark.slow_for("1", "0")
@pytest.mark.parametrize("seed", range(3))
def test_flipped_bytes_give_an_error_or_a_network(seed, tmp_path):
    rng = np.random.default_rng(seed)
    path = tmp_path / "f"
    full(f"{['repeat, nested', 'attention, grid', 'embed, own weights and source'][seed]} (float64)").save(path)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    header = 8 + int(whole[:8].view("<u8")[0])
    outcomes = set()
    for n in range(700):
        damaged = whole.copy()
        places = rng.integers(0, header if n % 4 else len(whole), size=1 + n % 3)
        damaged[places] = rng.integers(32, 127, len(places)) if n % 2 else damaged[places] ^ (1 << rng.integers(0, 8))
        path.write_bytes(damaged.tobytes())
        outcomes.add(usable(path))
    assert outcomes == {True, False}


def header_of(path):
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["anchorhead"]), tensors


def write(path, header, tensors):
    text = header if isinstance(header, str) else json.dumps(header)
    path.write_bytes(to_bytes(tensors, {"anchorhead": text}))


JUNK = [None, -1, 10**400, 0.5, "causal", [], {}, [None], {"layer": "Linear"}, {"layer": []}]
JUNK += [{"tensor": "layers.0.bias"}, {"tensor": []}]


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


@pytest.mark.slow
def test_junk_in_any_place_of_the_description(tmp_path):
    path = tmp_path / "f"
    full("repeat (float64)").save(path)
    header, tensors = header_of(path)
    for number, place in enumerate(places(header)):
        # every other kind of junk here, the rest at the next place
        for junk in JUNK[number % 2 :: 2]:
            copy = json.loads(json.dumps(header))
            if place:
                inner = copy
                for key in place[:-1]:
                    inner = inner[key]
                inner[place[-1]] = junk
            else:
                copy = junk
            write(path, copy, tensors)
            usable(path)


@pytest.mark.parametrize("levels", [50, 5000, 200_000])
def test_nesting_bombs(levels, tmp_path):
    path = tmp_path / "f"
    Network([Embed(np.ones((1, 1)), np.zeros(1))]).save(path)
    header, tensors = header_of(path)
    text = json.dumps(header)
    layer = '{"layer": "Repeat", "times": 1, "layers": [' * levels + "]}" * levels
    write(path, text.replace('"layers": [', '"layers": [' + layer + ", ", 1), tensors)
    with pytest.raises(AnchorheadError):
        load(path)
    write(path, "[" * levels + "]" * levels, tensors)
    with pytest.raises(AnchorheadError):
        load(path)
    write(path, text.replace('"derivation": null', '"derivation": ' + "[" * levels + "]" * levels), tensors)
    with pytest.raises(AnchorheadError):
        load(path)


def test_small_files_cannot_ask_for_endless_work(tmp_path):
    path = tmp_path / "f"
    base = Network([Embed(np.ones((1, 1)), np.zeros(1), tokens=3), Linear(np.eye(1))])
    base.with_(certificate=certificate()).save(path)
    header, tensors = header_of(path)
    linear = header["network"]["layers"][1]
    nested = linear
    for _ in range(4):
        nested = {"layer": "Repeat", "times": 1000, "layers": [nested]}
    header["network"]["layers"][1] = nested
    write(path, header, tensors)
    with pytest.raises(AnchorheadError, match="at most 1,000,000"):
        load(path)
    header["network"]["layers"] = [header["network"]["layers"][0] | {"tokens": 10**15}, linear]
    write(path, header, tensors)
    assert "1000000000000000" in load(path).describe()
    tensors["layers.0.weight"] = np.ones((2**40, 0))
    write(path, header, tensors)
    with pytest.raises(AnchorheadError, match="nothing in it"):
        load(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": FORMAT + 1}, "install a newer one"),
        ({"format": 1}, "of an earlier version of anchorhead"),
        ({"format": "1"}, "format"),
        ({"format": None}, "format"),
        ({"network": {}}, "not a valid network"),
        ({"certificate": {}}, "not a valid network"),
        ({"derivation": {"kind": "x", "data": {}, "entries": [{"layer": 1}]}}, "not a valid network"),
    ],
)
def test_descriptions_that_are_refused(change, said, tmp_path):
    path = tmp_path / "net.safetensors"
    full().save(path)
    header, tensors = header_of(path)
    write(path, header | change, tensors)
    with pytest.raises(AnchorheadError, match=said) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_weights_that_are_not_finite_are_refused(tmp_path):
    path = tmp_path / "f"
    full().save(path)
    header, tensors = header_of(path)
    for name, array in tensors.items():
        if array.dtype.kind == "f" and array.size:
            bad = np.array(array)
            bad.flat[-1] = np.nan
            write(path, header, tensors | {name: bad})
            with pytest.raises(AnchorheadError, match="finite"):
                load(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(to_bytes({"weight": np.ones(3)}))
    with pytest.raises(AnchorheadError, match="not a network that anchorhead saved"):
        load(path)
    path.write_bytes(to_bytes({"weight": np.ones(3)}, {"format": "pt"}))
    with pytest.raises(AnchorheadError, match="not a network that anchorhead saved"):
        load(path)
    for content in (b"", b"PK\x03\x04", b"\x80\x04N.", os.urandom(1000), b"\xff" * 100):
        path.write_bytes(content)
        with pytest.raises(AnchorheadError, match="not a safetensors file"):
            load(path)
    for wrong in (tmp_path, tmp_path / "missing"):
        with pytest.raises(AnchorheadError, match="is not a file"):
            load(wrong)


def test_a_file_of_any_size_costs_no_memory(tmp_path):
    """A short header may promise a tensor of 2^40 bytes, which a file with holes even has."""
    path = tmp_path / "f"
    header = {"w": {"dtype": "F64", "shape": [2**37], "data_offsets": [0, 2**40]}}
    text = json.dumps({"__metadata__": {"anchorhead": "{}"}, **header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + 2**40)
    with pytest.raises(AnchorheadError, match=r"bytes: a saved network has at most"):
        load(path)


@pytest.mark.parametrize("kind", ["BF16", "F16", "I64", "F8_E4M3", "F8_E8M0", "C64", "F4", "BOOL", "U16"])
def test_tensors_of_any_type_are_read_or_refused(kind, tmp_path):
    path = tmp_path / "f"
    Network([Embed(np.ones((2, 2)), np.zeros(2))]).save(path)
    whole = path.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    entry = header["layers.0.weight"]
    width = {"BF16": 2, "F16": 2, "U16": 2, "F8_E4M3": 1, "F8_E8M0": 1, "BOOL": 1, "F4": 0.5}.get(kind, 8)
    entry["dtype"], entry["shape"] = kind, [2, int(16 / width)]
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + size :])
    usable(path)


class TestAFailedSave:
    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "net.safetensors"
        table.network("linear (float64)").save(path)
        return path

    def unchanged(self, path, before):
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]

    @pytest.mark.parametrize("function", ["replace", "fsync", "chmod"])
    def test_leaves_the_old_file(self, path, function, monkeypatch):
        before = path.read_bytes()

        def broken(*_args, **_more):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, function, broken)
        with pytest.raises(AnchorheadError, match="No space left on device"):
            full().save(path)
        monkeypatch.undo()
        self.unchanged(path, before)

    def test_when_interrupted_too(self, path, monkeypatch):
        before = path.read_bytes()

        def interrupted(*_args):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            full().save(path)
        monkeypatch.undo()
        self.unchanged(path, before)

    @pytest.mark.parametrize(
        "derivation",
        [
            Derivation("x", {"value": np.inf}),
            Derivation("x", {"value": {1, 2}}),
        ],
    )
    def test_when_the_derivation_cannot_be_written(self, path, derivation):
        before = path.read_bytes()
        with pytest.raises(AnchorheadError, match="derivation"):
            table.network("linear (float64)").with_(derivation=derivation).save(path)
        self.unchanged(path, before)

    def test_into_a_missing_folder_or_onto_a_folder(self, tmp_path):
        with pytest.raises(AnchorheadError, match="there is no folder"):
            table.network("linear (float64)").save(tmp_path / "missing" / "f")
        with pytest.raises(AnchorheadError, match="is a folder"):
            table.network("linear (float64)").save(tmp_path)
        assert os.listdir(tmp_path) == []

    def test_and_a_good_one_has_ordinary_permissions(self, path):
        ordinary = path.parent / "ordinary"
        ordinary.touch()
        assert path.stat().st_mode == ordinary.stat().st_mode

"""Changes of structure that must be refused, and such that change nothing and must be accepted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..files import Change

Header, Arrays = dict[str, Any], dict[str, np.ndarray]
RAMP, TWO, GROUPS, KERNEL, HEAD = (
    "truncated linear, one head (float32)",
    "two-layer, transformer (float32)",
    "attention-softmax, one token (float32)",
    "kernel smoother (float32)",
    "head, summed (float32)",
)
TOKENS = "attention-softmax, transformer (float32)"
CAUSAL = "expressions, causal (float32)"
GRID, GRID_TOKENS = "grid (float32)", "grid, tokens (float32)"


def entry(name: str, place: Any, value: float) -> Change:
    def change(header: Header, arrays: Arrays) -> None:
        arrays[name] = np.array(arrays[name])
        arrays[name][place] = value

    return change


def scaled(name: str, by: float) -> Change:
    def change(header: Header, arrays: Arrays) -> None:
        arrays[name] = (arrays[name] * by).astype(arrays[name].dtype)

    return change


def layer(place: int, **fields: Any) -> Change:
    return lambda header, arrays: header["network"]["layers"][place].update(fields)


def put_in(*rows: tuple[float, float], times: int = 1) -> Change:
    """Linear layers x -> scale x + shift at the end, so many times over."""

    def change(header: Header, arrays: Arrays) -> None:
        layers = []
        for n, (scale, shift) in enumerate(rows):
            for field, array in (("weight", [[scale]]), ("bias", [shift])):
                arrays[f"layers.new.{n}.{field}"] = np.array(array, arrays["layers.0.weight"].dtype)
            fields = {field: {"tensor": f"layers.new.{n}.{field}"} for field in ("weight", "bias")}
            layers.append({"layer": "Linear", **fields})
        more = [{"layer": "Repeat", "layers": layers, "times": times}] if times > 1 else layers
        header["network"]["layers"] += more

    return change


def source(*places: int) -> Change:
    def change(header: Header, arrays: Arrays) -> None:
        arrays["layers.0.source"] = np.array(places)
        header["network"]["layers"][0]["source"] = {"tensor": "layers.0.source"}

    return change


def keys_without_a_value(header: Header, arrays: Arrays) -> None:
    """Centres that are quotients by a root of what is negative, and a bound that any two averages of responses keep."""
    header["program"]["steps"][1] = {"step": "Normalise", "of": 0, "norm": "rms", "eps": -5.0}
    header["certificate"].update(bound=100.0, terms=[])


def there_and_back(by: float, feature: int = 0) -> Change:
    """A feature plus a number, and less it again, before the first layer."""

    def change(header: Header, arrays: Arrays) -> None:
        width, dtype = len(arrays["layers.0.weight"]), arrays["layers.0.weight"].dtype
        rows = []
        for n, sign in enumerate((1, -1)):
            arrays[f"layers.new.{n}.weight"] = np.eye(width, dtype=dtype)
            arrays[f"layers.new.{n}.bias"] = (sign * by * np.eye(width)[feature]).astype(dtype)
            fields = {field: {"tensor": f"layers.new.{n}.{field}"} for field in ("weight", "bias")}
            rows.append({"layer": "Linear", **fields})
        header["network"]["layers"][1:1] = rows
        arrays["claims.units"] = arrays["claims.units"] + [len(rows), 0, 0, 0, 0]

    return change


def biased_skip(header: Header, arrays: Arrays) -> None:
    skip = header["network"]["layers"][1]["skip"]
    arrays["layers.1.skip.bias"] = np.full(len(arrays["layers.1.skip.weight"]), 0.25, np.float32)
    skip["bias"] = {"tensor": "layers.1.skip.bias"}


def reversed_registers(header: Header, arrays: Arrays) -> None:
    arrays["layers.0.registers"] = np.ascontiguousarray(arrays["layers.0.registers"][::-1])


def program(place: int, **fields: Any) -> Change:
    return lambda header, arrays: header["program"]["steps"][place].update(fields)


def softmax(header: Header, arrays: Arrays) -> None:
    header["network"]["layers"].append({"layer": "Softmax", "groups": [1]})


def other_groups(*groups: int) -> Change:
    return lambda header, arrays: header["network"]["layers"][3].update(groups=list(groups))


STRUCTURE: dict[str, tuple[str, Change]] = {
    "another token for another": (RAMP, source(1, 0, 2)),
    "a map once more": (HEAD, put_in((1.01, 0.0), times=2)),
    "a value that follows the input": (HEAD, entry("layers.0.weight", (4, 0), 0.5)),
    "a bias at the end": (HEAD, put_in((1.0, 1e-3))),
    "a softmax at the end": (RAMP, softmax),
    "a skip with a bias": (TWO, biased_skip),
    "groups of other sizes": (GROUPS, other_groups(5, 3)),
    "groups that are too many": (GROUPS, other_groups(4, 4, 1)),
    "a value of a group": (GROUPS, scaled("layers.4.weight", 1.002)),
    "one value of a group": (GROUPS, entry("layers.4.weight", (0, 5), 0.0)),
    "a slope of a group": (GROUPS, scaled("layers.2.weight", 1.002)),
    "an offset of a group": (GROUPS, entry("layers.2.bias", 1, 3.0)),
    "a bias after groups": (GROUPS, entry("layers.4.bias", 0, 1.0)),
    "a mask of a kernel": (KERNEL, layer(1, mask="self+registers")),
    "a kernel that hides a key": (KERNEL, layer(1, mask="registers+states")),
    "a kernel's output weight": (KERNEL, scaled("layers.1.output", 1.001)),
    "a kernel's queries": (KERNEL, scaled("layers.1.query", 1.001)),
    "a kernel's keys": (KERNEL, entry("layers.1.key", (0, 1, 1), 1.0)),
    "a kernel's keys, mixed": (KERNEL, entry("layers.1.key", (0, 1, slice(3, 5)), 0.5)),
    "a kernel's values": (KERNEL, scaled("layers.1.value", 1.001)),
    "a kernel's one": (KERNEL, entry("layers.0.bias", 2, 1.001)),
    "a kernel's inputs": (KERNEL, scaled("layers.0.weight", 1.001)),
    "a kernel's output": (KERNEL, lambda header, arrays: header["network"].update(output="register")),
    "a kernel's middle": (KERNEL, scaled("layers.1.bias", 1.01)),
    "a causal kernel in the program": (KERNEL, program(10, mask="causal")),
    "a kernel's queries in the program": (KERNEL, scaled("program.8.weight.0", 2.0)),
    "a kernel's one in the program": (KERNEL, scaled("program.8.bias", 1.01)),
    "a kernel's responses in the program": (KERNEL, scaled("program.9.bias", 1.001)),
    "a kernel's centres in the program": (KERNEL, scaled("program.1.bias", 1.001)),
    "a kernel's amplitudes in the program": (KERNEL, entry("program.3.bias", (0, 0), 1.01)),
    "a kernel's keys in the program that have no value": (KERNEL, keys_without_a_value),
    "a program of the next token": (CAUSAL, entry("program.0.high", (0, 0), 0.5)),
    "a grid's inputs": (GRID, scaled("layers.0.weight", 1.01)),
    "a grid's inputs, doubled": (GRID, scaled("layers.0.weight", 2.0)),
    "a grid's origin": (GRID, entry("layers.0.bias", 1, -0.45)),
    "a grid's offset": (GRID, scaled("layers.1.query", 1.01)),
    "a grid's input there and back": (GRID, there_and_back(2.0**20)),
    "a grid's values there and back": (GRID, there_and_back(2.0**20, feature=7)),
    "a grid's argument in the program": (GRID, entry("program.1.bias", (0, 0), 0.05)),
    "a grid's function in the program": (GRID, program(3, functions=[{"nodes": [["variable", "x"], ["exp", 0]]}])),
    "a gate that is nearly open": (GRID_TOKENS, entry("layers.0.bias", (0, 5), -900.0)),
    "a gate that is open": (GRID_TOKENS, entry("layers.0.bias", (0, 5), -1.0)),
    "a grid turned round": (GRID, layer(1, grid=[3, 4])),
    "excluded for functions of several": (
        GRID,
        lambda header, arrays: header["certificate"]["conditions"].append(
            {"kind": "excluded", "intervals": [[-0.5, 0.5]]}
        ),
    ),
}
HARMLESS: dict[str, tuple[str, Change]] = {
    "minus twice": (HEAD, put_in((-1.0, 0.0), times=2)),
    "registers in another order": (RAMP, reversed_registers),
    "every token for itself": (RAMP, source(0, 1, 2)),
    "there and back by little": (RAMP, put_in((1.0, 2.0**-10), (1.0, -(2.0**-10)))),
}

"""What the page knows of Python: the named functions, the heads that ship with their proven bounds, a few networks.

The file of heads is read as it lies: `anchorhead.heads`, which reads it too, needs torch, and the page should come at
once. Weights are written as the shortest decimals that mean them: of a float32 head, the shortest among float32, so
whoever reads them rounds to float32 first.
"""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np

from anchorhead.decimals import round_up
from anchorhead.language.expressions.named import NAMED
from anchorhead.terms import WORDS


def tables() -> dict[str, Any]:
    """What is put into the page: {"named": […], "heads": […], "networks": […], "terms": {…}}.

    named  name, description, signature, and whether it can be used without parameters
    heads  a function, an interval, a dtype, and heads with ever smaller bounds, each as
           [bound, origin, bias, [[slopes, offsets, values] of each part]]
    networks  small saved networks to open: name, title, the call that makes it, and its file in base64
    terms  words for the terms of a certificate, by their kind and by what they are of
    """
    return {"named": _named(), "heads": _heads(), "networks": _networks(), "terms": WORDS}


def _named() -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "description": one.description,
            "signature": one.signature,
            "parameters": [[parameter, default] for parameter, default in one.parameters],
        }
        for one in NAMED.values()
    ]


def _heads() -> list[dict[str, Any]]:
    lines = (files("anchorhead") / "heads" / "tables" / "table.jsonl").read_bytes().splitlines()[1:]
    return [_frontier(json.loads(line)) for line in lines]


def _frontier(data: dict[str, Any]) -> dict[str, Any]:
    dtype = data["dtype"]
    heads = [
        [
            round_up((one["exact"] + one["rounding"]) * (1 + 1e-15)),
            *_numbers(one["origin"], dtype),
            *_numbers(one["bias"], dtype),
            [[_numbers(text, dtype) for text in part] for part in one["parts"]],
        ]
        for one in data["heads"]
    ]
    return {"function": data["function"], "on": _numbers(data["on"], "float64"), "dtype": dtype, "heads": heads}


def _numbers(text: str, dtype: str) -> list[float | int]:
    """Shortest decimals; whole numbers without a fraction."""
    exact = [float.fromhex(number) for number in text.split()]
    short = exact if dtype == "float64" else [float(str(np.float32(number))) for number in exact]
    return [int(one) if one.is_integer() and abs(one) < 1e15 else one for one in short]


def _networks() -> list[dict[str, str]]:
    folder = files("anchorhead.play") / "examples"
    listed = json.loads((folder / "examples.json").read_text("utf-8"))
    return [one | {"file": _base64(folder / f"{one['name']}.safetensors")} for one in listed]


def _base64(file: Traversable) -> str:
    return base64.b64encode(file.read_bytes()).decode()

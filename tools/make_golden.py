"""Saves networks of the tests' table for later versions to read: `python -m tools.make_golden [NAME ...]`.

Files go to tests/golden/format-N, N the format that this version writes, with what they must still give in
expected.json: some inputs and the outputs of today, the certificate's kind, bound and box. What is there is never
written again: a file is worth what it is because an earlier version wrote it. Without names it saves what no folder
has; format-3-words holds files of format 3 from when terms of certificates were words and numbers.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from anchorhead.disk import write_atomically
from anchorhead.network import Network
from anchorhead.network.files import FORMAT
from tests.networks import DTYPES, inputs, names, network, row_of, tags

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
EXPECTED = "expected.json"
POINTS = 3


def wanted() -> list[str]:
    """Every row of the table, in the dtype that its name's checksum picks; converted neurons in both."""
    return [
        name
        for name in names()
        if "mlp" in tags(name) or DTYPES[crc32(row_of(name).name.encode()) % len(DTYPES)] in tags(name)
    ]


def file_name(name: str) -> str:
    """ "grid, causal (float32)" is kept in grid-causal-float32.safetensors."""
    return "-".join(re.findall(r"[a-z0-9]+", name.lower())) + ".safetensors"


def as_hex(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON, to the last bit."""
    return {"shape": list(array.shape), "hex": [float(one).hex() for one in array.ravel()]}


def from_hex(kept: dict[str, Any]) -> np.ndarray:
    return np.array([float.fromhex(one) for one in kept["hex"]]).reshape(kept["shape"])


def evaluated(net: Network, x: np.ndarray) -> np.ndarray:
    """What the network gives; of a learner the weights too, as its layers put them out."""
    return Network.__call__(net, x.astype(net.dtype), outside="ignore")


def said(net: Network) -> dict[str, Any]:
    """What a file says beside its numbers."""
    certificate = net.certificate
    claim = certificate and {
        "kind": certificate.kind,
        "bound": certificate.bound.hex(),
        "low": as_hex(certificate.on.low),
        "high": as_hex(certificate.on.high),
        "target": certificate.target,
        "conditions": len(certificate.conditions),
    }
    return {
        "dtype": net.dtype,
        "target": net.construction,
        "variables": list(net.variables),
        "certificate": claim,
    }


def main(names: Sequence[str]) -> None:
    known = {name for one in GOLDEN.glob(f"*/{EXPECTED}") for name in json.loads(one.read_text())}
    folder = GOLDEN / f"format-{FORMAT}"
    folder.mkdir(parents=True, exist_ok=True)
    listed = folder / EXPECTED
    expected = json.loads(listed.read_text()) if listed.exists() else {}
    for name in names or [name for name in wanted() if name not in known]:
        if name in expected:
            continue
        path, net = folder / file_name(name), network(name)
        if path.exists():
            raise SystemExit(
                f"{path} is there, but {listed} says nothing of it: is it of an interrupted run? delete it"
            )
        x = inputs(net, POINTS, seed=1)
        net.save(path)
        expected[name] = {"inputs": as_hex(x), "outputs": as_hex(evaluated(net, x)), "said": said(net)}
        print(f"{path.stat().st_size:>7,} bytes  {path.name}")
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in expected.items())
    write_atomically(listed, f"{{\n{lines}\n}}\n".encode())
    sizes = [path.stat().st_size for path in folder.iterdir()]
    print(f"{len(expected)} networks, {sum(sizes):,} bytes in {folder}")


if __name__ == "__main__":
    main(sys.argv[1:])

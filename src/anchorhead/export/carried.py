"""What travels with an exported network as text: certificate, program and the names of features."""

from __future__ import annotations

import json
from importlib.metadata import version

from anchorhead.language.canonical import to_data
from anchorhead.network import Network
from anchorhead.network.describe import labels

PREFIX = "anchorhead."


def texts(network: Network) -> dict[str, str]:
    """JSON by name.

    anchorhead.version      the version that wrote it
    anchorhead.certificate  as Certificate.to_json gives it, if there is one
    anchorhead.program      what the network approximates, in words and as a program; of its arrays, the shapes
    anchorhead.layers       for each layer its kind, how many tokens of each kind leave it, and what its heads and their
                            features mean
    """
    found = {"version": version("anchorhead"), "layers": json.dumps(labels(network))}
    if network.certificate is not None:
        found["certificate"] = json.dumps(network.certificate.to_json(), allow_nan=False)
    if network.program is not None:
        data, arrays = to_data(network.program)
        program = {
            "words": None if network.certificate is None else network.certificate.target,
            **data,
            "arrays": {name: list(array.shape) for name, array in arrays.items()},
        }
        found["program"] = json.dumps(program, allow_nan=False)
    return {f"{PREFIX}{name}": text for name, text in found.items()}

"""The weights that a folder stores, by their headers alone: which files, and whether the config fits them in size.

What a config asks for is compared with what is stored before anything is built: a config of ten million layers, or of a
vocabulary that fills the memory, costs nothing to write.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from anchorhead.convert.attention_only.source import PICKLES, read_json
from anchorhead.errors import AnchorheadError

LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers")
MAX_LABELS = 1_000_000
AT_RANDOM = 10_000_000
"""So many numbers that are not stored, such as a pooler's, may be made at random; or as many as are stored."""


def check_weights(folder: Path, config: dict[str, Any]) -> int:
    """How many numbers are stored; refuses pickles, shards elsewhere, and configs of more layers than there are."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    indices = [name for name in names if ".index." in name and name.endswith(".json")]
    for name in indices:
        _check_index(folder / name)
    stored = [name for name in names if name.endswith(".safetensors")]
    if not stored:
        pickled = [name for name in names if name.endswith(PICKLES)]
        if pickled:
            raise AnchorheadError(
                f"{folder} holds its weights as a pickle, {pickled[0]}, which runs code when it is read: save them "
                "with model.save_pretrained(folder), which writes model.safetensors"
            )
        raise AnchorheadError(f"{folder} holds no weights: a model.safetensors is needed")
    shapes = [shape for name in stored for shape in _shapes(folder / name)]
    for key in LAYER_COUNTS:
        layers = config.get(key)
        if isinstance(layers, int | float) and layers > len(shapes):
            raise AnchorheadError(
                f"{folder / 'config.json'} asks for {layers:,} layers ({key}), where {len(shapes):,} weights are "
                "stored in all: the weights do not fit config.json"
            )
    labels = config.get("num_labels")
    if isinstance(labels, int | float) and labels > MAX_LABELS:
        raise AnchorheadError(f"{folder / 'config.json'} asks for {labels:,} labels: at most {MAX_LABELS:,} are taken")
    return sum(map(math.prod, shapes))


def require_size(folder: Path, built: Any, stored: int) -> None:
    """Refuses a model, built without numbers, that would take far more memory than what is stored of it."""
    needed = sum(weight.numel() for weight in built.parameters())
    if needed > 2 * stored + AT_RANDOM:
        raise AnchorheadError(
            f"{folder / 'config.json'} asks for a model of {needed:,} numbers, where {stored:,} are stored: the "
            "weights do not fit config.json"
        )


def built_without_numbers(transformers: Any, folder: Path, kind: Any) -> Any:
    """The model that the folder's config asks for, on the meta device: in no memory."""
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    with torch.device("meta"):
        return transformers.AutoModel.from_config(config) if kind is transformers.AutoModel else kind(config)


def _check_index(path: Path) -> None:
    index = read_json(path)
    shards = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(shards, dict):
        raise AnchorheadError(f"{path} names no files of weights (weight_map)")
    for name in set(map(str, shards.values())):
        if not name.endswith(".safetensors") or Path(name).name != name:
            raise AnchorheadError(
                f"{path} names the file {name!r}: weights are taken from .safetensors files of the folder itself"
            )
        if not (path.parent / name).is_file():
            raise AnchorheadError(f"{path} names the file {name}, which is not there")


def _shapes(path: Path) -> list[list[int]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise AnchorheadError(f"{path} cannot be loaded: {error}") from error

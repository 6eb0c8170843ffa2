"""What is taken from a model's folder beside its weights: texts and settings. Code, and what names code, is refused.

The folder that is written is loaded with trust_remote_code=True, for the code in it that is this package's own.
Whatever else there named a class, or another place to load from, would then be run as well: `auto_map`, a module's
type, the activation of a dense layer, a tokenizer elsewhere. So nothing of that kind is copied, and links that lead out
of the folder are not followed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.given import shown

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
COPIED = (".json", ".txt", ".model", ".model.v3", ".spm", ".bpe", ".tiktoken", ".jinja")
"""What tokenizers, processors and modules of sentence-transformers keep their settings in."""
VOCABULARIES = ("tokenizer.json", "vocab.json", "added_tokens.json", "tekken.json", "unigram.json")
"""Read by tokenizers alone: their keys are words of a language, which may be any."""
LARGEST_JSON = 10_000_000
MAX_FILES = 10_000

NAMES_CODE = {
    "auto_map",
    "auto_mapping",
    "custom_pipelines",
    "custom_generate",
    "configuration_files",
    "transformers_weights",
    "tokenizer_name_or_path",
    "base_model_name_or_path",
    "trust_remote_code",
    "code_revision",
    "adapter_kwargs",
    "kernel_config",
    "use_kernels",
    "allow_all_kernels",
    "fusion_config",
}
"""Keys that make a loader run code of the folder's, or load something from another place."""
NAMES_CLASS = {
    "type",
    "types",
    "tokenizer_class",
    "activation_fn",
    "activation_function",
    "default_activation_function",
    "sbert_ce_default_activation_function",
}
"""Keys that hold the name of a class which is imported and called."""
KNOWN_CLASS = re.compile(r"\w+|torch\.nn(\.modules\.[a-z]+)?\.[A-Z]\w*|sentence_transformers(\.[a-z]\w*)*\.[A-Z]\w*")
MODULE = re.compile(r"sentence_transformers(\.[a-z]\w*)*\.[A-Z]\w*")


def check_source(folder: Path) -> None:
    """Refuses a folder that holds an adapter, links that lead out of it, or settings that name code."""
    for path in _files(folder):
        if path.name.lower() == "adapter_config.json":
            raise AnchorheadError(
                f"{path} is that of an adapter, which would be lost: merge it into the weights first, "
                "peft.PeftModel.from_pretrained(model, adapter).merge_and_unload().save_pretrained(folder)"
            )
        if path.name.lower().endswith(".json") and path.name.lower() not in VOCABULARIES:
            settings = read_json(path)
            check_settings(path, settings)
            if path.name.lower() == "modules.json":
                _check_modules(path, settings)
            if ".index." in path.name.lower() and path.parent != folder:
                raise AnchorheadError(
                    f"{path} spreads the weights of a module over several files, which only the model itself may: save "
                    "the module with its weights in one model.safetensors"
                )


def copied_files(folder: Path) -> Iterator[Path]:
    """Those that are neither the model's own nor code, each checked, from the folder."""
    check_source(folder)
    for path in _files(folder):
        name, there = path.name.lower(), path.relative_to(folder)
        top = len(there.parts) == 1
        # safetensors in a folder below are those of a module beside the transformer, such as a dense layer
        module = name.endswith(".safetensors") and not top
        settings = name.endswith(COPIED) and not (top and (name == "config.json" or ".index." in name))
        if module or settings or name in ("license", "notice"):
            yield there


def read_json(path: Path) -> Any:
    """The value that a JSON file holds, if it is not too large to be one with settings."""
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise AnchorheadError(
                f"{path} is larger than {LARGEST_JSON:,} bytes, no settings of a model: take it out of the folder"
            )
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, AnchorheadError):
            raise
        raise AnchorheadError(f"{path} cannot be read: {error}") from error


def check_settings(path: Path | str, settings: Any) -> None:
    """Refuses settings that name code, however deep inside; `path` says where they are from."""
    left = [settings]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            for key, held in value.items():
                _check_entry(path, str(key), held)
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)


def _check_entry(path: Path | str, key: str, held: Any) -> None:
    if key in NAMES_CODE and held:
        raise AnchorheadError(
            f"{path} names code or another place to load from ({key}: {shown(held)}), which a folder that is loaded "
            "with trust_remote_code=True would run: take the entry out, if the model works without it"
        )
    names = list(held.values()) if isinstance(held, dict) and key == "types" else [held]
    foreign = [name for name in names if isinstance(name, str) and not KNOWN_CLASS.fullmatch(name)]
    elsewhere = key.endswith("_implementation") and "/" in str(held)  # kernels, from the Hub
    if (key in NAMES_CLASS and foreign) or elsewhere:
        raise AnchorheadError(
            f"{path} names what would be imported and run ({key}: {shown(foreign or held)}): classes of torch.nn and "
            "sentence_transformers are taken, no others"
        )


def _check_modules(path: Path, modules: Any) -> None:
    """Refuses modules of sentence-transformers that are not its own, or elsewhere than in the folder."""
    if not isinstance(modules, list):
        raise AnchorheadError(f"{path} holds no list of modules")
    for one in modules:
        kind, place = (one.get("type"), one.get("path")) if isinstance(one, dict) else (None, None)
        if not (isinstance(kind, str) and MODULE.fullmatch(kind)):
            raise AnchorheadError(
                f"{path} has a module of type {shown(kind)}: only those of sentence_transformers itself are taken, "
                "since others are code that comes along"
            )
        if not isinstance(place, str) or Path(place).is_absolute() or ".." in Path(place).parts:
            raise AnchorheadError(f"{path} has a module at {shown(place)}: modules are in folders below, no others")
        names = [held.name.lower() for held in (path.parent / place).glob("*")] if place else []
        pickled = next((name for name in names if name.endswith(PICKLES)), None)
        if pickled and not any(name.endswith(".safetensors") for name in names):
            raise AnchorheadError(
                f"{path.parent / place / pickled} is a pickle, which runs code when it is read: save the model once "
                "more with sentence-transformers, which writes model.safetensors"
            )


def _files(folder: Path) -> Iterator[Path]:
    """All files but hidden ones and those of other formats; links lead to places inside, or to the Hub's own cache."""
    count = 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in ("onnx", "openvino", "__pycache__")
        )
        for name in [*folders, *sorted(files)]:
            path = Path(here) / name
            if name.startswith("."):
                continue
            _check_inside(path, folder)
            count += 1
            if count > MAX_FILES:
                raise AnchorheadError(f"{folder} holds more than {MAX_FILES:,} files: no folder of one model")
            if name in files:
                yield path


def _check_inside(path: Path, folder: Path) -> None:
    try:
        real, root = path.resolve(strict=True), folder.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise AnchorheadError(f"{path} is a link that leads nowhere: {error}") from error
    # a snapshot of the Hub's cache is made of links to files beside it
    blobs = root.parent.parent / "blobs" if root.parent.name == "snapshots" else root
    if not (real.is_relative_to(root) or (real.is_relative_to(blobs) and real.is_file())):
        raise AnchorheadError(f"{path} is a link to {real}, outside of the model's folder: put the file itself there")
    if path.is_symlink() and real.is_dir():
        raise AnchorheadError(f"{path} is a link to a folder: put the folder itself there")
    if not (real.is_file() or real.is_dir()):
        raise AnchorheadError(f"{path} is neither a file nor a folder")

"""Folders in the Hugging Face layout: a model is read from one, and written to one that carries its code."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from anchorhead.convert.attention_only.activations import ACTIVATION_KEYS, names_of_activations
from anchorhead.convert.attention_only.convert import DTYPES, transformers_or_error
from anchorhead.convert.attention_only.families import require_family
from anchorhead.convert.attention_only.readme import readme
from anchorhead.convert.attention_only.report import AttentionOnlyReport
from anchorhead.convert.attention_only.source import check_settings, check_source, copied_files, read_json
from anchorhead.convert.attention_only.stored_weights import built_without_numbers, check_weights, require_size
from anchorhead.disk import check_apart, check_folder_out, path_of, require_model_folder, whole_folder
from anchorhead.errors import AnchorheadError


def read_model(folder: str | Path, dtype: str | None = None) -> Any:
    """The model of a local folder, in eval mode. Nothing is downloaded; no code or pickle in the folder is run."""
    transformers = transformers_or_error()
    folder = path_of(folder)
    config = read_config(folder)
    check_source(folder)
    stored = check_weights(folder, config)
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    found = getattr(transformers, name, None) if isinstance(name, str) else None
    if not (isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)):
        found = transformers.AutoModel
    kind = DTYPES[dtype] if dtype is not None else "auto"
    options = {"local_files_only": True, "use_safetensors": True, "dtype": kind}
    wanted = {"output_loading_info": True, "ignore_mismatched_sizes": True}
    with _quiet(transformers):
        try:
            require_size(folder, built_without_numbers(transformers, folder, found), stored)
            model, loaded = found.from_pretrained(folder, **options, **wanted)
        except AnchorheadError:
            raise
        except Exception as error:  # a config can be wrong in any way, and each raises something else
            _check_activations(folder, config)
            raise AnchorheadError(f"{folder} cannot be loaded as a model: {error}") from error
    _check_loaded(folder, loaded)
    return model.eval()


def read_config(folder: Path) -> dict[str, Any]:
    """A folder's config.json, if it is that of a model that can be converted."""
    path = require_model_folder(folder)
    config = read_json(path)
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise AnchorheadError(f"{path} names no model_type: it is not the config of a transformers model")
    if config.get("attention_only") is not None:
        raise AnchorheadError(f"the model in {folder} has no feed-forward sublayers: it is attention only already")
    require_family(config["model_type"])
    if config.get("auto_map"):
        raise AnchorheadError(
            f"the model in {folder} needs Python code that comes with it (auto_map in config.json), which is not run: "
            "give a model whose code is in transformers itself"
        )
    check_settings(path, config)
    return config


def _check_activations(folder: Path, config: dict[str, Any]) -> None:
    """Refuses an activation that transformers does not know: it would say no more than its name."""
    from transformers.activations import ACT2FN

    for key in ACTIVATION_KEYS:
        name = config.get(key)
        if isinstance(name, str) and name not in ACT2FN:
            raise AnchorheadError(
                f"{folder / 'config.json'} names the activation {name!r} ({key}), for which there is no head: those of "
                f"{', '.join(names_of_activations())} can be converted"
            )


def _check_loaded(folder: Path, loaded: dict[str, Any]) -> None:
    wrong = loaded.get("mismatched_keys")
    if wrong:
        name, there, needed = min(wrong)
        raise AnchorheadError(
            f"{folder}: the weights do not fit config.json: {name} is {tuple(there)}, where {tuple(needed)} is needed"
        )
    missing = sorted(loaded.get("missing_keys") or ())
    if missing:
        warnings.warn(
            f"{folder} holds no {missing[0]}{f' and {len(missing) - 1} other weights' if len(missing) > 1 else ''} of "
            "this kind of model: made at random, as transformers does",
            stacklevel=3,
        )


def write_folder(
    model: Any, report: AttentionOnlyReport, out: str | Path, source: str | Path | None = None, force: bool = False
) -> None:
    """Writes the model, its code, the report and a README; and whatever else `source` holds (tokenizer, pooling, …).

    All is written under another name and renamed at the end. A folder that exists is replaced with `force` alone, and
    only if anchorhead wrote it.
    """
    check_out(out, source, force)
    with _in_words(out), whole_folder(out, replace=force) as temporary:
        if source is not None:
            _copy_rest(Path(source), temporary)
        with _quiet(transformers_or_error()):
            model.save_pretrained(temporary)
        report.save(temporary)
        (temporary / "README.md").write_text(
            readme(model, report, (temporary / "modules.json").exists()), encoding="utf-8"
        )


def check_out(out: str | Path, source: str | Path | None, force: bool) -> None:
    """Refuses an output folder before any work is done."""
    if source is not None:
        check_apart(out, source)
    check_folder_out(out, replace=force)


@contextmanager
def _in_words(out: str | Path) -> Iterator[None]:
    """What the library that writes weights says of a full disk."""
    try:
        yield
    except SafetensorError as error:
        raise AnchorheadError(f"{out} cannot be written: {error}") from error


def _copy_rest(source: Path, out: Path) -> None:
    """What is neither weights nor code: links to files are followed, as the Hub's cache needs it."""
    for path in copied_files(source):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / path, out / path)


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without transformers' bars and tables: what matters in them is said in our words."""
    logging = transformers.utils.logging
    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()

"""What can be refused before torch is imported, so that a mistyped command is answered at once.

The library checks all of this itself; these are the same functions, called early.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def check_files(plot: Path | None, *others: Path | None) -> None:
    """Refuses what cannot be written before any work is done."""
    from anchorhead.disk import check_picture_path, check_writable

    if plot is not None:
        check_picture_path(plot)
    for path in others:
        if path is not None:
            check_writable(path)


def check_saved(path: str | Path) -> None:
    """Refuses a saved network that is not there, or no file."""
    from anchorhead.disk import file_to_read

    file_to_read(path, "a saved network")


def check_model_file(path: str | Path, activation: str | None, order: str | None, until: str | None) -> None:
    """Refuses a file of weights that is not there, and options that do not go with its kind."""
    from anchorhead.disk import file_to_read
    from anchorhead.errors import AnchorheadError
    from anchorhead.language.targets.spec import expression_of

    onnx = Path(path).suffix.lower() == ".onnx"
    file_to_read(path, "an ONNX file" if onnx else "a safetensors or ONNX file")
    for option, given in (("--activation", activation), ("--order", order)):
        if onnx and given is not None:
            raise AnchorheadError(f"{option} {given} goes with a .safetensors file; {path} says its own")
    if not onnx and until is not None:
        raise AnchorheadError(f"--until {until} goes with an ONNX file, *.onnx: leave it out")
    if not onnx and activation is None:
        raise AnchorheadError(f"{path} holds weights alone: say what stands between them, as in --activation relu")
    if activation is not None:
        expression_of(activation)


def check_within(*errors: float | None) -> None:
    """Refuses errors that cannot be asked for."""
    from anchorhead.given import checked_within

    for error in errors:
        if error is not None:
            checked_within(error)


def check_interval(on: Any) -> None:
    """Refuses an interval with its ends the wrong way round, or not finite."""
    from anchorhead.language.targets.scalar import interval

    interval(on)


def check_range(low: float, high: float) -> None:
    """Refuses a range that is none."""
    from anchorhead.errors import AnchorheadError

    if not low < high:
        raise AnchorheadError(f"--low {low:g} and --high {high:g}: low must be below high")


def check_head(function: Any, on: Any, within: float | None, anchors: int | None = None) -> None:
    """Refuses a function of one variable that is not known, or not defined on the interval; an error; a size."""
    from anchorhead.given import checked_count
    from anchorhead.language.targets import target_of

    check_within(within)
    if anchors is not None:
        checked_count("anchors", anchors)
    target_of(function, on)


def check_losses(losses: list[str] | None) -> None:
    """Refuses losses that have no name."""
    from anchorhead.errors import AnchorheadError
    from anchorhead.language.targets.losses import LOSSES

    unknown = [loss for loss in losses or [] if loss not in LOSSES]
    if unknown:
        raise AnchorheadError(f"--loss {', '.join(unknown)}: choose from {', '.join(LOSSES)}")

"""A network in a format that others read: which formats there are, and where the result goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from anchorhead.errors import AnchorheadError
from anchorhead.network import Network
from anchorhead.network.files import check_folder, load, write_atomically


@dataclass(frozen=True)
class Format:
    """What a network can become.

    suffix   how its files end
    home     the module with make(network), the object, and to_bytes(object, network), what a file of it holds
    extra    the optional dependency that it needs, and the package whose absence says that it is missing
    words    what it is, in words
    """

    suffix: str
    home: str
    words: str
    extra: str | None = None
    package: str | None = None

    def function(self, name: str) -> Callable[..., Any]:
        """One of the functions of its module, with an error that names the extra where it is not installed."""
        try:
            return getattr(import_module(self.home), name)
        except ModuleNotFoundError as error:
            if self.package is None or (error.name or "").partition(".")[0] != self.package:
                raise
            raise AnchorheadError(
                f'{self.words} needs {self.package}, which is not installed: pip install "anchorhead[{self.extra}]"'
            ) from error


FORMATS: dict[str, Format] = {
    "onnx": Format(".onnx", "anchorhead.export.onnx_file", "an ONNX file", "onnx", "onnx"),
    "torch": Format(".pt2", "anchorhead.export.torch_program", "a program of torch.export"),
    "transformer-lens": Format(
        ".lens.safetensors",
        "anchorhead.export.transformer_lens",
        "a bridge of transformer-lens",
        "lens",
        "transformer_lens",
    ),
}


def export(network: Network | str | Path, path: str | Path | None = None, *, to: str | None = None) -> Any:
    """The network in another format: written to `path`, which is returned; without a path, the object itself.

    network  a Network, or the path of a saved one
    path     where to write it; its ending says the format: f.onnx, f.pt2, f.lens.safetensors
    to       "onnx", "torch" or "transformer-lens", where no path says it, or against its ending

    An ONNX file holds MatMul, Add, Softmax and changes of shape alone, runs without Python, takes any batch size, and
    carries certificate, target and feature names in its metadata. A .pt2 file is a program of torch.export, which
    torch.export.load reads; the same texts are its extra files. A TransformerBridge has hooks and caches on real-valued
    inputs, and says what each head and each place of the residual stream is (head_labels, feature_names); its file
    holds the bridge's state_dict with these texts. None has a guard: inputs outside the certified box are computed as
    they are.
    """
    name = check_format(path, to)
    chosen = FORMATS[name]
    if path is not None:
        check_folder(path)
    if not isinstance(network, Network):
        if not isinstance(network, str | Path):
            raise AnchorheadError(f"a {type(network).__name__} cannot be exported: give a Network, or its file")
        network = load(network)
    made = chosen.function("make")(network)
    if path is None:
        return made
    write_atomically(path, chosen.function("to_bytes")(made, network))
    return Path(path)


def check_format(path: str | Path | None, to: str | None) -> str:
    """The format's name, from what was asked for or from the ending of the path."""
    known = ", ".join(f'"{name}" (*{one.suffix})' for name, one in FORMATS.items())
    if to is not None and to not in FORMATS:
        raise AnchorheadError(f"to={to!r}: a network can be exported to {known}")
    if to is None:
        if path is None:
            raise AnchorheadError(f"neither a path nor to= says what to export to: give one of {known}")
        to = next((name for name, one in FORMATS.items() if Path(path).name.lower().endswith(one.suffix)), None)
        if to is None:
            endings = " or ".join(one.suffix for one in FORMATS.values())
            raise AnchorheadError(f"{path} does not end in {endings}: say to=, one of {known}")
    return to

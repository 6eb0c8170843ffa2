"""A network in a format that others read: which formats there are, and where the result goes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anchorhead.disk import check_writable, file_to_read, path_of, write_atomically
from anchorhead.errors import AnchorheadError
from anchorhead.given import shown
from anchorhead.progress import Progress, progress_line

if TYPE_CHECKING:
    from anchorhead.constructions.single.certified_head import Head
    from anchorhead.network import Network


@dataclass(frozen=True)
class Format:
    """What a network can become.

    suffix   how its files end
    home     the module with make(network), the object, and to_bytes(object, network), what a file of it holds
    extra    the optional dependency that it needs, and the package whose absence says that it is missing
    words    what it is, in words
    then     what to do with it
    """

    suffix: str
    home: str
    words: str
    extra: str | None = None
    package: str | None = None
    then: str = ""

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
    "coq": Format(
        ".v", "anchorhead.export.coq.head_file", "a file of Coq", then="`coqc` checks it (Debian: coq, libcoq-interval)"
    ),
}
SHORT = {"lens": "transformer-lens"}
"""Other words for formats."""


def export(
    network: Network | Head | str | Path,
    path: str | Path | None = None,
    *,
    to: str | None = None,
    progress: Progress | bool | None = True,
) -> Any:
    """The network in another format: written to `path`, which is returned; without a path, the object itself.

    network  a Network, a Head, or the path of a saved one
    path     where to write it; its ending says the format: f.onnx, f.pt2, f.lens.safetensors, f.v
    to       "onnx", "torch", "transformer-lens" ("lens") or "coq", where no path or ending says it
    progress  a line for those who wait, none (False), or a function of a Status: see anchorhead.progress

    An ONNX file (opset 17) holds MatMul, Add, Softmax and changes of shape alone, in a Loop where layers repeat, runs
    without Python, takes any batch of 1 or more, and carries certificate, target and feature names in its metadata. A
    .pt2 file is a program of torch.export, which torch.export.load reads; the same texts are its extra files. A
    TransformerBridge has hooks and caches on real-valued inputs, and says what each head and each place of the residual
    stream is (head_labels, feature_names); its file holds the bridge's state_dict with these texts, for
    bridge.load_state_dict on a bridge of the same network. None has a guard: inputs outside the certified box are
    computed as they are.

    A file of Coq holds no network but a theorem about a head: how far it is from its function in exact arithmetic, for
    every real number of the interval, with a proof that coqc checks (Debian: coq, libcoq-interval).

    returns   the path that was written; without a path, the onnx.ModelProto, the ExportedProgram, the TransformerBridge
              or the text

        >>> net = ah.approximate("x*y", on={"x": (-1, 1), "y": (-1, 1)}, within=1e-6)
        >>> str(ah.export(net, "product.onnx"))
        'product.onnx'
    """
    name = check_format(path, to)
    chosen = FORMATS[name]
    if path is not None:
        check_writable(path)
    given = _network(network, path)
    with progress_line(progress, "exporting"):
        made = chosen.function("make")(given)
        if path is None:
            return made
        write_atomically(path, chosen.function("to_bytes")(made, given))
        return Path(path)


def _network(thing: Any, path: str | Path | None) -> Network:
    """The network that is meant; its own file is never what is written over."""
    from anchorhead.network import Network
    from anchorhead.network.files import load

    if isinstance(thing, str | Path):
        source = file_to_read(thing, "a saved network")
        if path is not None and Path(path).exists() and Path(path).samefile(source):
            raise AnchorheadError(f"{path} is the network that is to be exported: give the result another name")
        return load(thing)
    network = getattr(thing, "network", thing)
    if not isinstance(network, Network):
        raise AnchorheadError(
            f"a {type(thing).__name__} cannot be exported: give a Network, a Head, or the path of a saved one"
        )
    return network


def check_format(path: Any, to: Any) -> str:
    """The format's name, from what was asked for or from the ending of the path; the two may not contradict."""
    known = ", ".join(f'"{name}" (*{one.suffix})' for name, one in FORMATS.items())
    to = SHORT.get(to, to) if isinstance(to, str) else to
    if to is not None and not (isinstance(to, str) and to in FORMATS):
        raise AnchorheadError(f"to={shown(to)}: a network can be exported to {known}")
    if path is None and to is None:
        raise AnchorheadError(f"neither a path nor to= says what to export to: give one of {known}")
    file = "" if path is None else path_of(path).name.lower()
    said = next((name for name, one in FORMATS.items() if file.endswith(one.suffix)), None)
    chosen = to or said
    if chosen is None:
        endings = " or ".join(one.suffix for one in FORMATS.values())
        raise AnchorheadError(f"{path} does not end in {endings}: end it so, or say to= (--to), one of {known}")
    if said is not None and said != chosen:
        raise AnchorheadError(
            f"{path} has the ending of {FORMATS[said].words}, but would be {FORMATS[chosen].words}: "
            f"end it in {FORMATS[chosen].suffix}, or leave out to= (--to)"
        )
    if chosen == "coq" and path is not None and not re.fullmatch(r"[A-Za-z_]\w*", path_of(path).stem, re.ASCII):
        raise AnchorheadError(
            f"{path}: Coq's files are called by letters, digits and _ alone, and not by a digit first: "
            f"give a name such as {coq_name(path_of(path).stem)}.v"
        )
    return chosen


def coq_name(stem: str) -> str:
    """A name that Coq takes for a file, like this one."""
    name = re.sub(r"\W", "_", stem, flags=re.ASCII)
    return name if not name[:1].isdigit() else f"head_{name}"

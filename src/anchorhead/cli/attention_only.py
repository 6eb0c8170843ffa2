"""`anchorhead attention-only`: a transformers model's folder in, one without feed-forward layers out."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anchorhead.cli.clock import print_time
from anchorhead.cli.first_checks import check_within
from anchorhead.cli.network_report import warnings_in_words
from anchorhead.disk import check_apart, check_folder_out, file_to_read, require_model_folder

if TYPE_CHECKING:
    from anchorhead.convert.attention_only.report import AttentionOnlyReport
    from anchorhead.progress import Progress


class ModelDtype(StrEnum):
    float64 = "float64"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


def attention_only(
    model_dir: Annotated[
        Path, typer.Argument(metavar="MODEL_DIR", help="A local folder in the Hugging Face layout, with safetensors.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT_DIR", help="The folder to write; it must not exist.")
    ],
    within: Annotated[
        float, typer.Option(help="The error asked for, of each activation, relative to max(1, |s|).")
    ] = 1e-5,
    texts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Measure how far the embeddings of its lines move.")
    ] = None,
    dtype: Annotated[
        ModelDtype | None, typer.Option(help="The type in which it computes; by default the folder's.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT_DIR, if anchorhead wrote it.")] = False,
) -> None:
    """Replace every feed-forward sublayer of a pretrained transformer by attention heads, with a proof for each layer.

    BERT, RoBERTa, DistilBERT, GPT-2, OPT, ViT, Whisper, Llama, Mistral, Qwen, Gemma.

    Example: [bold]anchorhead attention-only all-MiniLM-L6-v2 -o minilm-attention --within 1e-5[/bold]

    Example: [bold]anchorhead attention-only gpt2 -o out --dtype float64 --within 1e-10 --texts lines.txt[/bold]
    """
    check_within(within)
    require_model_folder(model_dir)
    check_apart(output, model_dir)
    check_folder_out(output, replace=force)
    if texts is not None and (texts.is_dir() or not texts.exists()):  # a pipe will do
        file_to_read(texts, "a file of lines of text")
    from anchorhead.convert.attention_only.convert import attention_only as make
    from anchorhead.convert.attention_only.folder import check_out, read_config, read_model, write_folder
    from anchorhead.convert.attention_only.texts import read_texts
    from anchorhead.progress import Status, progress_line

    read_config(model_dir)
    check_out(output, model_dir, force)
    lines = None if texts is None else read_texts(texts)
    with progress_line(True, f"loading {model_dir}") as tell, warnings_in_words():
        original = read_model(model_dir, None if dtype is None else dtype.value)
        model, report = make(original, within, progress=tell)
        if lines is not None:
            report = _with_texts(report, original, model, model_dir, lines, tell)
        tell(Status(f"writing {output}"))
        write_folder(model, report, output, model_dir, force)
    typer.echo(str(report))
    typer.secho(
        f"Model: {output}; load it with {type(model)._auto_class}.from_pretrained({str(output)!r}, "
        "trust_remote_code=True)",
        fg="green",
    )
    print_time()


def _with_texts(
    report: AttentionOnlyReport, original: Any, model: Any, folder: Path, lines: list[str], tell: Progress
) -> AttentionOnlyReport:
    """The report with how far the embeddings of the lines moved."""
    from anchorhead.convert.attention_only.texts import embedding_change, embeddings, pools_first, read_tokenizer
    from anchorhead.progress import Status

    tokenizer, first = read_tokenizer(folder), pools_first(folder)

    def embedded(name: str, one: Any) -> Any:
        return embeddings(one, tokenizer, lines, first, lambda done: tell(Status(name, share=done / len(lines))))

    found = [embedded("texts, original", original), embedded("texts, attention only", model)]
    return replace(report, changes=(*report.changes, embedding_change(*found)))

"""How far a model's sentence embeddings move, over lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float

from anchorhead.convert.attention_only.convert import transformers_or_error
from anchorhead.convert.attention_only.report import Change
from anchorhead.convert.attention_only.samples import least_cosine
from anchorhead.convert.attention_only.source import read_json
from anchorhead.errors import AnchorheadError

MAX_TEXTS = 100_000
MAX_BYTES = 200_000_000
BATCH = 16
BATCH_SIGNS = 8_000
"""A batch ends before texts in it, all as long as the longest, would have more signs than this."""


def read_texts(path: Path) -> list[str]:
    """The lines of a file, empty ones too."""
    try:
        with path.open("rb") as file:  # a device or a pipe does not say how long it is
            given = file.read(MAX_BYTES + 1)
        if len(given) > MAX_BYTES:
            raise AnchorheadError(f"{path} has more than {MAX_BYTES:,} bytes: give fewer texts")
        texts = given.decode("utf-8").splitlines()
    except AnchorheadError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise AnchorheadError(f"{path} cannot be read as lines of UTF-8 text: {error}") from error
    if not texts or len(texts) > MAX_TEXTS:
        raise AnchorheadError(f"{path} has {len(texts):,} lines: give between 1 and {MAX_TEXTS:,} texts, one a line")
    return texts


def read_tokenizer(folder: Path) -> Any:
    transformers = transformers_or_error()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        raise AnchorheadError(f"{folder} has no tokenizer that can be read, which texts need: {error}") from error
    needed = sorted(tokenizer.vocab_files_names.values())
    if needed and not any((folder / name).is_file() for name in needed):
        # transformers would make one that knows no word
        raise AnchorheadError(f"{folder} has no tokenizer, which texts need: put {' or '.join(needed)} there")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def pools_first(folder: Path) -> bool:
    """Whether sentence-transformers would take the first token for the sentence, rather than the mean of all."""
    try:
        config = read_json(folder / "1_Pooling" / "config.json")
    except AnchorheadError:
        return False
    return isinstance(config, dict) and bool(config.get("pooling_mode_cls_token"))


def embeddings(
    model: Any, tokenizer: Any, texts: Sequence[str], first: bool = False, tell: Callable[[int], object] | None = None
) -> Float[torch.Tensor, "texts d"]:
    """Unit vectors, in float64: the mean of the last hidden states over a text's tokens, or the first one's."""
    if model.main_input_name != "input_ids":
        raise AnchorheadError(f"a {type(model).__name__} reads no text: leave out the texts")
    config = model.config
    longest = min(tokenizer.model_max_length, getattr(config, "max_position_embeddings", 2048))
    if config.model_type in ("roberta", "xlm-roberta"):
        longest = min(longest, config.max_position_embeddings - config.pad_token_id - 1)
    base, device = model.base_model, next(model.parameters()).device
    found: list[torch.Tensor | None] = [None] * len(texts)
    done = 0
    for some in _batches(texts):
        batch = tokenizer(
            [texts[i] for i in some], padding=True, truncation=True, max_length=int(longest), return_tensors="pt"
        )
        mask, words = batch["attention_mask"], base.get_input_embeddings().weight.shape[0]
        unknown = batch["input_ids"][batch["input_ids"] >= words]
        if len(unknown):
            raise AnchorheadError(
                f"the tokenizer makes the token {int(unknown[0])}, where the model knows {words:,}: another model's"
            )
        for i, vector in zip(some, _pooled(base, batch, mask, first, device), strict=True):
            found[i] = vector
        done += len(some)
        if tell is not None:
            tell(done)
    return torch.stack([vector for vector in found if vector is not None])


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Which texts go together: those of about one length, so that little is padded."""
    some: list[int] = []
    for i in sorted(range(len(texts)), key=lambda i: len(texts[i])):
        if some and (len(some) == BATCH or (len(some) + 1) * len(texts[i]) > BATCH_SIGNS):
            yield some
            some = []
        some.append(i)
    yield some


def _pooled(base: Any, batch: Any, mask: torch.Tensor, first: bool, device: Any) -> torch.Tensor:
    width = base.config.hidden_size
    if mask.shape[1] == 0:
        return torch.zeros(len(mask), width, dtype=torch.float64)
    with torch.no_grad():
        hidden = base(input_ids=batch["input_ids"].to(device), attention_mask=mask.to(device)).last_hidden_state
    hidden, weights = hidden.cpu().double(), mask.double()
    if first:
        weights = torch.zeros_like(weights)
        weights[:, 0] = 1.0
    mean = (hidden * weights[..., None]).sum(dim=1) / weights.sum(dim=1).clamp(min=1)[:, None]
    return torch.nn.functional.normalize(mean, dim=-1)


def embedding_change(before: Float[torch.Tensor, "texts d"], after: Float[torch.Tensor, "texts d"]) -> Change:
    return Change(
        f"{len(before):,} text{'s' * (len(before) != 1)}",
        "sentence embeddings of length 1",
        float((before - after).abs().max()),
        float(before.abs().max()),
        least_cosine(before, after),
    )

"""The README of a folder that holds an attention-only model."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from anchorhead.convert.attention_only.report import AttentionOnlyReport

TEXT = """# {model} as attention only

Every feed-forward sublayer of this model is an attention layer: one head for each neuron, in which a token sees
itself and register tokens. The linear maps are the original's; what stood between them is a softmax over keys
(`modeling_attention_only.py`, `attend.py`; `attend_triton.py` is for GPUs).

```python
from transformers import {auto}

model = {auto}.from_pretrained("this folder", trust_remote_code=True)
```
{sentences}
Without `trust_remote_code=True` nothing loads, on purpose: the weights alone, in transformers' own code, would be the
original model again, with its feed-forward layers. So `config.json` has a `model_type` that transformers does not know,
and names no activation.

```text
{table}
```

All figures are in `{file}`. Made by anchorhead {version}.
"""

SENTENCES = """
or, in sentence-transformers, `SentenceTransformer("this folder", trust_remote_code=True)`.
"""


def readme(model: Any, report: AttentionOnlyReport, sentences: bool = False) -> str:
    return TEXT.format(
        model=report.model,
        auto=type(model)._auto_class or "AutoModel",
        sentences=SENTENCES if sentences else "",
        table=report,
        file="attention_only_report.json",
        version=version("anchorhead"),
    )

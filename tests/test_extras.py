"""Optional dependencies stay optional."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import anchorhead as ah
from anchorhead.network import Embed, Network


def test_no_public_name_imports_an_extra():
    code = (
        "import sys, anchorhead as ah, anchorhead.cli, anchorhead.incontext\n"
        "[getattr(ah, name) for name in ah.__all__]\n"
        "extras = {'onnx', 'onnxruntime', 'transformers', 'transformer_lens', 'sklearn', 'sentence_transformers'}\n"
        "print(sorted(extras & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("to", "package", "extra"), [("onnx", "onnx", "onnx"), ("transformer-lens", "transformer_lens", "lens")]
)
def test_exports_name_the_extra_that_is_missing(to, package, extra, monkeypatch):
    ours = ("anchorhead.export.onnx_", "anchorhead.export.lens_", "anchorhead.export.transformer_lens")
    for name in [name for name in sys.modules if name.startswith(ours) or name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ah.AnchorheadError, match=rf'pip install "anchorhead\[{extra}\]"'):
        ah.export(Network([Embed(np.ones((2, 2)), np.zeros(2))]), to=to)

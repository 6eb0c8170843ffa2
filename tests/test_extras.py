"""Optional dependencies stay optional."""

from __future__ import annotations

import subprocess
import sys


def test_no_public_name_imports_an_extra():
    code = (
        "import sys, anchorhead as ah, anchorhead.cli, anchorhead.incontext\n"
        "[getattr(ah, name) for name in ah.__all__]\n"
        "extras = {'onnx', 'onnxruntime', 'transformers', 'transformer_lens', 'sklearn', 'sentence_transformers'}\n"
        "print(sorted(extras & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"

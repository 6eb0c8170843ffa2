"""On a GPU, a slice of every float for every head that ships, by every path. Skipped without one."""

import pytest
import torch

from tools.exhaust import table
from tools.exhaust.__main__ import main

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("path", ["triton", "direct", "powers", "plain", "network"])
def test_no_bound_is_exceeded(path, tmp_path):
    output = tmp_path / "slice.csv"
    assert main(["--device", "cuda", "--slice", "2^20", "--paths", path, "--output", str(output)]) == 0
    rows = table.read(output)
    assert rows
    assert all(row.violations == "0" and row.device != "CPU" for row in rows)

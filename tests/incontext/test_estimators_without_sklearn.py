"""Without scikit-learn the library works, and the estimators say what is missing."""

from __future__ import annotations

import subprocess
import sys

HIDDEN = """
import sys
from anchorhead import incontext
incontext.gradient_descent
print("sklearn" in sys.modules)
sys.modules["sklearn"] = None
from anchorhead.errors import AnchorheadError
try:
    incontext.Ridge
except AnchorheadError as error:
    print(error)
"""


def test_the_room_comes_without_scikit_learn_and_a_missing_one_is_named_with_its_extra() -> None:
    run = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True)
    imported, error = run.stdout.splitlines()
    assert imported == "False"
    assert 'pip install "anchorhead[sklearn]"' in error

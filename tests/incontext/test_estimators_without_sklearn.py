"""Without scikit-learn the library works, and the estimators say what is missing."""

from __future__ import annotations

import subprocess
import sys

HIDDEN = """
import sys
sys.modules["sklearn"] = None
from anchorhead import incontext
from anchorhead.errors import AnchorheadError
incontext.gradient_descent
try:
    incontext.Ridge
except AnchorheadError as error:
    print(error)
"""


def test_a_missing_scikit_learn_is_named_with_its_extra() -> None:
    run = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True)
    assert 'pip install "anchorhead[sklearn]"' in run.stdout


def test_importing_the_room_does_not_import_scikit_learn() -> None:
    code = "import sys, anchorhead.incontext; print('sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"

"""What tests of folders with code share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def modules_cache(tmp_path_factory):
    """Where transformers copies the code of a folder to: not the user's own place."""
    with pytest.MonkeyPatch.context() as patched:
        there = str(tmp_path_factory.mktemp("modules"))
        patched.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", there)
        yield there

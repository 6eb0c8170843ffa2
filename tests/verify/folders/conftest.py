"""Folders of small attention-only models, each written once for the tests of a file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "convert"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    from attention_only_models import small

    import anchorhead as ah
    from anchorhead.convert.attention_only.folder import write_folder

    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("models") / name.replace(" ", "_")
            write_folder(*ah.attention_only(small(name), within=1e-5), made[name])
        return made[name]

    return folder

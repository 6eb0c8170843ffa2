"""The drawing of what stands behind a bound shows the tables as they are."""

from __future__ import annotations

from tools.draw_trust import TARGET, drawing, layers


def test_the_drawing_has_the_counts_of_the_tables() -> None:
    assert TARGET.read_text() == drawing(), "python -m tools.draw_trust draws it anew"


def test_no_count_is_empty() -> None:
    for layer in layers():
        assert not layer.counted.startswith("0 "), layer.title
    assert layers()[-1].counted.endswith(" 0 violations")

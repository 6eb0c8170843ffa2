"""One thread unless OMP_NUM_THREADS asks for more: tests are many and small. Annotations of the package are checked.

No outcome depends on the clock: nothing that hypothesis draws is too slow.
"""

import os

if "OMP_NUM_THREADS" not in os.environ:  # before numpy is imported, which reads it then
    os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from hypothesis import HealthCheck, settings

from tests.type_checks import check_annotations, count_anew

check_annotations()
settings.register_profile("without clocks", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("without clocks")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is slow_for some of its parameters, those are slow tests."""
    for item in items:
        for mark in item.iter_markers("slow_for"):
            if isinstance(item, pytest.Function) and item.callspec.id in mark.args:
                item.add_marker("slow")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::tests.type_checks.WrongArgument")


@pytest.fixture(scope="module", autouse=True)
def _calls_are_counted_anew() -> None:
    count_anew()

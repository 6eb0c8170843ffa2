"""One thread unless OMP_NUM_THREADS asks for more: tests are many and small. Annotations of the package are checked.

No outcome depends on the clock: nothing that hypothesis draws is too slow. Of a test of many cases `make test` runs a
part, the same on every machine, and `make slow` the others.
"""

import gc
import os
from collections import defaultdict
from zlib import crc32

if "OMP_NUM_THREADS" not in os.environ:  # before numpy is imported, which reads it then
    os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from hypothesis import HealthCheck, settings

from tests.type_checks import check_annotations, count_anew

gc.disable()
check_annotations()
settings.register_profile("without clocks", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("without clocks")
FEW = 3
"""`make test` runs a third of the cases of a test, but at least so many."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Cases that are slow by name (slow_for) are slow tests; of the others of a test some, unless all_cases matter."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        case = item.callspec.id if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
        if case is not None and any(case in mark.args for mark in item.iter_markers("slow_for")):
            item.add_marker("slow")
        if case is not None and not any(item.iter_markers(name="slow")) and not any(item.iter_markers("all_cases")):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        by_checksum = sorted(cases, key=lambda item: crc32(item.nodeid.encode()))
        for item in by_checksum[max(FEW, -(-len(cases) // 3)) :]:
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """What was imported stays to the end: it is not looked through for garbage, neither now nor later."""
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore::tests.type_checks.WrongArgument")


@pytest.fixture(scope="module", autouse=True)
def _calls_are_counted_anew() -> None:
    count_anew()

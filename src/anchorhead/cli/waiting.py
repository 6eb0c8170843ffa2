"""A line for the patient, while nobody knows how long it will take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from anchorhead.cli.report import PATIENCE


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """A function to say what is being done; after a second, a line on stderr shows it until all is done."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    line = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = line.add_task(text, total=None)
    timer = threading.Timer(PATIENCE, line.start)
    timer.daemon = True
    timer.start()

    def tell(now: str) -> None:
        line.update(task, description=now)

    try:
        yield tell
    finally:
        timer.cancel()
        timer.join()
        line.stop()

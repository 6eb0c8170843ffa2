"""Small work runs on one thread: sharing it out costs more than it saves, and on a busy machine very much more.

torch shares a product out over all cores however small it is, and threads that wait for the others keep their cores
busy: beside other work a learner of 40 steps on 20 examples takes ten times as much of the processor on two threads as
on one (`make bench` measures it). So calls that handle no more than SMALL numbers at their widest place keep to one.

`torch.set_num_threads` sets the number of the thread that calls it, and the one with which threads begin that have not
used torch yet. So a thread restores its own number when it is done, whatever others do meanwhile; and a thread that
begins while others are at small work, and so finds a 1 that nobody asked for, takes the number that these have put
aside.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

SMALL = 2**18
"""Numbers at the widest place of a network, about a millisecond of work on one core for each layer."""

_LOCK = threading.Lock()
_put_aside: list[int] = []
"""The numbers of the threads that are at small work just now."""


class _OfThread(threading.local):
    begun = False


_own = _OfThread()
_NOTHING = nullcontext()


def threads_for(numbers: int) -> AbstractContextManager[None]:
    """One thread inside, where the widest place holds no more than SMALL numbers; otherwise as many as before."""
    settled = _own.begun and (numbers > SMALL or torch.get_num_threads() == 1)
    return _NOTHING if settled else _threads_for(numbers)


@contextmanager
def _threads_for(numbers: int) -> Iterator[None]:
    with _LOCK:
        before = torch.get_num_threads()
        if before == 1 and not _own.begun and _put_aside:
            before = max(_put_aside)
            torch.set_num_threads(before)
        _own.begun = True
        alone = numbers <= SMALL and before > 1
        if alone:
            _put_aside.append(before)
            torch.set_num_threads(1)
    try:
        yield
    finally:
        if alone:
            with _LOCK:
                _put_aside.remove(before)
                torch.set_num_threads(before)

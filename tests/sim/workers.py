"""Stories run in child processes, some in each, and their results in order.

A simulation leaves what only a garbage collection frees, and that takes a tenth of its time. A
child collects nothing: it ends after a few stories, and the system frees all of it.
"""

from __future__ import annotations

import fcntl
import gc
import itertools
import os
import pickle
import sys
import traceback
from collections import deque
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from tests.sim import loop
from tests.sim.run import Result, run_story

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.sim.story import Story

# Of one child; a story leaves some MiB.
STORIES_MAX = 40
RESULTS_SIZE = 1 << 20


class _Child(NamedTuple):
    pid: int
    results: BinaryIO


def results(stories: Iterable[Story], jobs: int = 1) -> Iterator[Result]:
    """Run stories, in so many children at a time.

    Raises:
        RuntimeError: a child has failed; the text says how.
    """
    remaining = iter(stories)
    children: deque[_Child] = deque()
    gc.collect()
    try:
        while True:
            while len(children) < jobs and (
                batch := list(itertools.islice(remaining, STORIES_MAX))
            ):
                children.append(_start(batch))
            if not children:
                return
            yield from _results_of(children[0])
            _wait(children.popleft())
    finally:
        for child in children:
            _wait(child)


def _start(stories: list[Story]) -> _Child:
    reading, writing = os.pipe()
    # All of its results: it does not wait for those of the one before it to be read.
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, RESULTS_SIZE)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as told:
                _run(stories, told)
        finally:
            # Nothing of the parent's is ended or written here, nor goes on.
            os._exit(0)
    os.close(writing)
    return _Child(pid, os.fdopen(reading, "rb"))


def _run(stories: list[Story], told: BinaryIO) -> None:
    gc.disable()
    loop.keep_buried()
    try:
        for story in stories:
            pickle.dump(run_story(story), told)
            told.flush()
    except BrokenPipeError:
        """The parent wants no more."""
    except BaseException:  # noqa: BLE001 - the parent raises it.
        pickle.dump(traceback.format_exc(), told)


def _results_of(child: _Child) -> Iterator[Result]:
    while True:
        try:
            found = pickle.load(child.results)
        except EOFError:
            return
        if isinstance(found, str):
            raise RuntimeError(f"a simulation has failed:\n{found}")
        yield found


def _wait(child: _Child) -> None:
    child.results.close()
    os.waitpid(child.pid, 0)

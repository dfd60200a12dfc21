"""What a broker has of the processors while a client loads it: all processes but the client's."""

from __future__ import annotations

import math
import os
import subprocess
import threading
import time
from pathlib import Path

from benchmarks.bench_broker_start import cpu_of

__all__ = ["watched"]

INTERVAL_S = 0.25


def watched(command: list[str], seconds: float) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a client to its end; seconds of processors a second that all others of ours had.

    Args:
        command: of the client.
        seconds: of its end that count: what it measured.
    """
    samples: list[tuple[float, float]] = []
    is_over = threading.Event()
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def sample() -> None:
        while not is_over.wait(INTERVAL_S):
            samples.append((time.perf_counter(), _had_by_others(client.pid)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        out, err = client.communicate()
    finally:
        is_over.set()
        thread.join()
    done = subprocess.CompletedProcess(command, client.returncode, out, err)
    if len(samples) < 2:
        return done, math.nan  # Too short to say.
    end_s, had_s = samples[-1]
    began_s, had_before_s = next(one for one in samples if one[0] >= end_s - seconds)
    return done, (had_s - had_before_s) / max(end_s - began_s, INTERVAL_S)


def _had_by_others(client: int) -> float:
    """Seconds of processors that descendants of this process have had, but for the client's."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # It has ended.
        children.setdefault(parent, []).append(int(path.parent.name))
    total_s, left = 0.0, [os.getpid()]
    while left:
        for pid in children.get(left.pop(), []):
            if pid == client:
                continue
            left.append(pid)
            try:
                total_s += cpu_of(pid)
            except OSError:
                continue  # Likewise.
    return total_s

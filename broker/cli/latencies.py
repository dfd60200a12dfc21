"""A latency histogram of bounded memory: buckets grow with the values in them.

A value is kept to its highest PRECISION bits, so a percentile is at most 0.1 % too low. 64 bits of
nanoseconds take at most some ten thousand buckets, and few of them are ever used.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

__all__ = ["PERCENTILES", "Latencies"]

PRECISION: Final = 10
PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}


class Latencies:
    """Durations in nanoseconds. Threads: one.

    >>> some = Latencies()
    >>> for duration_ns in range(1, 1001):
    ...     some.add(duration_ns * 1000)
    >>> some.percentile_ns(0.5) // 1000, some.maximum_ns, len(some)
    (499, 1000000, 1000)
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._count = 0
        self._sum_ns = 0
        self.maximum_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count a duration; one below 0, of two clocks, is 0."""
        duration_ns = max(duration_ns, 0)
        shift = max(duration_ns.bit_length() - PRECISION, 0)
        self._counts[duration_ns >> shift << shift] += 1
        self._count += 1
        self._sum_ns += duration_ns
        self.maximum_ns = max(self.maximum_ns, duration_ns)

    def merge(self, other: Latencies) -> None:
        """Count all durations of another one too."""
        self._counts.update(other._counts)
        self._count += other._count
        self._sum_ns += other._sum_ns
        self.maximum_ns = max(self.maximum_ns, other.maximum_ns)

    def __len__(self) -> int:
        return self._count

    def percentile_ns(self, share: float) -> int:
        """Give the duration that a share (0 … 1) of all do not exceed; 0 of none."""
        wanted = share * self._count
        seen = 0
        for duration_ns, count in sorted(self._counts.items()):
            seen += count
            if seen >= wanted:
                return duration_ns
        return self.maximum_ns

    def as_object(self) -> dict[str, float]:
        """Give mean, percentiles and maximum, in microseconds."""
        found = {"mean": self._sum_ns / max(self._count, 1) / 1000}
        for name, share in PERCENTILES.items():
            found[name] = self.percentile_ns(share) / 1000
        found["max"] = self.maximum_ns / 1000
        return {name: round(value, 1) for name, value in found.items()}

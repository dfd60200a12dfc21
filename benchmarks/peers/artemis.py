"""Artemis's own journal, in Java, with the same files, types and record sizes.

`artemis` runs with its default buffer timer, `artemis-tuned` with what its own calibration
(SyncCalculation, behind its `perf-journal` command, at that command's default sizes) suggests for
the folder. The JVM is kept for all runs and warmed up before the first of each kind of case, so
that the compiler's work is not measured.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, ClassVar

from benchmarks.measure import FILE_SIZE, CannotRunError, Case, Outcome, main_for
from tests.interop.artemis import Artemis, PeerUnavailableError

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_TIMEOUT_NS = {"NIO": 3_333_333, "MAPPED": 3_333_333, "ASYNCIO": 500_000}
DEFAULT_MAX_IO = {"NIO": 1, "MAPPED": 1, "ASYNCIO": 4096}
WARM_UP_S = 2.0


class ArtemisEngine:
    """Artemis with its default timer or a tuned one; not to be shared by threads."""

    _process: ClassVar[Artemis | None] = None
    _timeouts_ns: ClassVar[dict[str, int]] = {}
    _warm: ClassVar[set[tuple[str, str]]] = set()

    def __init__(self, *, tuned: bool) -> None:
        self.tuned = tuned

    @classmethod
    def process(cls) -> Artemis:
        """The one JVM.

        Raises:
            CannotRunError: there is none to be had here.
        """
        if cls._process is None:
            try:
                cls._process = Artemis()
            except PeerUnavailableError as error:
                raise CannotRunError(f"no Artemis: {error}") from error
        return cls._process

    @classmethod
    def close(cls) -> None:
        """End the JVM, if there is one."""
        if cls._process is not None:
            cls._process.close()
            cls._process = None

    def buffer_timeout_ns(self, io: str, folder: Path) -> int:
        """The buffer timer for a journal type, calibrated once a process if tuned."""
        if not self.tuned:
            return DEFAULT_TIMEOUT_NS[io]
        if io not in self._timeouts_ns:
            arguments = {"type": io, "max_io": DEFAULT_MAX_IO[io]}
            found = self.process().call("calibrate", folder, **arguments)
            self._timeouts_ns[io] = found["buffer_timeout_ns"]
        return self._timeouts_ns[io]

    def __call__(self, case: Case, folder: Path) -> Outcome:
        """Run one case; for load and compaction `folder` holds the journal, and is changed."""
        if case.io not in DEFAULT_TIMEOUT_NS:
            raise CannotRunError(f"Artemis has no {case.io}")
        command = {
            "blocking": "bench",
            "unsynced": "bench",
            "load": "bench-load",
            "compaction": "bench-compact",
        }.get(case.workload)
        if command is None:
            raise CannotRunError(f"Artemis has no {case.workload}")
        timeout = self.buffer_timeout_ns(case.io, folder)
        settings = {
            "type": case.io,
            "max_io": DEFAULT_MAX_IO[case.io],
            "buffer_timeout_ns": timeout,
            "file_size": FILE_SIZE,
            "min_files": case.files_ahead,
        }
        if command != "bench":
            if (case.io, case.workload) not in self._warm:
                warm = folder.with_name(folder.name + ".warm")
                shutil.copytree(folder, warm)
                self.process().call(command, warm, **settings)
                remove(warm)
                self._warm.add((case.io, case.workload))
            result = self.process().call(command, folder, **settings)
            return Outcome(result.get("records_per_s") or result["mb_per_s"])
        settings |= {
            "producers": case.producers,
            "record_size": case.record_size,
            "sync": case.is_synced,
            "records": case.records,
        }
        if (case.io, case.workload) not in self._warm:
            warm = folder.with_name(folder.name + ".warm")
            warm.mkdir()
            self.process().call("bench", warm, **settings, seconds=WARM_UP_S)
            remove(warm)
            self._warm.add((case.io, case.workload))
        result = self.process().call("bench", folder, **settings, seconds=case.seconds)
        return Outcome(
            result["records_per_s"],
            result["p50_us"],
            result["p99_us"],
            result["p999_us"],
            f"timer {timeout / 1000:.0f} us",
        )


def remove(folder: Path) -> None:
    """Delete a journal folder of plain files."""
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


if __name__ == "__main__":
    main_for(ArtemisEngine(tuned=True))
    ArtemisEngine.close()

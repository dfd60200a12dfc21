"""The limit of this disk: limit.c, compiled on first use, in the mode that matches a case."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from benchmarks.measure import BATCH_SIZE, CannotRunError, Case, Outcome, main_for

ROOT = Path(__file__).parents[2]
EXT_SOURCES = ["file_ops", "aio_queue", "uring_queue", "completion", "clock", "park"]
# The same calls as the journal type makes; of kernel AIO the better of its two syncs.
MODES = {"NIO": "buf-fds", "ASYNCIO": "aio-fds", "MAPPED": "mmap-fds", "IO_URING": "uring-dsync"}
# The best mode at every blocking point, and what several in flight are held against.
BEST_MODE = "dio-fds"


def program() -> Path:
    """Path of the compiled limit program; compiled again when a source is newer.

    Raises:
        CannotRunError: no C compiler was found, or it refuses the sources.
    """
    binary = ROOT / "build" / "limit"
    sources = [Path(__file__).with_name("limit.c")]
    sources += [ROOT / "ext" / f"{name}.c" for name in EXT_SOURCES]
    if binary.exists() and all(s.stat().st_mtime < binary.stat().st_mtime for s in sources):
        return binary
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise CannotRunError("no C compiler on PATH")
    binary.parent.mkdir(exist_ok=True)
    options = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-march=native", f"-I{ROOT / 'ext'}"]
    command = [compiler, *options, "-o", str(binary), *map(str, sources), "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CannotRunError(f"limit.c does not compile: {done.stderr.splitlines()[:1]}")
    return binary


def arguments(case: Case) -> list[str]:
    """The limit program's options for a case: what counts as its limit.

    Raises:
        CannotRunError: the case has no limit of this kind.
    """
    if case.workload == "blocking":
        return ["-m", MODES[case.io], "-p", str(case.producers)]
    if case.workload == "asyncio" and case.producers <= BATCH_SIZE:
        return ["-m", BEST_MODE, "-p", str(case.producers)]
    if case.workload in ("asyncio", "window", "batch"):
        return ["-m", BEST_MODE, "-w", str(case.producers)]
    if case.workload.startswith("unsynced"):
        return ["-m", MODES[case.io].split("-")[0] + "-none", "-w", "1024"]
    raise CannotRunError(f"the limit program has no {case.workload}")


def run(case: Case, folder: Path) -> Outcome:
    """Run the limit program in `folder`, which it leaves empty."""
    options = arguments(case)
    command = [str(program()), *options, "-r", str(case.record_size), "-s", str(case.seconds)]
    done = subprocess.run([*command, "-d", str(folder)], capture_output=True, text=True)
    if done.returncode:
        raise CannotRunError(done.stderr.strip())
    line = json.loads(done.stdout)
    return Outcome(
        line["records_per_s"],
        line["p50_us"],
        line["p99_us"],
        line["p999_us"],
        f"{line['mode']}, {line['records_per_batch']} records a write",
    )


if __name__ == "__main__":
    main_for(run)

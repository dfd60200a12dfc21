"""The parts below an append and a load, without a disk: checksum, scan and decode in memory.

    python -m pytest benchmarks/bench_format.py

Workloads: CRC-32C over 1 KiB, 64 KiB and 1 MiB (called through ctypes, whose call costs about 0.3
us); one 1 MiB journal file of 1 KiB records, with leaders and without, scanned and validated. Unit:
time a call; `extra_info` holds GB/s or records/s. Supports: with checksums on, verifying a file
costs less than reading it. pytest-benchmark does warm-up, rounds and statistics.
"""

# These are tests in all but name.
# ruff: noqa: ANN001, ANN201, D103
import ctypes
import subprocess
from pathlib import Path

import pytest

from journal.reader import FileView
from tests.interop.layout import FileLayout, Record

ROOT = Path(__file__).parents[1]
FILE_SIZE = 1 << 20  # The layout by hand is slow, and the records are the same.
BODY = b"x" * 1024


@pytest.fixture(scope="module")
def crc32c(tmp_path_factory):
    """The C function of ext/crc32c.h, from a library built for this run."""
    library = tmp_path_factory.mktemp("crc") / "crc32c.so"
    source = ROOT / "ext" / "crc32c.c"
    options = ["-std=c11", "-D_GNU_SOURCE", "-O3", "-fPIC", "-shared"]
    subprocess.run(["cc", *options, "-o", library, source], check=True)
    function = ctypes.CDLL(str(library)).qv_crc32c
    function.argtypes = [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t]
    function.restype = ctypes.c_uint32
    assert function(0, b"123456789", 9) == 0xE3069283
    return function


@pytest.fixture(scope="module", params=[True, False], ids=["leaders", "plain"])
def file_bytes(request):
    """One full file of 1 KiB adds, and how many there are."""
    layout = FileLayout(1, FILE_SIZE, leaders=request.param)
    count = 0
    while len(layout.data) + 2048 < layout.size:
        count += 1
        layout.flush(Record("add", count, 1, BODY))
    return layout.bytes(), count


@pytest.mark.parametrize("size", [1 << 10, 64 << 10, 1 << 20])
def test_crc32c(benchmark, crc32c, size):
    data = b"x" * size

    benchmark(crc32c, 0, data, size)

    benchmark.extra_info["gb_per_s"] = size / benchmark.stats["median"] / 1e9


def test_scan_and_validate_one_file(benchmark, file_bytes):
    data, count = file_bytes

    view = benchmark(FileView, "activemq-data-1.amq", memoryview(data))

    assert view.damages == []
    benchmark.extra_info["records_per_s"] = count / benchmark.stats["median"]
    benchmark.extra_info["gb_per_s"] = len(data) / benchmark.stats["median"] / 1e9


def test_decode_every_record_of_one_file(benchmark, file_bytes):
    data, count = file_bytes

    records = benchmark(lambda: list(FileView("activemq-data-1.amq", memoryview(data))))

    assert len(records) == count
    benchmark.extra_info["records_per_s"] = count / benchmark.stats["median"]

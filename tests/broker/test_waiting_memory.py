"""What a message costs that was sent and waits, beyond its encoded bytes."""

import subprocess
import sys

import pytest

from benchmarks.bench_broker_start import SEND

# Maps grow by doubling: as full as with a million. Fewer, and what the process itself takes counts.
COUNT = 250_000
# 300 are promised for a million; of fewer each has more of what the process takes for itself.
EACH_MAX = 312


@pytest.mark.slow
def test_message_that_was_sent_and_waits_costs_few_bytes(tmp_path, figures):
    done = subprocess.run(
        [sys.executable, "-c", SEND, str(tmp_path), str(COUNT)],
        capture_output=True,
        text=True,
        check=True,
    )

    each = float(done.stdout)
    figures("waiting messages", messages=COUNT, bytes_each=round(each))
    assert each < EACH_MAX

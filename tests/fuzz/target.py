"""One fuzz target a process: bytes in, only documented errors out.

    python tests/fuzz/target.py NAME CORPUS -max_total_time=60

NAME is a key of TARGETS. Everything behind the corpus folder goes to libFuzzer.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["broker", "journal"]):
    from broker.model.encoding import RecordFormatError
    from broker.printing.journal_decoder import JournalDecoder
    from broker.records.records import decode_record
    from journal.control import decode_control_list
    from journal.errors import JournalError
    from journal.reader import FileView
    from tests.crash.model import read_folder_view

FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
INPUT_S = 10
DECODER = JournalDecoder()


def read(data):
    """One journal file, as the newest one and as an older one."""
    for is_newest in (True, False):
        try:
            view = FileView("fuzz-1.amq", data, is_newest=is_newest)
        except JournalError:
            continue
        records = list(view)
        assert sum(len(record.body or b"") for record in records) <= len(data)
        assert all(damage.offset <= len(data) for damage in view.damages)


def load(data):
    """A folder of two files, cut out of the input."""
    middle = int.from_bytes(data[:2], "big") % (len(data) + 1)
    for name, content in (("1", data[2:middle]), ("2", data[middle:])):
        (FOLDER / f"activemq-data-{name}.amq").write_bytes(content)
    try:
        read_folder_view(FOLDER, damage="quarantine")
    except JournalError:
        return


def control(data):
    """The body of a compaction's control record."""
    try:
        decode_control_list(data)
    except ValueError:
        return


def record(data):
    """A broker's record: user type, whether it is an update, and the body."""
    if len(data) < 2:
        return
    kind, is_update, body = data[0], bool(data[1] & 1), data[2:]
    shown = DECODER.decode(kind, body, record_id=1, is_update=is_update)
    assert shown is None or isinstance(shown, dict)
    assert isinstance(DECODER.describe(kind, body, record_id=1, is_update=is_update), str)
    try:
        decode_record(kind, body, is_update=is_update)
    except RecordFormatError:
        return


def timed(target, data):
    """Run a target; an input that takes long is a finding. Not by the clock: we may be paused."""
    begun = time.process_time()
    target(data)
    assert time.process_time() - begun < INPUT_S


TARGETS = {"read": read, "load": load, "control": control, "record": record}


if __name__ == "__main__":
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, lambda data: timed(target, data))
    atheris.Fuzz()

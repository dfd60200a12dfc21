"""Fuzz targets of bytes that come from a disk: a journal's files, and records in them."""

import os
import tempfile
from pathlib import Path

from broker.model.encoding import RecordFormatError
from broker.printing.journal_decoder import JournalDecoder
from broker.records.records import decode_record
from journal.control import decode_control_list
from journal.errors import JournalError
from journal.reader import FileView
from tests.crash.model import read_folder_view

FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
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

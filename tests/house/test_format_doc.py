"""docs/format/journal.md shows the bytes that the code writes."""

import re
from pathlib import Path

import pytest

from journal.journal import Journal
from journal.options import JournalOptions
from tests.house import format_calls, format_example

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs/format/journal.md").read_text()
# "    delete record, 18 bytes" and its drawing: five lines, then "type = 16".
DRAWING = re.compile(
    r"^ {4}[a-z, ]+record[a-z ]*, (?P<size>\d+) bytes.*\n"
    r" +\+.*\n(?P<names> +\|.*)\n(?P<sizes> +\|.*)\n +\+.*\n"
    r" +type = (?P<types>[^;]+);",
    re.MULTILINE,
)


def drawings():
    """(type, size said in the title, field sizes drawn) for each type of record."""
    for drawing in DRAWING.finditer(DOCUMENT):
        sizes = [cell.strip() for cell in drawing["sizes"].strip().strip("|").split("|")]
        for kind in re.findall(r"\d+", drawing["types"]):
            yield int(kind), int(drawing["size"]), sizes


def test_the_worked_example_is_what_the_code_writes():
    shown = "".join(f"    {line}\n" for line in format_example.text().splitlines())

    assert DOCUMENT.endswith("\n\n" + shown)
    assert f"the first {len(format_example.image())} bytes" in DOCUMENT


def test_every_type_of_record_is_drawn_once():
    assert sorted(kind for kind, _, _ in drawings()) == list(range(10, 20))


@pytest.mark.parametrize(("kind", "size", "fields"), list(drawings()))
def test_drawn_sizes_are_the_sizes_written(kind, size, fields):
    fixed = sum(int(field) for field in fields if field != "n")

    assert fixed == size == format_calls.record_size(kind, 0)


def test_every_byte_of_leaders_and_marks_is_outside_the_record_types():
    nine = [
        format_calls.mark(format_calls.MARK, 2**63 - 1, 2**24 - 1),
        format_calls.mark(format_calls.END_MARK, 1, 0),
        format_calls.header(1)[16:],
        format_calls.led_record(16, 1, 0, record_id=1)[:9],
    ]

    assert all(byte >= 0x80 for one in nine for byte in one)


@pytest.mark.parametrize("within", range(0, 1024, 7))
def test_a_leader_and_its_records_head_share_a_sector(within):
    start = within + format_calls.leader_padding(within)

    assert start // 512 == (start + 9 + 10 - 1) // 512
    assert start - within < 9 + 10


CALLS = """\
journal.add(7, 45, b"hello", sync=False)
journal.add(8, 45, b"world", tx=100)
journal.commit(100)
journal.delete(7)
"""


def test_the_journal_writes_the_worked_example(tmp_path):
    assert CALLS.replace("journal.", "    journal.") in DOCUMENT

    # Again if the machine paused for half a second between two calls: there is an idle mark then.
    for attempt in range(10):
        folder = tmp_path / str(attempt)
        options = JournalOptions(
            directory=folder,
            journal_type="NIO",
            file_size=format_example.FILE_SIZE,
            buffer_timeout_ns=60 * 10**9,
        )
        with Journal(options) as journal:
            journal.load()
            exec(CALLS, {"journal": journal})
        written = (folder / "activemq-data-1.amq").read_bytes()
        if written.rstrip(b"\0") == format_example.image():
            break

    assert written.rstrip(b"\0") == format_example.image()

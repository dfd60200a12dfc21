"""Spilled bytes of messages that wait: read back as they were, and forgotten again."""

import contextlib
import errno
import os

import pytest

from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.storage import spill_file
from broker.storage.spill_file import SpillFile
from journal.errors import JournalIOError


def message(number, *properties, size=100):
    made = Message(
        "a",
        bytes([number % 256]) * size,
        message_id=number,
        priority=number % 10,
        timestamp=1000 + number,
        user_id=bytes([number % 256]) * 16,
        properties=[
            Property("number", PropertyType.INT, number),
            *(Property(name, PropertyType.STRING, "x") for name in properties),
        ],
    )
    read = Message.from_record(made.record())
    read.references = 1  # A queue has it.
    return read


@pytest.fixture
def aside(tmp_path):
    return SpillFile(tmp_path, kept_size=0)


def put(aside, *messages):
    for one in messages:
        aside.take(one)
    aside.finish()


def test_spilled_bytes_are_read_back(aside, tmp_path):
    messages = [message(number, size=number * 37) for number in range(200)]
    encoded = [one.encode() for one in messages]

    put(aside, *messages)

    assert aside.size == sum(map(len, encoded))
    assert [one.encode() for one in messages] == encoded
    assert [one.get("number") for one in messages] == list(range(200))
    assert [one.user_id for one in messages] == [bytes([number]) * 16 for number in range(200)]
    assert [one.timestamp for one in messages] == list(range(1000, 1200))
    assert list(tmp_path.iterdir()) == []


def test_fixed_headers_sizes_and_group_are_known_without_reading(aside, monkeypatch):
    one, size = message(7, "_AMQ_other"), len(message(7, "_AMQ_other").encode())
    put(aside, one)
    monkeypatch.setattr(spill_file.os, "pread", None)

    assert (one.message_id, one.address, one.priority) == (7, "a", 7)
    assert (one.encoded_size, one.durable, one.expiration) == (size, False, 0)
    assert one.get("_AMQ_GROUP_ID") is None


def test_a_group_is_found(aside):
    one = message(1, "_AMQ_GROUP_ID")
    put(aside, one)

    assert one.get("_AMQ_GROUP_ID") == "x"


def test_a_changed_message_keeps_its_change(aside):
    one, other, copied = message(1), message(2), message(3)
    put(aside, one, other, copied)

    one.set("more", PropertyType.INT, 5)
    other.message_id = 9
    other.encode()
    copy = copied.copy()
    copy.priority = 9
    assert len(aside._read) == 3
    while aside._read:
        aside._forget_oldest()

    assert (one.get("more"), one.get("number"), bytes(one.body)) == (5, 1, bytes([1]) * 100)
    assert Message.decode(other.encode()).message_id == 9
    assert len(aside._read) == 0
    assert (copied.priority, copy.priority, copy.get("number")) == (3, 9, 3)
    assert (copied.timestamp, len(aside._read)) == (1003, 1)
    assert copy.user_id == copied.user_id == bytes([3]) * 16
    one.address = "elsewhere"
    assert Message.decode(one.encode()).user_id == bytes([1]) * 16


def test_the_longest_read_are_forgotten(aside, monkeypatch):
    monkeypatch.setattr(spill_file, "READ_BACK_SIZE", 1000)
    messages = [message(number) for number in range(50)]
    encoded = [one.encode() for one in messages]
    put(aside, *messages)
    reads = []
    real = os.pread
    monkeypatch.setattr(spill_file.os, "pread", lambda *how: reads.append(how) or real(*how))

    assert [one.encode() for one in messages] == encoded
    messages[-1].encode()
    assert len(reads) == 50
    messages[0].encode()
    assert len(reads) == 51


def test_the_first_ones_stay_in_memory(tmp_path, monkeypatch):
    messages = [message(number) for number in range(10)]
    size = len(messages[0].encode())
    aside = SpillFile(tmp_path, kept_size=3 * size)

    put(aside, *messages)

    assert aside.size == 7 * size


def open_in(folder):
    """How many files of a folder are open; they have no name there."""
    found = 0
    for number in os.listdir("/proc/self/fd"):
        # Others of this process come and go.
        with contextlib.suppress(FileNotFoundError):
            found += os.readlink(f"/proc/self/fd/{number}").startswith(str(folder))
    return found


def test_segments_go_with_their_messages(aside, tmp_path, monkeypatch):
    monkeypatch.setattr(spill_file, "SEGMENT_SIZE", 1000)
    messages = [message(number) for number in range(20)]
    encoded = [one.encode() for one in messages]
    put(aside, *messages)
    assert open_in(tmp_path) > 3

    assert [one.encode() for one in messages] == encoded
    aside._read.clear()
    messages.clear()

    assert open_in(tmp_path) <= 1


def test_without_room_on_the_disk_they_stay_in_memory(aside, monkeypatch, caplog):
    def pwritev(*how):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spill_file.os, "pwritev", pwritev)
    messages = [message(number) for number in range(20)]
    encoded = [one.encode() for one in messages]

    put(aside, *messages)

    assert [one.encode() for one in messages] == encoded
    assert "stay in memory" in caplog.text


def test_a_short_write_is_ended(aside, monkeypatch):
    real = os.pwritev
    monkeypatch.setattr(
        spill_file.os, "pwritev", lambda fd, data, at: real(fd, [b"".join(data)[:150]], at)
    )
    messages = [message(number) for number in range(20)]
    encoded = [one.encode() for one in messages]

    put(aside, *messages)

    assert [one.encode() for one in messages] == encoded


def test_a_folder_that_is_gone_is_no_failure(tmp_path, caplog):
    aside = SpillFile(tmp_path / "none", kept_size=0)
    one = message(1)
    encoded = one.encode()

    put(aside, one)

    assert one.encode() == encoded
    assert "stay in memory" in caplog.text


def test_a_disk_that_fails_is_an_error(aside, monkeypatch):
    one = message(1)
    put(aside, one)
    monkeypatch.setattr(spill_file.os, "pread", lambda *how: b"")

    with pytest.raises(JournalIOError, match="are truncated"):
        one.encode()

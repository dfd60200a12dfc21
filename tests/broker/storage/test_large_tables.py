"""Bodies of large messages in a table: written in order by a thread, read while it is deleted."""

import errno

import pytest

from broker.storage.large_tables import BACKLOG_MAX, READ_SIZE, WRITE_SIZE, LargeTable
from journal.errors import JournalIOError

# Bytes that the table copies at a time.
ROW_SIZE = 4


class Job:
    def __init__(self, work, done):
        self._work = work
        self._done = done
        self.is_done = False

    def finish(self):
        if not self.is_done:
            self.is_done = True
            try:
                result = self._work()
            except JournalIOError as error:
                self._done(None, error)
            else:
                self._done(result, None)


class Work:
    """Work that is done when the test says so."""

    def __init__(self):
        self.jobs = []

    def run(self, work, done):
        self.jobs.append(Job(work, done))
        return self.jobs[-1]

    def do(self, most=1000):
        """All that was asked for, and what that asks for, or so much of it."""
        while self.jobs and most:
            self.jobs.pop(0).finish()
            most -= 1


class File:
    def __init__(self, files, name):
        self._files = files
        self._name = name

    @property
    def size(self):
        return len(self._files.content[self._name])

    def append(self, data):
        if self._files.is_broken:
            raise JournalIOError(errno.EIO, "broken")
        self._files.content[self._name] += data
        self._files.writes.append(len(data))

    def read_at(self, offset, size):
        self._files.reads.append((offset, size))
        return self._files.content[self._name][offset : offset + size]

    def delete(self):
        del self._files.content[self._name]


class Files:
    def __init__(self):
        self.content = {}
        self.writes = []
        self.reads = []
        self.is_broken = False

    def open(self, name):
        self.content.setdefault(name, b"")
        return File(self, name)

    def find(self, name):
        return File(self, name) if name in self.content else None

    def copy_rows(self, source, target):
        for at in range(0, len(self.content[source]), ROW_SIZE):
            if self.is_broken:
                raise JournalIOError(errno.EIO, "broken")
            row = self.content[source][at : at + ROW_SIZE]
            self.content[target] = self.content.get(target, b"") + row
            yield len(row)

    def names(self, extension):
        return [name for name in self.content if name.endswith(f".{extension}")]


@pytest.fixture
def files():
    return Files()


@pytest.fixture
def table(files):
    made = LargeTable(files)
    made.writing = Work()
    made.reading = Work()
    return made


def written(table, data=b"0123456789", message_id=7):
    body = table.create(message_id, is_durable=True)
    body.append(data)
    body.finish(sync=True, callback=lambda: None)
    table.writing.do()
    assert body.finish(sync=True, callback=lambda: None)
    return body


def test_parts_are_gathered_to_pieces(table, files):
    body = table.create(7, is_durable=True)
    for _ in range(20):
        body.append(b"x" * (WRITE_SIZE // 8))
    told = []

    assert not body.finish(sync=True, callback=lambda: told.append(files.content["7.msg"]))
    table.writing.do()

    assert told == [b"x" * (WRITE_SIZE // 8 * 20)]
    assert files.writes == [WRITE_SIZE, WRITE_SIZE, WRITE_SIZE // 2]
    assert body.size == WRITE_SIZE // 8 * 20


def test_an_empty_body_is_there_too(table, files):
    body = written(table, b"")

    assert files.content == {"7.msg": b""}
    assert body.size == 0
    assert body.is_ready(0, 100, lambda: None)
    assert body.read(0, 100) == b""


def test_a_sender_that_is_faster_than_the_writes_is_delayed(table):
    body = table.create(7, is_durable=True)
    told = []
    while body.has_room(lambda: told.append(True)):
        body.append(b"x" * WRITE_SIZE)
    assert body.size <= BACKLOG_MAX

    assert told == []
    table.writing.do()
    assert told == [True]
    assert body.has_room(lambda: None)


def test_a_piece_that_fails_is_the_last_and_told_of(table, files):
    body = table.create(7, is_durable=True)
    body.append(b"x" * WRITE_SIZE)
    files.is_broken = True
    body.append(b"y" * WRITE_SIZE)
    told = []
    assert not body.finish(sync=True, callback=lambda: told.append(True))

    table.writing.jobs[0].finish()
    files.is_broken = False
    table.writing.do()

    assert told == [True]
    assert files.content == {"7.msg": b""}
    with pytest.raises(JournalIOError):
        body.finish(sync=True, callback=lambda: None)
    with pytest.raises(JournalIOError):
        body.append(b"z")


def test_settling_waits_for_all_of_it(table, files):
    body = table.create(7, is_durable=True)
    body.append(b"x" * WRITE_SIZE)
    told = []
    assert not body.finish(sync=True, callback=lambda: told.append(True))

    body.settle()

    assert told == [True]
    assert files.content == {"7.msg": b"x" * WRITE_SIZE}


def test_a_dropped_upload_leaves_nothing(table, files):
    body = table.create(7, is_durable=True)
    body.append(b"x" * WRITE_SIZE)

    body.close()
    body.delete()
    table.writing.do()

    assert files.content == {}


def test_who_waits_for_what_is_given_up_waits_no_more(table):
    body = table.create(7, is_durable=True)
    told = []
    body.append(b"x")
    assert not body.finish(sync=True, callback=lambda: told.append(True))

    body.close()
    body.delete()
    table.writing.do()

    assert told == [True]


def test_it_is_read_in_pieces_and_the_next_one_ahead(table, files):
    data = bytes(range(256)) * (READ_SIZE * 3 // 256)
    body = written(table, data)
    body.hold()
    found, at = b"", 0

    while at < len(data):
        while not body.is_ready(at, 100_000, lambda: None):
            table.reading.do()
        chunk = body.read(at, 100_000)
        found += chunk
        at += len(chunk)

    assert found == data
    assert files.reads == [(0, READ_SIZE), (READ_SIZE, READ_SIZE), (2 * READ_SIZE, READ_SIZE)]
    assert len(body._pieces) <= 1


def test_two_readers_at_different_places_both_come_to_the_end(table):
    data = bytes(range(256)) * (READ_SIZE * 20 // 256)
    body = written(table, data)
    body.hold()
    body.hold()
    places, found = [0, 7 * READ_SIZE], [b"", b""]
    sizes = [100_000, 1 << 20]

    for _ in range(10_000):
        for who, size in enumerate(sizes):
            if places[who] < len(data) and body.is_ready(places[who], size, lambda: None):
                found[who] += body.read(places[who], size)
                places[who] = (0, 7 * READ_SIZE)[who] + len(found[who])
        if places == [len(data)] * 2:
            break
        table.reading.do()

    assert found == [data, data[7 * READ_SIZE :]]


def test_what_is_held_is_read_to_its_end_after_it_was_deleted(table, files):
    body = written(table)
    body.hold()

    body.delete()
    table.writing.do()
    assert body.read(0, 100) == b"0123456789"
    body.release()
    table.writing.do()

    assert files.content == {}


def test_a_body_that_is_gone_cannot_be_read(table, files):
    body = written(table)
    files.content.clear()
    body.hold()

    assert not body.is_ready(0, 10, lambda: None)
    with pytest.raises(JournalIOError):
        table.reading.do() or body.read(0, 10)


def test_a_copy_outlives_what_it_was_made_of(table, files):
    body = written(table)
    other = body.copy(8)
    told = []

    # Deleted while it is copied.
    table.writing.do(1)
    body.delete()
    assert not other.finish(sync=True, callback=lambda: told.append("complete"))
    table.writing.do()
    assert told == ["complete"]
    assert other.finish(sync=True, callback=told.append)

    assert list(files.content) == ["8.msg"]
    assert other.read(0, 100) == b"0123456789"
    assert table.find(7) is None
    assert table.find(8).size == 10


def test_others_are_written_while_a_body_is_copied(table, files):
    other = written(table).copy(8)
    body = table.create(9, is_durable=True)
    body.append(b"abc")
    body.finish(sync=True, callback=lambda: None)

    table.writing.do(2)

    assert files.content == {"7.msg": b"0123456789", "8.msg": b"0123", "9.msg": b"abc"}
    while not other.finish(sync=True, callback=lambda: None):
        other.settle()
    assert files.content["8.msg"] == b"0123456789"


def test_a_copy_that_is_given_up_leaves_nothing(table, files):
    body = written(table)
    other = body.copy(8)
    table.writing.do(1)

    other.close()
    other.delete()
    table.writing.do()
    body.delete()
    table.writing.do()

    assert files.content == {}


def test_who_waits_for_a_copy_that_failed_is_told(table, files):
    body = written(table)
    other = body.copy(8)
    told = []
    assert not other.finish(sync=True, callback=lambda: told.append("failed"))
    table.writing.do(1)

    files.is_broken = True
    table.writing.do()

    assert told == ["failed"]
    with pytest.raises(JournalIOError):
        other.finish(sync=True, callback=lambda: None)
    body.delete()
    table.writing.do()
    assert list(files.content) == ["8.msg"]


def test_a_start_deletes_bodies_without_a_message(table, files):
    for message_id in (1, 2, 30):
        written(table, message_id=message_id)
    files.open("3.tmp")
    files.open("notes.txt")

    assert table.sweep({2}, below=20) == 2

    assert sorted(files.content) == ["2.msg", "30.msg", "notes.txt"]

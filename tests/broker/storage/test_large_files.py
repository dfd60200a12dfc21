"""Bodies of large messages: a reader reads on while the body is deleted."""

import pytest

from broker.storage.large_files import LargeFiles
from journal.errors import JournalIOError


@pytest.fixture
def files(tmp_path):
    return LargeFiles(tmp_path)


def written(files, message_id=7, data=b"0123456789"):
    body = files.create(message_id, is_durable=True)
    body.append(data)
    body.finish(sync=True)
    return body


def test_what_is_held_is_read_to_its_end_after_it_was_deleted(files, tmp_path):
    body = written(files)

    body.hold()
    body.delete()

    assert list(tmp_path.iterdir()) == []
    assert body.read(0, 4) + body.read(4, 100) == b"0123456789"
    body.release()
    with pytest.raises(JournalIOError):
        body.read(0, 4)


def test_the_last_one_who_holds_it_closes_it(files):
    body = written(files)
    body.hold()
    body.hold()
    body.delete()

    body.release()
    assert body.read(0, 100) == b"0123456789"
    body.release()

    with pytest.raises(JournalIOError):
        body.read(0, 1)


def test_what_is_not_there_cannot_be_held(files):
    body = written(files)
    body.delete()

    with pytest.raises(JournalIOError):
        body.hold()


def test_a_copy_outlives_what_it_was_made_of(files, tmp_path):
    body = written(files)
    other = body.copy(8)

    body.delete()

    assert [path.name for path in tmp_path.iterdir()] == ["8.msg"]
    assert other.read(0, 100) == b"0123456789"
    other.close()
    assert files.find(7) is None


def test_a_start_deletes_bodies_without_a_message(files, tmp_path):
    for message_id in (1, 2, 30):
        written(files, message_id)
    files.create(3, is_durable=False).close()
    (tmp_path / "notes.txt").write_text("of somebody")

    assert files.sweep({2}, below=20) == 2

    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.msg", "30.msg", "notes.txt"]


def test_what_was_read_and_is_deleted_is_closed(files):
    body = written(files)
    assert body.read(0, 4) == b"0123"

    body.delete()

    with pytest.raises(JournalIOError):
        body.read(0, 4)

"""Files before and after they hold data: made, kept free, used again, moved out of the way."""

import errno
import os
from pathlib import Path

import pytest

from journal.errors import JournalIOError
from journal.files.base import BackEnd, Folder
from journal.files.tap import set_tap
from journal.options import JournalOptions
from journal.pool import FilePool, PooledFile
from journal.reader import read_file

SIZE = 4096


@pytest.fixture
def make(tmp_path):
    """make(**options) gives a pool over an empty folder."""
    folders = []
    directory = tmp_path / "journal"
    directory.mkdir()

    def make(*, alignment=1, **given):
        folders.append(Folder(directory))
        options = JournalOptions(directory=directory, file_size=SIZE, **given)
        return FilePool(folders[-1], options, BackEnd("NIO", alignment), SIZE)

    yield make
    set_tap(None)
    for folder in folders:
        folder.close()


def names(pool):
    return sorted(os.listdir(pool.folder.path))


def path(pool, name):
    return Path(pool.folder.path, name)


def view(pool, name):
    return read_file(path(pool, name))


def calls_of(action):
    """The file calls that `action` makes, in order."""
    seen = []
    set_tap(lambda event: seen.append((event.call, event.name)) if not event.is_done else None)
    try:
        action()
    finally:
        set_tap(None)
    return seen


def fail_at(action, due, error, call=None):
    """Run `action` with its `due`th call (of that kind) failing; whether there was one."""
    count = 0

    def tap(event):
        nonlocal count
        if event.is_done or (call is not None and event.call != call):
            return 0
        count += 1
        return -error if count == due else 0

    set_tap(tap)
    try:
        with pytest.raises(JournalIOError) as failed:
            action()
    finally:
        set_tap(None)
    assert failed.value.errno == error


# --- create ---


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("alignment", [1, 512, 4096])
def test_a_new_file_is_all_there(make, checksums, alignment):
    pool = make(checksums=checksums, alignment=alignment)

    made = pool.create()

    assert made == PooledFile("activemq-data-1.amq", 1, 1)
    assert names(pool) == [made.name]
    file = view(pool, made.name)
    assert (file.size, file.file_id, len(file)) == (SIZE, 1, 0)
    assert file.header_checksum == ("ok" if checksums else "none")
    assert not file.has_data


def test_a_new_file_has_its_name_only_once_it_is_on_disk(make):
    pool = make()

    calls = calls_of(pool.create)

    kinds = [call for call, _ in calls]
    renamed = kinds.index("rename")
    assert calls[renamed] == ("rename", "activemq-data-1.amq.tmp")
    assert max(at for at, call in enumerate(kinds) if call == "write") < kinds.index("sync_all")
    assert kinds.index("sync_all") < renamed
    assert kinds[renamed:] == ["rename", "sync_dir"]


def test_names_follow_the_options_and_ids_only_grow(make):
    pool = make(prefix="activemq-bindings", extension="bindings")
    pool.next_file_id = 40

    assert [pool.create().name for _ in range(2)] == [
        "activemq-bindings-41.bindings",
        "activemq-bindings-42.bindings",
    ]
    assert pool.new_id() == 43


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_file_that_cannot_be_made_leaves_nothing_behind(make, error):
    pool = make()
    calls = [call for call, _ in calls_of(pool.create)]
    before = names(pool)
    for due in range(1, calls.index("rename") + 1):
        fail_at(pool.create, due, error)

        assert names(pool) == before, calls[due - 1]
    assert pool.create().file_id > 2


def test_without_its_rename_a_file_stays_tmp_and_without_its_sync_it_is_not_given_out(make):
    pool = make()

    fail_at(pool.create, 1, errno.EIO, "rename")
    assert names(pool) == ["activemq-data-1.amq.tmp"]
    fail_at(pool.create, 1, errno.EIO, "sync_dir")
    assert not pool.free


# --- take ---


def test_free_files_are_taken_oldest_first_and_then_made(make):
    pool = make()
    for _ in range(3):
        pool.free.append(pool.create())

    assert [pool.take().file_id for _ in range(4)] == [1, 2, 3, 4]
    assert pool.take_free() is None
    assert len(names(pool)) == 4


# --- recycle and give_back ---


def test_a_pinned_file_is_used_again_when_it_is_dead_and_deleted_when_it_was_copied(make):
    pool = make()
    dead, copied = pool.create(), pool.create()
    pool.pinned.update((dead.name, copied.name))

    pool.give_back(dead.name, dead.number, others=0)
    pool.folder.rename(copied.name, f"{copied.name}.tmp")
    pool.take_back([(copied.name, copied.number)], others=0)

    assert [file.name for file in pool.free] == [dead.name]
    assert names(pool) == [dead.name]


def test_a_file_used_again_keeps_its_name_and_bytes_under_a_new_id(make):
    pool = make()
    made = pool.create()
    with path(pool, made.name).open("r+b") as file:
        file.seek(100)
        file.write(b"dead records")

    again = pool.recycle(made.name, made.number)

    assert again == PooledFile(made.name, 1, 2)
    assert view(pool, made.name).file_id == 2
    assert path(pool, made.name).read_bytes()[100:112] == b"dead records"


def test_a_file_is_free_only_once_its_new_id_is_on_disk(make):
    pool = make()
    made = pool.create()

    calls = [call for call, _ in calls_of(lambda: pool.give_back(made.name, 1, others=0))]
    assert calls[-2:] == ["sync_data", "close"]
    assert "write" in calls[: calls.index("sync_data")]
    pool.free.clear()
    fail_at(lambda: pool.give_back(made.name, 1, others=0), 1, errno.EIO, "sync_data")
    assert not pool.free
    assert names(pool) == [made.name]


@pytest.mark.parametrize(
    ("pool_files", "others", "kept"),
    [(-1, 100, True), (2, 0, True), (2, 1, True), (2, 2, False), (0, 0, False), (5, 4, True)],
)
def test_the_pool_shrinks_to_its_size(make, pool_files, others, kept):
    pool = make(pool_files=pool_files)
    made = pool.create()

    pool.give_back(made.name, made.number, others=others)

    assert names(pool) == ([made.name] if kept else [])
    assert [file.name for file in pool.free] == names(pool)


def test_free_files_count_towards_the_pool_s_size(make):
    pool = make(pool_files=2)
    made = [pool.create() for _ in range(4)]

    for file in made:
        pool.give_back(file.name, file.number, others=0)

    assert [file.number for file in pool.free] == [1, 2]
    assert names(pool) == [made[0].name, made[1].name]


def test_the_pool_does_not_shrink_while_it_may_not(make):
    pool = make(pool_files=0)
    made = pool.create()

    pool.give_back(made.name, made.number, others=9, shrink=False)

    assert [file.name for file in pool.free] == [made.name]


@pytest.mark.parametrize("size", [0, 15, SIZE - 1, SIZE + 1, 3 * SIZE])
def test_a_file_of_another_size_goes_to_the_attic(make, size):
    pool = make()
    made = pool.create()
    os.truncate(path(pool, made.name), size)

    pool.give_back(made.name, made.number, others=0)

    assert names(pool) == ["attic"]
    assert os.listdir(path(pool, "attic")) == [made.name]
    assert path(pool, f"attic/{made.name}").stat().st_size == size
    assert not pool.free


# --- take_back: what a compaction has emptied ---


def as_tmp(pool):
    made = pool.create()
    path(pool, made.name).rename(path(pool, f"{made.name}.tmp"))
    return made


def test_a_compacted_file_gets_its_name_back_with_a_new_id_on_disk(make):
    pool = make()
    made = as_tmp(pool)

    calls = [call for call, _ in calls_of(lambda: pool.take_back([(made.name, 1)], others=0))]

    assert calls.index("sync_data") < calls.index("rename") < calls.index("sync_dir")
    assert list(pool.free) == [PooledFile(made.name, 1, 2)]
    assert view(pool, made.name).file_id == 2


@pytest.mark.parametrize(("pool_files", "size"), [(0, SIZE), (2, SIZE), (-1, SIZE + 512)])
def test_a_compacted_file_too_many_or_of_another_size_is_dropped(make, pool_files, size):
    pool = make(pool_files=pool_files)
    made = as_tmp(pool)
    os.truncate(path(pool, f"{made.name}.tmp"), size)

    pool.take_back([(made.name, made.number)], others=2)

    assert names(pool) == []
    assert not pool.free


# --- the attic ---


def test_the_attic_never_replaces_a_file(make):
    pool = make()
    for content in (b"one", b"two", b"three"):
        path(pool, "stray.amq").write_bytes(content)
        pool.to_attic("stray.amq", "a test")

    kept = {file.name: file.read_bytes() for file in path(pool, "attic").iterdir()}

    assert kept == {"stray.amq": b"one", "stray.amq.2": b"two", "stray.amq.3": b"three"}


@pytest.mark.parametrize("dead", [True, False])
def test_a_full_attic_takes_no_more(make, dead, caplog):
    pool = make(max_attic_files=1)
    for name in ("first.amq", "second.amq"):
        path(pool, name).touch()
        pool.to_attic(name, "a test", dead=dead)

    assert os.listdir(path(pool, "attic")) == ["first.amq"]
    # Only what holds nothing live is removed; what the pool does not understand stays.
    assert ("second.amq" in names(pool)) is not dead
    assert "journal-max-attic-files 1" in caplog.text
    assert ("removed second.amq" if dead else "left alone second.amq") in caplog.text


def test_the_attic_is_on_disk_before_the_name_is_gone(make):
    pool = make()
    path(pool, "stray.amq").touch()

    calls = [call for call, _ in calls_of(lambda: pool.to_attic("stray.amq", "a test"))]

    assert calls.index("mkdir") < calls.index("rename")
    assert calls[calls.index("rename") :].count("sync_dir") == 2


def test_bytes_cut_off_are_kept(make, caplog):
    pool = make()

    pool.keep_bytes("activemq-data-1.amq", 300, b"torn", "a test")

    kept = path(pool, "attic/activemq-data-1.amq.300.torn")
    assert kept.read_bytes() == b"torn"
    assert "cut 4 bytes off activemq-data-1.amq at 300" in caplog.text

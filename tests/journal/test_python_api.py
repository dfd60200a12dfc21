"""What a Python program meets beside records: text, options, tasks, children, dropped objects."""

import asyncio
import gc
import multiprocessing
import os
import signal
import threading
import warnings

import pytest

import journal
from journal import Journal, JournalClosed, JournalOptions, OptionError
from journal.files.tap import set_tap

WAIT_S = 30


def options(folder, **changes):
    return JournalOptions(directory=folder, journal_type="NIO", **{"file_size": "64K"} | changes)


@pytest.fixture
def opened(tmp_path):
    with Journal(options(tmp_path / "journal")) as one:
        one.load()
        yield one


class HeldSyncs:
    """A disk whose syncs stand still within the block.

    Attributes:
        arrived: set once somebody waits for one.
    """

    def __init__(self, journal):
        self.journal = journal
        self.arrived = threading.Event()
        self.released = threading.Event()

    def hold(self, event):
        if not event.is_done and (event.call == "sync_data" or event.is_synced):
            self.arrived.set()
            self.released.wait(WAIT_S)

    def __enter__(self):
        set_tap(self.hold)
        return self

    def __exit__(self, *exception):
        self.released.set()
        self.journal.sync()
        set_tap(None)


@pytest.fixture
def held_syncs(opened):
    return HeldSyncs(opened)


# --- text ---------------------------------------------------------------------------------------


def test_a_journal_says_what_it_is(tmp_path):
    one = Journal(options(tmp_path / "journal"))
    with one:
        assert repr(one) == f"<Journal '{tmp_path}/journal': open>"
        one.load()
        one.add(1, 1, b"x")
        assert repr(one) == f"<Journal '{tmp_path}/journal': loaded, NIO, 1 live records>"
    assert repr(one) == f"<Journal '{tmp_path}/journal': closed>"


@pytest.mark.parametrize("name", sorted(set(dir(Journal)) - set(dir(object))))
def test_every_public_method_is_explained(name):
    if not name.startswith("_") and callable(getattr(Journal, name)):
        assert getattr(Journal, name).__doc__, name


@pytest.mark.parametrize(
    "name", ["Completion", "FailedTransaction", "LiveRecord", "LoadResult", "PreparedTransaction"]
)
def test_types_that_callers_meet_are_exported(name):
    assert name in journal.__all__
    assert isinstance(getattr(journal, name), type)


# --- options ------------------------------------------------------------------------------------


def test_options_take_text_with_units(tmp_path):
    one = JournalOptions(
        directory=str(tmp_path),
        file_size="10M",
        buffer_size="490KiB",
        buffer_timeout_ns="0.5ms",
        lock_acquisition_timeout_ms="5s",
        replaceable_types=[34, 36],
    )

    assert (one.file_size, one.buffer_size) == (10 << 20, 490 << 10)
    assert (one.buffer_timeout_ns, one.lock_acquisition_timeout_ms) == (500_000, 5_000)
    assert one.replaceable_types == frozenset({34, 36})


@pytest.mark.parametrize(
    "wrong",
    [
        {"directory": None},
        {"directory": 7},
        {"directory": ""},
        {"file_size": 10.5},
        {"file_size": True},
        {"file_size": "ten"},
        {"file_size": 2**40},
        {"min_files": 2**40},
        {"buffer_size": 2**40},
        {"buffer_timeout_ns": 2**64},
        {"buffer_timeout_ns": "soon"},
        {"lock_acquisition_timeout_ms": 2**64},
        {"max_io": 2**40},
        {"device_block_size": 4096.0},
        {"device_block_size": "4Kx"},
        {"user_version": 99999999999},
        {"user_version": "1"},
        {"checksums": 1},
        {"datasync": "no"},
        {"create_directory": None},
        {"file_open_timeout_s": "5"},
        {"file_open_timeout_s": float("inf")},
        {"file_open_timeout_s": float("nan")},
        {"prefix": None},
        {"extension": 5},
        {"replaceable_types": 7.5},
        {"replaceable_types": [256]},
        {"replaceable_types": ["34"]},
        {"retention_directory": 5},
    ],
    ids=str,
)
def test_options_refuse_invalid_values(wrong):
    with pytest.raises(OptionError):
        JournalOptions(**{"directory": "x"} | wrong)


# --- asyncio ------------------------------------------------------------------------------------


def test_tasks_and_groups_take_a_completion(opened):
    async def main():
        task = asyncio.create_task(opened.add_durable(1, 1, b"x"))
        async with asyncio.TaskGroup() as group:
            for record_id in range(2, 10):
                group.create_task(opened.add_durable(record_id, 1, b"x"))
        await asyncio.wait_for(task, WAIT_S)
        await asyncio.gather(opened.add_durable(10, 1, b"x"), opened.add_durable(11, 1, b"x"))
        await asyncio.wait_for(opened.add_durable(12, 1, b"x"), WAIT_S)

    asyncio.run(main())

    assert len(opened) == 12


def test_a_task_of_a_completion_can_be_cancelled(opened):
    async def main():
        waiting = opened.add_durable(1, 1, b"x")
        task = asyncio.create_task(waiting)
        await asyncio.sleep(0)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
        await opened.add_durable(2, 1, b"x")

    asyncio.run(main())


def test_async_with_opens_and_closes(tmp_path):
    called = []

    async def main():
        async with Journal(options(tmp_path / "journal")) as one:
            one.load()
            one.add(1, 1, b"x", sync=True, done=called.append)
            await one.add_durable(2, 1, b"x")
            one.add(3, 1, b"x", sync=False, done=called.append)
        return one

    assert asyncio.run(main()).state == "closed"
    assert called == [None, None]


# --- who drops it, and children ------------------------------------------------------------------


def test_a_journal_that_is_dropped_open_is_told(tmp_path):
    one = Journal(options(tmp_path / "journal"))
    one.open()

    with pytest.warns(ResourceWarning, match="was never closed"):  # noqa: PT031 - when it goes.
        del one
        gc.collect()


def test_one_that_was_closed_is_dropped_in_silence(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Journal(options(tmp_path / "journal")) as one:
            one.load()
        del one
        gc.collect()


def in_child(one, answers):
    """What each call in a child of the owner's process raises, by name; None: nothing."""
    calls = {
        "add": lambda: one.add(100, 1, b"x"),
        "try_delete": lambda: one.try_delete(100),
        "commit": lambda: one.commit(5),
        "begin": one.begin,
        "wait": lambda: one.wait(10**6),
        "durable": lambda: one.durable(0),
        "sync": one.sync,
        "compact": one.compact,
        "stats": one.stats,
        "fileno": one.fileno,
        "flush_now": one.flush_now,
        "expect": one.prewarm,
        "reclaim": one.reclaim,
        "close": one.close,
    }
    found = {}
    for name, call in calls.items():
        try:
            call()
            found[name] = None
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent looks at it.
            found[name] = f"{type(error).__name__}: {error}"
    answers.put(found)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_process_is_refused_and_the_parent_goes_on(opened, tmp_path):
    fork = multiprocessing.get_context("fork")
    opened.add(1, 1, b"before")
    answers = fork.Queue()
    child = fork.Process(target=in_child, args=(opened, answers))
    child.start()
    found = answers.get(timeout=WAIT_S)
    child.join(WAIT_S)

    harmless = {"flush_now", "expect", "reclaim", "close"}
    assert {name for name, error in found.items() if error is None} == harmless
    for name in found.keys() - harmless:
        assert found[name].startswith("JournalClosed"), (name, found[name])
        assert str(os.getpid()) in found[name]
    opened.add(2, 1, b"after")
    assert len(opened) == 2


def test_the_lock_goes_with_the_owner_though_a_child_lives_on(tmp_path):
    """A child that was forked while the journal was open does not keep the folder."""
    fork = multiprocessing.get_context("fork")
    one = Journal(options(tmp_path / "journal"))
    one.open()
    started, end = fork.Event(), fork.Event()

    def live():
        started.set()
        end.wait(WAIT_S)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = fork.Process(target=live)
        child.start()
        assert started.wait(WAIT_S)
    try:
        one.close()
        with Journal(options(tmp_path / "journal", lock_acquisition_timeout_ms=0)) as again:
            again.load()
    finally:
        end.set()
        child.join(WAIT_S)


# --- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", ["add", "wait", "sync"])
def test_ctrl_c_ends_a_wait_for_the_disk(wait, opened, held_syncs):
    """The disk stands still, and Ctrl-C is answered before it goes on."""
    waits = {
        "add": lambda: opened.add(1, 1, b"x"),
        "wait": lambda: opened.wait(opened.add(1, 1, b"x", sync=True, wait=False)),
        "sync": lambda: (opened.add(1, 1, b"x", sync=False), opened.sync()),
    }
    main = threading.main_thread().ident

    def interrupt():
        held_syncs.arrived.wait(WAIT_S)
        signal.pthread_kill(main, signal.SIGINT)

    with held_syncs:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            waits[wait]()
        thread.join()


def test_closed_says_so(tmp_path):
    with Journal(options(tmp_path / "journal")) as one:
        one.load()
    with pytest.raises(JournalClosed):
        one.begin()

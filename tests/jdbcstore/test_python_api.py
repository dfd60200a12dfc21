"""The SQL store as Python sees it: its text, one that is dropped, child processes."""

import gc
import multiprocessing
import os
import warnings

import pytest

from jdbcstore import DatabaseStoreOptions, SqlStore

WAIT_S = 60
# Python warns of every fork beside threads; these children use none of them.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def options(folder, **changes):
    return DatabaseStoreOptions(connection_url=f"sqlite:///{folder}/store.db", **changes)


@pytest.fixture
def loaded(tmp_path):
    with SqlStore(options(tmp_path)) as store:
        store.load()
        yield store


# --- text ---------------------------------------------------------------------------------------


def test_a_store_says_what_it_is(tmp_path):
    store = SqlStore(options(tmp_path), "OTHER")
    assert repr(store) == "<SqlStore OTHER: new>"
    with store:
        assert repr(store) == "<SqlStore OTHER: open>"
        store.load()
        store.add(1, 1, b"x")
        assert repr(store) == "<SqlStore OTHER: loaded, 1 live records>"
    assert repr(store) == "<SqlStore OTHER: closed>"


# --- who drops it, and children ------------------------------------------------------------------


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_store_that_is_dropped_open_is_told(tmp_path, is_loaded):
    store = SqlStore(options(tmp_path, lock_expiration_ms=1000, lock_renew_period_ms=500))
    store.open()
    if is_loaded:
        store.load()
    leased, writer = store.leased, store.writer

    with pytest.warns(ResourceWarning, match=r"SqlStore MESSAGES: .* was never closed"):  # noqa: PT031 - when it goes.
        del store
        gc.collect()

    if writer is not None:
        writer.stop()
    leased.close()


def test_one_that_was_closed_or_never_opened_is_dropped_in_silence(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with SqlStore(options(tmp_path)) as store:
            store.load()
        del store
        SqlStore(options(tmp_path))
        gc.collect()


def in_child(store, answers):
    """What each call in a child of the owner's process raises, by name; None: nothing."""
    calls = {
        "add": lambda: store.add(100, 1, b"x"),
        "update": lambda: store.update(1, 1, b"x"),
        "delete": lambda: store.delete(1),
        "try_delete": lambda: store.try_delete(100),
        "commit": lambda: store.commit(5),
        "prepare": lambda: store.prepare(5, b""),
        "rollback": lambda: store.rollback(5),
        "begin": store.begin,
        "transaction": store.transaction,
        "wait": lambda: store.wait(0),
        "durable": lambda: store.durable(0),
        "durable_ticket": lambda: store.durable_ticket,
        "sync": store.sync,
        "flush_now": store.flush_now,
        "compact": store.compact,
        "reclaim": store.reclaim,
        "row_count": store.row_count,
        "stats": store.stats,
        "fileno": store.fileno,
        "on_event": store.on_event,
        "expect": store.prewarm,
        "reap": store.reap,
        "detach_loop": store.detach_loop,
        "close": store.close,
        "repr": lambda: repr(store),
    }
    found = {}
    for name, call in calls.items():
        try:
            call()
            found[name] = None
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent looks at it.
            found[name] = f"{type(error).__name__}: {error}"
    answers.put(found)


def test_a_child_process_is_refused_and_the_parent_goes_on(loaded, tmp_path):
    fork = multiprocessing.get_context("fork")
    loaded.add(1, 1, b"before")
    answers = fork.Queue()
    child = fork.Process(target=in_child, args=(loaded, answers))
    child.start()
    found = answers.get(timeout=WAIT_S)
    child.join(WAIT_S)

    assert child.exitcode == 0
    harmless = {"expect", "reap", "detach_loop", "close", "repr"}
    assert {name for name, error in found.items() if error is None} == harmless
    for name in found.keys() - harmless:
        assert found[name].startswith("JournalClosed"), (name, found[name])
        assert f"is open in process {os.getpid()}" in found[name]
    loaded.add(2, 1, b"after", sync=True)
    assert len(loaded) == 2
    assert loaded.row_count() == 2

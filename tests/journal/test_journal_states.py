"""What a journal answers outside the part of its life that a call belongs to."""

import pytest

from journal import Journal, JournalClosed, JournalOptions, WrongState

BEFORE_LOAD = {
    "stats": lambda journal: journal.stats(),
    "fileno": lambda journal: journal.fileno(),
    "durable_ticket": lambda journal: journal.durable_ticket,
    "durable": lambda journal: journal.durable(0),
    "on_event": lambda journal: journal.on_event(),
    "attach_loop": lambda journal: journal.attach_loop(None),
    "wait": lambda journal: journal.wait(0),
    "sync": lambda journal: journal.sync(),
    "add": lambda journal: journal.add(1, 1, b""),
    "add_many": lambda journal: journal.add_many([1], 1, [b""]),
    "add_durable": lambda journal: journal.add_durable(1, 1, b""),
    "commit": lambda journal: journal.commit(1),
}


@pytest.mark.parametrize("name", BEFORE_LOAD)
@pytest.mark.parametrize("opened", [False, True])
def test_a_call_before_load_is_refused_in_words(tmp_path, name, opened):
    journal = Journal(JournalOptions(directory=tmp_path, journal_type="NIO"))
    if opened:
        journal.open()

    advice = r"call load\(\) first" if opened else r"call open\(\) or use `with`, then call load"
    with pytest.raises(WrongState, match=advice):
        BEFORE_LOAD[name](journal)

    journal.close()


def test_open_and_load_say_which_call_comes_first(tmp_path):
    journal = Journal(JournalOptions(directory=tmp_path, journal_type="NIO", file_size=64 * 1024))

    with pytest.raises(WrongState, match=r"is new: call open\(\) first, or use it in a `with`"):
        journal.load()
    with journal:
        with pytest.raises(WrongState, match="is open already"):
            journal.open()
        journal.load()
        with pytest.raises(WrongState, match="is loaded already"):
            journal.load()
    with pytest.raises(WrongState, match="is closed, and opens once: make another one"):
        journal.open()
    with pytest.raises(WrongState, match="is closed: make another one"):
        journal.load()


def test_a_closed_journal_takes_nothing_and_closes_again(tmp_path):
    journal = Journal(JournalOptions(directory=tmp_path, journal_type="NIO", file_size=64 * 1024))
    journal.open()
    journal.load()
    journal.add(1, 1, b"x")

    journal.close()
    journal.close()

    with pytest.raises(JournalClosed):
        journal.add(2, 1, b"x")

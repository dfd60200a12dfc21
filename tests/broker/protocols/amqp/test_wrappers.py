"""Proton's objects are given up in the thread that made them, whichever thread collects them."""

import gc
import threading

import pytest
from proton import Connection, _wrapper

from broker.protocols.amqp import engine, wrappers


@pytest.fixture
def given_up(monkeypatch):
    """The threads in which something was, in order."""
    threads = []
    given_up = wrappers.pn_decref

    def note(found):
        threads.append(threading.get_ident())
        given_up(found)

    for module in (wrappers, _wrapper):
        monkeypatch.setattr(module, "pn_decref", note)
    gc.collect()
    threads.clear()
    return threads


def make_garbage(count):
    for _ in range(count):
        cycle = [Connection()]
        cycle.append(cycle)


def collect_elsewhere():
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()


def test_what_another_thread_collects_waits_for_its_own(given_up):
    assert engine.Engine
    gc.disable()
    try:
        make_garbage(3)
        collect_elsewhere()
        assert given_up == []
        another = Connection()
    finally:
        gc.enable()

    assert given_up == [threading.get_ident()] * 3
    del another
    assert len(given_up) == 4


def test_what_its_own_thread_drops_is_given_up_at_once(given_up):
    one = Connection()
    del one

    assert given_up == [threading.get_ident()]


def test_what_could_not_be_made_is_nothing_to_give_up(given_up):
    class Unmade(_wrapper.Wrapper):
        def __init__(self):
            super().__init__(None, None, lambda: None)

    with pytest.raises(_wrapper.ProtonException):
        Unmade()
    gc.collect()

    assert given_up == []

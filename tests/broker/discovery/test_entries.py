"""What is kept of datagrams: entries, their end, brokers that share a node id."""

import pytest

from broker.discovery import entries as module
from broker.discovery.datagram import Broadcast
from broker.discovery.entries import DiscoveryEntries, Heard
from broker.model.transport_configuration import TransportConfiguration

TIMEOUT_S = 10


def said(node_id, *names, unique_id="u"):
    return Broadcast(node_id, unique_id, tuple(map(TransportConfiguration, names or ("c",))))


@pytest.fixture
def entries():
    return DiscoveryEntries("own", TIMEOUT_S)


def nodes(entries):
    return [one.node_id for one in entries.entries]


def test_a_new_broker_is_told_and_a_known_one_is_not(entries):
    assert entries.receive(said("a"), 0) is Heard.CHANGED
    assert entries.receive(said("a"), 1) is Heard.NOTHING
    # Another connector of a known broker: kept, not told.
    assert entries.receive(said("a", "d"), 2) is Heard.NOTHING
    assert entries.receive(said("b"), 3) is Heard.CHANGED

    assert nodes(entries) == ["a", "b"]
    assert [one.name for one in entries.entries[0].connectors] == ["d"]


def test_a_pair_is_primary_and_backup(entries):
    entries.receive(said("a", "primary", "backup"), 0)

    assert [one.name for one in entries.entries[0].connectors] == ["primary", "backup"]


def test_own_broadcasts_make_no_entry_but_end_others(entries):
    entries.receive(said("a"), 0)

    assert entries.receive(said("own"), 5) is Heard.NOTHING
    assert entries.receive(said("own"), TIMEOUT_S) is Heard.CHANGED
    assert nodes(entries) == []


def test_silence_ends_an_entry(entries):
    entries.receive(said("a"), 0)
    entries.receive(said("b"), 4)

    assert entries.next_expiry_s == TIMEOUT_S
    assert entries.expire(TIMEOUT_S - 0.1) is Heard.NOTHING
    assert entries.expire(TIMEOUT_S) is Heard.CHANGED
    assert nodes(entries) == ["b"]
    assert entries.next_expiry_s == 4 + TIMEOUT_S
    # It is new when it is heard again.
    assert entries.receive(said("a"), 12) is Heard.CHANGED
    entries.expire(100)
    assert entries.next_expiry_s is None


def test_a_group_without_connectors_makes_no_entry(entries):
    assert entries.receive(Broadcast("a", "u", ()), 0) is Heard.NOTHING
    assert nodes(entries) == []


def test_two_brokers_of_one_node_id_are_told_once_a_change(entries):
    heard = [
        entries.receive(said("a", unique_id=unique_id), 0)
        for unique_id in ("one", "one", "two", "two", "one")
    ]

    assert [Heard.DUPLICATE_NODE in one for one in heard] == [False, False, True, False, True]


def test_another_broker_of_the_own_node_id_is_told(entries):
    entries.receive(said("own", unique_id="mine"), 0)

    assert entries.receive(said("own", unique_id="copy"), 0) is Heard.DUPLICATE_NODE


def test_there_is_a_maximum_of_entries(entries, monkeypatch):
    monkeypatch.setattr(module, "ENTRY_COUNT_MAX", 3)
    heard = [entries.receive(said(f"{number}"), 0) for number in range(6)]

    assert heard == [Heard.CHANGED] * 3 + [Heard.TOO_MANY, Heard.NOTHING, Heard.NOTHING]
    assert nodes(entries) == ["0", "1", "2"]
    assert entries.receive(said("1"), 1) is Heard.NOTHING

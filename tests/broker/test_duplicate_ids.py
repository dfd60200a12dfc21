"""Which ids an address remembers: its newest ones, and the newest of each node with a bridge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.routing.duplicates import (
    BRIDGE_PREFIX,
    LEFT_IDS_MAX,
    SENDER_IDS,
    SENDERS_MAX,
    DuplicateCache,
    DuplicateCaches,
)
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.storage.null_storage import NullStorage

SIZE, OF_A_SENDER = 6, 3


class Recorded(NullStorage):
    """Counts records of ids as they would be on the disk."""

    def __init__(self):
        super().__init__()
        self.records = {}
        # The first is 0, which stands for none.
        self.new_id()

    def store_duplicate_id(self, record_id, address, duplicate_id, message_id, tx_id):
        self.records[record_id] = duplicate_id

    def delete_duplicate_id(self, record_id):
        del self.records[record_id]


def id_of(sender, number):
    return bytes([sender]) * 16 + number.to_bytes(8, "big")


def cache_on(storage, size=SIZE, sender_ids=OF_A_SENDER):
    return DuplicateCache(storage, "BRIDGE.a", size, is_persistent=True, sender_ids=sender_ids)


def add(cache, one):
    if one not in cache:
        cache.add(one, cache.record(one, None))


@given(st.lists(st.integers(0, 4), max_size=80))
def test_the_newest_of_all_and_of_each_sender_are_known_also_after_a_restart(senders):
    storage = Recorded()
    cache = cache_on(storage)
    sent = [id_of(sender, number) for number, sender in enumerate(senders)]
    for one in sent:
        add(cache, one)
    wanted = set(sent[-SIZE:])
    for sender in range(5):
        of_it = [one for one in sent if one[0] == sender]
        wanted.update(of_it[-OF_A_SENDER:])

    assert set(cache.ids()) == wanted
    assert len(cache) == len(wanted)
    assert sorted(storage.records.values()) == sorted(wanted)

    again = cache_on(storage)
    again.load([(duplicate_id, number) for number, duplicate_id in sorted(storage.records.items())])
    assert set(again.ids()) == wanted == set(storage.records.values())


@given(
    st.lists(st.integers(0, 3), max_size=40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 39)), max_size=10),
)
def test_what_an_operator_forgets_is_forgotten_and_nothing_else(senders, forgotten):
    storage = Recorded()
    cache = cache_on(storage)
    for number, sender in enumerate(senders):
        add(cache, id_of(sender, number))
    for pair in forgotten:
        known = set(cache.ids())
        one = id_of(*pair)
        assert cache.remove(one) == (one in known)
        assert set(cache.ids()) == known - {one} == set(storage.records.values())

    left = len(cache.ids())
    assert cache.clear() == left
    assert (cache.ids(), storage.records, len(cache)) == ([], {}, 0)


def test_of_too_many_senders_those_that_came_longest_ago_are_forgotten():
    storage = Recorded()
    cache = cache_on(storage, size=4)
    for number in range(SENDERS_MAX + 20):
        add(cache, number.to_bytes(16, "big") + bytes(8))

    # One each, beside the four of the circle.
    assert len(cache) == SENDERS_MAX + 4
    assert bytes(24) not in cache
    assert len(storage.records) == len(cache)


@pytest.mark.parametrize("size", [20_000, 100])
def test_a_bridge_that_was_cut_off_is_known_however_much_others_send(size):
    caches = DuplicateCaches(Recorded(), SettingsRepository(), size=size)
    of_bridges = caches.of(BRIDGE_PREFIX + "a")
    window = min(size, SENDER_IDS)
    unanswered = [id_of(1, number) for number in range(window)]
    for one in unanswered:
        add(of_bridges, one)
    for number in range(3 * size):
        add(of_bridges, id_of(2, number))

    assert all(one in of_bridges for one in unanswered)
    assert len(of_bridges) == size + window


def test_ids_of_clients_are_the_newest_of_the_address_alone():
    caches = DuplicateCaches(Recorded(), SettingsRepository(), size=5)
    of_clients = caches.of("a")
    for number in range(12):
        add(of_clients, id_of(number % 4, number))

    assert of_clients.ids() == [id_of(number % 4, number) for number in range(7, 12)]


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(0, 12), st.integers(0, 12))
def test_another_size_counts_from_its_change_on(senders, first, second):
    storage = Recorded()
    settings = SettingsRepository()
    caches = DuplicateCaches(storage, settings, size=first)
    cache = caches.of("a")
    sent = [id_of(sender, number) for number, sender in enumerate(senders)]
    for one in sent:
        add(cache, one)
    settings.add("a", AddressSettings(id_cache_size=second))

    left = sent[len(sent) - min(first, second, len(sent)) :]
    assert cache.ids() == left
    assert sorted(storage.records.values()) == sorted(left)
    assert caches.of("a").size == second
    for number in range(20):
        add(cache, id_of(9, number))
    assert cache.ids() == [id_of(9, number) for number in range(20 - second, 20)]


def test_ids_of_an_address_that_went_by_itself_are_there_when_it_is_back():
    storage = Recorded()
    caches = DuplicateCaches(storage, SettingsRepository())
    add(caches.of_bridges("a"), id_of(1, 1))
    add(caches.of("a"), b"own")
    caches.drop("a", keeps_ids=True)
    assert id_of(1, 1) in caches.of_bridges("a")

    caches.back("a")
    assert b"own" in caches.of("a")
    caches.drop("a")
    assert len(caches.of_bridges("a")) == len(caches.of("a")) == 0
    assert storage.records == {}


def test_ids_of_addresses_that_went_by_themselves_are_not_too_many():
    storage = Recorded()
    caches = DuplicateCaches(storage, SettingsRepository(), size=LEFT_IDS_MAX)
    for name in ("first", "second", "third"):
        for number in range(LEFT_IDS_MAX // 2):
            add(caches.of(name), id_of(1, number))
        caches.drop(name, keeps_ids=True)

    assert [len(caches.of(name)) for name in ("first", "second", "third")] == [
        0,
        LEFT_IDS_MAX // 2,
        LEFT_IDS_MAX // 2,
    ]
    assert len(storage.records) == LEFT_IDS_MAX


@given(st.lists(st.integers(0, 3), max_size=40), st.sets(st.integers(0, 39)))
def test_all_but_those_that_are_wanted_are_forgotten_in_one_go(senders, wanted):
    storage = Recorded()
    cache = cache_on(storage, size=100)
    sent = [id_of(sender, number) for number, sender in enumerate(senders)]
    for one in sent:
        add(cache, one)
    left = [one for number, one in enumerate(sent) if number in wanted]
    cache.retain(set(left))

    assert cache.ids() == left
    assert sorted(storage.records.values()) == sorted(left)

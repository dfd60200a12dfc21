"""Who has which message groups: the agreement alone, whatever is told in whichever order."""

from collections import Counter, deque

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cluster.group_owners import (
    BUCKETS,
    GroupKey,
    GroupOwners,
    Owner,
    bucket_of,
    choose_owner,
    preferred,
)
from broker.model.message import Message

NAMES = st.text("abcdef", min_size=1, max_size=3)
OWNERS = st.builds(Owner, st.integers(0, 5), NAMES)
KEY = GroupKey("q", 1)
BROKERS = 4


class At:
    """A queue somewhere, as far as choosing an owner asks."""

    def __init__(self, name, *, distance=1, consumer=True, pins=True, reached=True, open=True):
        self.name = name
        self.distance = distance
        self.pins_groups = pins
        self.is_reached = reached
        self._has_consumer = consumer
        self._is_open = open

    def accepts(self, message):
        return self._is_open

    def has_consumer_for(self, message):
        return self._has_consumer

    def cluster_name(self, node_id):
        return self.name


def chosen(*bindings):
    found = choose_owner(KEY, bindings, Message("q"), "node")
    return None if found is None else found.name


@given(st.lists(OWNERS, min_size=1), st.randoms())
def test_all_that_are_told_the_same_agree(told, chance):
    found = set()
    for _ in range(3):
        chance.shuffle(told)
        owners = GroupOwners()
        for owner in told:
            owners.learn(KEY, owner)
        found.add(owners.known[KEY])
    assert len(found) == 1


@given(OWNERS, OWNERS)
def test_of_two_owners_one_holds(one, other):
    assert (one == other) == (not one.outranks(other) and not other.outranks(one))
    assert not (one.outranks(other) and other.outranks(one))


@given(OWNERS, NAMES)
def test_who_follows_an_owner_outranks_it(owner, name):
    owners = GroupOwners()
    owners.learn(KEY, owner)

    follower = owners.next(KEY, name)

    assert follower.outranks(owner)
    assert owners.learn(KEY, follower)
    assert not owners.learn(KEY, owner)
    assert owners.of(name) == [KEY]


@given(st.sets(NAMES, min_size=2), st.integers(0, BUCKETS - 1))
def test_a_name_that_goes_moves_no_other_buckets_than_its_own(names, bucket):
    key = GroupKey("q", bucket)
    owner = preferred(key, names)
    for name in names - {owner}:
        assert preferred(key, names - {name}) == owner


def test_buckets_are_spread_over_names_and_groups_over_buckets():
    owners = Counter(preferred(GroupKey("q", one), "abcd") for one in range(BUCKETS))
    assert all(170 < count < 350 for count in owners.values()), owners
    assert len({bucket_of(f"order-{number}") for number in range(5_000)}) > BUCKETS * 0.9
    assert all(0 <= bucket_of(text) < BUCKETS for text in ("", "x", "ä€😀"))


def test_brokers_that_know_the_same_choose_the_same_and_consumers_come_first():
    some = [At(name) for name in "abc"]
    assert chosen(*some) == chosen(*reversed(some))

    assert chosen(At("a", consumer=False), At("b"), At("c", consumer=False)) == "b"
    assert chosen(At("a", reached=False), At("b", pins=False)) == "b"
    # Artemis's broker has groups only where no other has a consumer.
    assert chosen(At("a", pins=False), At("b")) == "b"
    # Without a consumer anywhere a message stays.
    assert chosen(At("a", consumer=False), At("b", distance=0, consumer=False)) == "b"
    assert chosen(At("a", reached=False)) == "a"
    assert chosen(At("a", open=False)) is None


class Gossip:
    """Brokers that tell each other of owners, over links that deliver when they like."""

    def __init__(self):
        self.brokers = [GroupOwners() for _ in range(BROKERS)]
        self.links = {
            (one, other): deque()
            for one in range(BROKERS)
            for other in range(BROKERS)
            if one != other
        }

    def choose(self, number, name):
        owners = self.brokers[number]
        owner = owners.next(KEY, name)
        assert owners.learn(KEY, owner)
        self.tell(number, owner)

    def tell(self, number, owner):
        for (one, _), link in self.links.items():
            if one == number:
                link.append(owner)

    def deliver(self, pair):
        """As `ClusterGroups.told()`."""
        link = self.links[pair]
        if not link:
            return
        owner, number = link.popleft(), pair[1]
        owners = self.brokers[number]
        before = owners.known.get(KEY)
        if owners.learn(KEY, owner):
            assert before is None or owner.outranks(before)
            self.tell(number, owner)
        elif owners.known[KEY] != owner:
            self.tell(number, owners.known[KEY])

    def drain(self):
        for _ in range(10_000):
            busy = [pair for pair, link in self.links.items() if link]
            if not busy:
                return
            for pair in busy:
                self.deliver(pair)
        raise AssertionError("they never stop telling")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("choose"), st.integers(0, BROKERS - 1), NAMES),
            st.tuples(st.just("deliver"), st.integers(0, 11)),
            st.tuples(st.just("cut"), st.integers(0, 11)),
        ),
        max_size=40,
    )
)
def test_brokers_agree_in_the_end_whatever_is_late_or_lost(steps):
    gossip = Gossip()
    pairs = list(gossip.links)
    for step, *arguments in steps:
        if step == "choose":
            gossip.choose(*arguments)
        elif step == "deliver":
            gossip.deliver(pairs[arguments[0]])
        else:
            # A link was cut: what was on its way is lost, and all is told anew.
            one, other = pairs[arguments[0]]
            gossip.links[one, other].clear()
            known = gossip.brokers[one].known.get(KEY)
            if known is not None:
                gossip.links[one, other].append(known)
    gossip.drain()

    known = {one.known.get(KEY) for one in gossip.brokers}
    assert len(known) == 1

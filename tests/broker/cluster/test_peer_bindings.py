"""What a peer tells, and what is known of it then: against a plain model, whatever the order."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.cluster.peer_bindings import PeerBindings
from broker.cluster.told import Told, ToldType, read_told, subscription_filter
from broker.model.address import DEFAULT_WILDCARDS
from broker.model.load_balancing import MessageLoadBalancing
from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.notifications import NotificationType, NullNotifier
from broker.routing.balancing import choose, redistribution_target
from broker.routing.remote_bindings import RemoteBindings, RemoteQueueBinding
from broker.selector.filters import parse_filter

OWN, PEER = "0" * 36, "1" * 36
QUEUES = ("a", "b", "c")
FILTERS = (None, "x = 1", "x = 2")
SEQUENCES = 150


class Forwarding:
    """A store-and-forward queue."""

    name = "$.artemis.internal.sf.mesh.peer"


def message(x=None, **headers):
    found = () if x is None else (Property("x", PropertyType.INT, x),)
    return Message("a", properties=found, **headers)


class Heard(NullNotifier):
    """Counts consumers as a broker behind this one would."""

    def __init__(self):
        self.known = {}

    def binding(self, kind, binding):
        if kind is NotificationType.BINDING_ADDED:
            assert binding.unique_name not in self.known
            self.known[binding.unique_name] = Counter()
        elif kind is NotificationType.BINDING_REMOVED:
            assert not +self.known.pop(binding.unique_name)

    def remote_consumer(self, kind, binding, filter):
        text = None if filter is None else filter.text
        step = 1 if kind is NotificationType.CONSUMER_CREATED else -1
        self.known[binding.unique_name][text] += step
        assert self.known[binding.unique_name][text] >= 0


class Known:
    """One peer's bindings, and a broker that is told on."""

    def __init__(self, mode=MessageLoadBalancing.ON_DEMAND):
        self.heard = Heard()
        self.ids = iter(range(1000, 10**9))
        self.mode = mode
        self.registry = RemoteBindings(DEFAULT_WILDCARDS, lambda address: None)
        self.peer = PeerBindings(
            "mesh",
            node_id=OWN,
            make=self.make,
            registry=self.registry,
            parse_filter=parse_filter,
            notifications=self.heard,
        )

    def make(self, told, filter):
        return RemoteQueueBinding(
            address=told.address,
            cluster_name=told.cluster_name,
            routing_name=told.routing_name,
            binding_id=next(self.ids),
            remote_id=told.binding_id,
            filter=filter,
            distance=told.distance + 1,
            forwarding=Forwarding(),
            mode=self.mode,
        )

    def tell(self, kind, queue=None, binding_id=0, filter=None):
        name = "" if queue is None else queue + PEER
        address = "" if queue is None else queue
        self.peer.apply(Told(kind, address, name, address, binding_id, 0, filter))


class Telling(RuleBasedStateMachine):
    """A peer with queues and consumers that come and go; its link is lost and taken up again."""

    def __init__(self):
        super().__init__()
        self.known = Known()
        self.queues = {}
        self.ids = iter(range(1, 10**9))
        self.is_connected = False

    def told(self, *what):
        if self.is_connected:
            self.known.tell(*what)

    @rule()
    @precondition(lambda self: not self.is_connected)
    def connect(self):
        self.is_connected = True
        self.known.tell(ToldType.RESET)
        for queue, (binding_id, consumers) in self.queues.items():
            self.known.tell(ToldType.BINDING_ADDED, queue, binding_id)
            for text in consumers.elements():
                self.known.tell(ToldType.CONSUMER_CREATED, queue, 0, text)
        self.known.tell(ToldType.RESET_COMPLETE)

    @rule()
    @precondition(lambda self: self.is_connected)
    def lose(self):
        self.is_connected = False
        self.known.peer.disconnected()

    @rule()
    def leave(self):
        self.is_connected = False
        self.known.peer.clear()

    @rule(queue=st.sampled_from(QUEUES))
    def create(self, queue):
        if queue not in self.queues:
            binding_id = next(self.ids)
            self.queues[queue] = binding_id, Counter()
            self.told(ToldType.BINDING_ADDED, queue, binding_id)

    @rule(queue=st.sampled_from(QUEUES))
    def delete(self, queue):
        if queue in self.queues:
            del self.queues[queue]
            self.told(ToldType.BINDING_REMOVED, queue)

    @rule(queue=st.sampled_from(QUEUES), text=st.sampled_from(FILTERS))
    def consume(self, queue, text):
        if queue in self.queues:
            self.queues[queue][1][text] += 1
            self.told(ToldType.CONSUMER_CREATED, queue, 0, text)

    @rule(queue=st.sampled_from(QUEUES), text=st.sampled_from(FILTERS))
    def close(self, queue, text):
        if queue in self.queues and self.queues[queue][1][text]:
            self.queues[queue][1][text] -= 1
            self.told(ToldType.CONSUMER_CLOSED, queue, 0, text)

    @rule(queue=st.sampled_from(QUEUES))
    def tell_of_our_own(self, queue):
        """As around a ring."""
        if self.is_connected:
            own = Told(ToldType.BINDING_ADDED, queue, queue + OWN, queue, 7, 1)
            self.known.peer.apply(own)

    @invariant()
    def what_is_known_is_what_there_is(self):
        by_name = self.known.peer.by_name
        if not self.is_connected:
            assert all(one.consumer_count == 0 for one in by_name.values())
            assert not any(one.is_connected for one in by_name.values())
        else:
            assert set(by_name) == {queue + PEER for queue in self.queues}
            for queue, (binding_id, consumers) in self.queues.items():
                binding = by_name[queue + PEER]
                assert binding.remote_id == binding_id
                found = Counter(None if one is None else one.text for one in binding.consumers())
                assert found == +consumers
                assert binding.is_connected

    @invariant()
    def what_is_told_on_is_what_is_known(self):
        by_name = self.known.peer.by_name
        assert set(self.known.heard.known) == set(by_name) == set(self.known.registry.by_name)
        for name, binding in by_name.items():
            assert sum(self.known.heard.known[name].values()) == binding.consumer_count


class TestTelling(Telling.TestCase):
    settings = settings(max_examples=SEQUENCES, stateful_step_count=30, deadline=None)


class CountsTwice(RemoteQueueBinding):
    def consumer_created(self, filter):
        super().consumer_created(filter)
        super().consumer_created(filter)


def test_a_planted_fault_is_found(monkeypatch):
    """Demand counted twice."""
    monkeypatch.setitem(globals(), "RemoteQueueBinding", CountsTwice)
    machine = Telling()
    machine.create(queue="a")
    machine.connect()
    machine.consume(queue="a", text=None)

    with pytest.raises(AssertionError):
        machine.what_is_known_is_what_there_is()


def test_before_the_first_reset_nothing_counts():
    known = Known()
    known.tell(ToldType.BINDING_ADDED, "a", 1)

    assert known.peer.by_name == {}


def test_a_queue_told_by_two_peers_is_used_once_and_by_the_other_when_one_goes():
    near, far = Known(), Known()
    far.registry = near.registry
    far.peer._registry = near.registry
    promoted = []
    near.registry.on_promoted = lambda *told: promoted.append(told)
    for one in (near, far):
        one.tell(ToldType.RESET)
        one.tell(ToldType.BINDING_ADDED, "a", 1)
    used = near.registry.by_name["a" + PEER]
    assert used is near.peer.by_name["a" + PEER]

    near.peer.clear()

    assert near.registry.by_name["a" + PEER] is far.peer.by_name["a" + PEER]
    assert promoted == [(far.peer.by_name["a" + PEER], None)]


def test_a_queue_told_by_two_peers_is_reached_by_the_one_that_is_there():
    first, second = Known(), Known()
    second.registry = first.registry
    second.peer._registry = first.registry
    promoted = []
    first.registry.on_promoted = lambda *told: promoted.append(told)
    for one in (first, second):
        one.tell(ToldType.RESET)
        one.tell(ToldType.BINDING_ADDED, "a", 1)
        one.tell(ToldType.RESET_COMPLETE)
    by_first, by_second = (one.peer.by_name["a" + PEER] for one in (first, second))
    used = first.registry.by_name

    first.peer.disconnected()
    assert used["a" + PEER] is by_second
    assert promoted == [(by_second, by_first)]
    # One that is back changes nothing, until the other one goes.
    first.tell(ToldType.RESET)
    first.tell(ToldType.BINDING_ADDED, "a", 1)
    first.tell(ToldType.RESET_COMPLETE)
    assert used["a" + PEER] is by_second
    second.peer.disconnected()
    assert used["a" + PEER] is first.peer.by_name["a" + PEER]
    # With none of both the last one stays, and who is back first is used.
    first.peer.disconnected()
    assert used["a" + PEER] is first.peer.by_name["a" + PEER]
    second.tell(ToldType.RESET)
    second.tell(ToldType.BINDING_ADDED, "a", 1)
    assert used["a" + PEER] is second.peer.by_name["a" + PEER]
    assert len(promoted) == 3
    # Both ways are known still: one is left when the other is gone for good.
    second.heard.known["a" + PEER] = Counter()
    second.peer.clear()
    assert used["a" + PEER] is first.peer.by_name["a" + PEER]


@pytest.mark.parametrize(
    ("before", "after"), [(None, "x = 1"), ("x = 2", "x = 1"), ("x = 1", None)]
)
def test_a_queue_has_the_filter_that_is_told_when_the_peer_is_back(before, after):
    known = Known()
    updated = []
    known.heard.binding = lambda kind, binding: updated.append((kind, binding))
    known.tell(ToldType.RESET)
    known.tell(ToldType.BINDING_ADDED, "a", 1, before)
    binding = known.peer.by_name["a" + PEER]
    known.peer.disconnected()
    del updated[:]

    for _ in range(2):
        known.tell(ToldType.RESET)
        known.tell(ToldType.BINDING_ADDED, "a", 1, after)
        known.tell(ToldType.RESET_COMPLETE)

    assert known.peer.by_name["a" + PEER] is binding
    assert binding.takes(message(1))
    assert binding.takes(message(2)) is (after is None)
    # Those behind this broker hear of it once.
    assert updated == [(NotificationType.BINDING_UPDATED, binding)]


def bindings(known, *consumers):
    """One binding a list of filters of consumers."""
    known.tell(ToldType.RESET)
    found = []
    for number, texts in enumerate(consumers):
        known.peer.apply(Told(ToldType.BINDING_ADDED, "a", f"q{number}" + PEER, "a", number + 1, 0))
        binding = known.peer.by_name[f"q{number}" + PEER]
        for text in texts:
            binding.consumer_created(None if text is None else parse_filter(text))
        found.append(binding)
    return found


@pytest.mark.parametrize(
    ("mode", "x", "expected"),
    [
        ("ON_DEMAND", 1, [1, 2, 1, 2]),
        ("ON_DEMAND", 2, [2, 2, 2, 2]),
        ("STRICT", 1, [0, 1, 2, 0]),
        ("OFF", 1, [None] * 4),
        ("OFF_WITH_REDISTRIBUTION", 1, [None] * 4),
    ],
)
def test_turns_by_mode(mode, x, expected):
    some = bindings(Known(MessageLoadBalancing[mode]), [], ["x = 1"], [None])
    first, found = 0, []
    for _ in expected:
        chosen = choose(some, first, message(x), MessageLoadBalancing[mode])
        found.append(chosen)
        first = 0 if chosen is None else chosen + 1

    assert found == expected


@pytest.mark.parametrize("mode", ["ON_DEMAND", "STRICT"])
def test_without_a_consumer_a_node_that_is_reached_comes_before_one_that_is_not(mode):
    some = bindings(Known(MessageLoadBalancing[mode]), [], [], [])
    some[0].is_connected = some[2].is_connected = False

    found = [choose(some, first, message(), MessageLoadBalancing[mode]) for first in range(3)]

    assert found == [1, 1, 1]
    some[1].is_connected = False
    assert choose(some, 2, message(), MessageLoadBalancing[mode]) == 2


def test_a_message_stays_where_no_connected_consumer_wants_it():
    some = bindings(Known(), ["x = 1"], ["x = 2"])
    assert redistribution_target(some, 0, message(2)) == 1
    assert redistribution_target(some, 0, message(3)) is None
    some[1].is_connected = False
    assert redistribution_target(some, 0, message(2)) is None


def test_notifications_of_any_kind_are_read():
    told = read_told(
        Message(
            "activemq.notifications",
            properties=(
                Property("_AMQ_NotifType", PropertyType.STRING, "BINDING_ADDED"),
                Property("_AMQ_Address", PropertyType.STRING, "a"),
                Property("_AMQ_ClusterName", PropertyType.STRING, "q" + PEER),
                Property("_AMQ_RoutingName", PropertyType.STRING, "a"),
                Property("_AMQ_Binding_ID", PropertyType.LONG, 5),
                Property("_AMQ_Distance", PropertyType.INT, 0),
            ),
        )
    )
    assert told == Told(ToldType.BINDING_ADDED, "a", "q" + PEER, "a", 5, 0)
    assert read_told(message()) is None


@pytest.mark.parametrize(
    ("addresses", "address", "wanted"),
    [
        ("", "anything", True),
        ("eu", "europe", True),
        ("eu,us", "us.x", True),
        ("eu,!eu.test", "eu.test.a", False),
        ("!eu", "us", True),
        ("!eu", "eu", False),
        ("", "activemq.management", False),
        ("", "activemq.notifications", False),
        ("", "$.artemis.internal.sf.mesh.x", False),
    ],
)
def test_addresses_select_what_is_told(addresses, address, wanted):
    own = ("activemq.management", "activemq.notifications")
    text = subscription_filter(addresses, 1, own=own)
    told = Message(
        "activemq.notifications",
        properties=(
            Property("_AMQ_NotifType", PropertyType.STRING, "CONSUMER_CREATED"),
            Property("_AMQ_Address", PropertyType.STRING, address),
            Property("_AMQ_Distance", PropertyType.INT, 0),
        ),
    )

    assert parse_filter(text).matches(told) is wanted

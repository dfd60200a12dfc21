"""Queues of this broker, queues of others and diverts are one kind of thing to the post office."""

import contextlib
import struct
import time
from collections import Counter
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import BrokerError
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.routing.addresses import CHANGED_MAX
from broker.routing.bindings import Binding, BindingType, LocalQueueBinding, routing_context
from broker.routing.postoffice import Routing
from broker.selector import Filter
from tests.broker.bench import Bench, done, message
from tests.broker.remote_queue_binding import RemoteQueueBinding

OUTGOING = "sf.node2"
ANYCAST, MULTICAST = RoutingType.ANYCAST, RoutingType.MULTICAST
NAMES = ("a", "a.b", "a.#", "a.*", "#", "c")


@pytest.fixture
def bench():
    made = Bench()
    made.queue(OUTGOING, "to.others")
    return made


def bind_remote(bench, name="q", address="q", remote_id=1, routing_type=ANYCAST, **attributes):
    if address not in bench.addresses.by_name:
        bench.addresses.create(address, [routing_type])
    outgoing = bench.addresses.queues[OUTGOING]
    made = RemoteQueueBinding(name, address, outgoing, remote_id, routing_type, **attributes)
    bench.addresses.bind(made)
    return made


def send(bench, *bodies, address="q", routing_type=None, **properties):
    session = bench.session()
    for body in bodies:
        sent = message(body, address, **properties)
        sent.routing_type = routing_type
        session.send(sent, done)


def bodies(bench, queue):
    found = bench.addresses.queues[queue]
    return [bytes(one.message.body).decode() for one in found.references()]


def remote_ids(bench):
    """The ids that each message for other brokers names."""
    found = bench.addresses.queues[OUTGOING]
    values = [one.message.get(f"_AMQ_ROUTE_TO{OUTGOING}") for one in found.references()]
    return [struct.unpack(f">{len(one) // 8}q", one) for one in values]


# --- what a binding has -------------------------------------------------------------------------


def test_a_binding_says_what_is_bound_where(bench):
    anycast = bench.queue("a", "x", filter="n = 1")
    multicast = bench.queue("m", "x", MULTICAST)
    divert = bench.divert("x", "q", is_exclusive=True, filter="n = 2")
    remote = bind_remote(bench, "r", "x", 7, distance=2)

    bound = list(bench.addresses.by_name["x"].bindings)

    assert [one.binding_type for one in bound] == [
        BindingType.LOCAL_QUEUE,
        BindingType.LOCAL_QUEUE,
        BindingType.DIVERT,
        BindingType.REMOTE_QUEUE,
    ]
    assert all(isinstance(one, Binding) for one in bound)
    assert [one.unique_name for one in bound] == ["a", "m", "x to q", "r@2"]
    assert [one.routing_name for one in bound] == ["x", "m", "r", "x"]
    assert [one.routing_type for one in bound] == [ANYCAST, MULTICAST, RoutingType.STRIP, ANYCAST]
    assert [one.binding_id for one in bound] == [anycast.queue_id, multicast.queue_id, 0, 7]
    assert [one.is_exclusive for one in bound] == [False, False, True, False]
    assert [one.distance for one in bound] == [0, 0, 0, 2]
    assert [None if one.filter is None else one.filter.text for one in bound] == [
        *("n = 1", None, "n = 2", None)
    ]
    assert {one.address for one in bound} == {"x"}
    assert bound[2:] == [divert, remote]
    assert repr(remote) == "REMOTE_QUEUE('r@2' on 'x')"


def test_a_queue_that_is_changed_is_bound_anew_in_its_place(bench):
    bench.queue("a", "x")
    bench.queue("b", "x")
    bench.addresses.update("x", [ANYCAST, MULTICAST])

    bench.addresses.update_queue("a", routing_type=MULTICAST, filter="n = 3")

    first, second = bench.addresses.by_name["x"].bindings
    assert (first.unique_name, first.routing_name, first.filter.text) == ("a", "a", "n = 3")
    assert (second.unique_name, second.routing_name) == ("b", "x")


def test_a_queue_and_a_divert_of_one_name_are_two_bindings(bench):
    bench.queue("q")
    divert = bench.divert("q", "q", is_exclusive=False)
    divert.unique_name = "q"
    bench.addresses.bind(divert)
    address = bench.addresses.by_name["q"]
    count = len(address.bindings)

    bench.addresses.unbind(divert)

    assert count - len(address.bindings) == 1
    assert "q" in address.queues
    with pytest.raises(KeyError):
        bench.addresses.unbind(divert)


def test_a_binding_that_says_nothing_else_takes_what_its_filter_matches(bench):
    made = Binding(
        BindingType.REMOTE_QUEUE,
        address="q",
        unique_name="u",
        routing_name="q",
        routing_type=ANYCAST,
        binding_id=1,
        filter=bench.parse_filter("n = 1"),
    )
    routing = routing_context(bench.postoffice, bench.storage.new_context(), None, 0)

    assert [made.accepts(message(n=one)) for one in (1, 2)] == [True, False]
    assert made.has_consumer_for(message())
    assert made.describe() == "Binding [name=u, address=q]"
    with pytest.raises(NotImplementedError):
        made.route(message(), routing)


def test_a_local_queue_gets_what_it_accepts(bench):
    queue = bench.queue("q", filter="n = 1")
    bound = LocalQueueBinding(queue)
    routing = routing_context(bench.postoffice, bench.storage.new_context(), None, 0)

    assert [bound.accepts(message(n=one)) for one in (1, 2)] == [True, False]
    assert not bound.has_consumer_for(message(n=1))
    bound.route(message(n=1), routing)

    assert routing.queues == [queue]


# --- queues of other brokers --------------------------------------------------------------------


def test_a_message_goes_where_its_consumers_are(bench):
    bench.queue("q")
    bind_remote(bench, consumers=[None])

    send(bench, "1", "2")

    assert (bodies(bench, "q"), bodies(bench, OUTGOING)) == ([], ["1", "2"])
    assert remote_ids(bench) == [(1,), (1,)]


def test_consumers_here_and_there_take_turns(bench):
    bench.queue("q")
    bench.consume("q", credits=0)
    bind_remote(bench, consumers=[None])

    send(bench, *"1234")

    assert (bodies(bench, "q"), bodies(bench, OUTGOING)) == (["1", "3"], ["2", "4"])


def test_queues_here_and_there_without_consumers_take_turns(bench):
    bench.queue("q")
    bind_remote(bench)

    send(bench, *"1234")

    assert (bodies(bench, "q"), bodies(bench, OUTGOING)) == (["1", "3"], ["2", "4"])


def test_the_filters_of_remote_consumers_are_asked(bench):
    bench.queue("q")
    bind_remote(bench, consumers=[bench.parse_filter("n > 1"), bench.parse_filter("n < 0")])

    for number in (2, 1, -1):
        send(bench, str(number), n=number)

    assert bodies(bench, OUTGOING) == ["2", "-1"]
    assert bodies(bench, "q") == ["1"]


def test_the_filter_of_a_remote_queue_is_asked(bench):
    bind_remote(bench, filter=bench.parse_filter("n = 1"), consumers=[None])

    assert bench.session().send(message("1", n=1), done) is Routing.ROUTED
    assert bench.session().send(message("2", n=2), done) is Routing.NO_BINDINGS
    assert bodies(bench, OUTGOING) == ["1"]


def test_two_remote_queues_and_a_local_one_take_turns(bench):
    bind_remote(bench, "one", remote_id=1)
    bind_remote(bench, "two", remote_id=2, distance=2)
    bench.queue("q")

    send(bench, *"123456")

    assert bodies(bench, "q") == ["3", "6"]
    assert remote_ids(bench) == [(1,), (2,), (1,), (2,)]


def test_every_multicast_queue_gets_a_message_once(bench):
    bench.queue("here", "a", MULTICAST)
    bind_remote(bench, "there", "a", 1, MULTICAST)
    bind_remote(bench, "far", "a", 2, MULTICAST, distance=2)

    send(bench, "1", address="a")

    assert bodies(bench, "here") == ["1"]
    # To one broker it goes once, for both queues there.
    assert bodies(bench, OUTGOING) == ["1"]
    assert remote_ids(bench) == [(1, 2)]


def test_a_subscription_that_is_here_and_there_gets_a_message_once(bench):
    bench.queue("shared", "a", MULTICAST)
    bind_remote(bench, "shared", "a", 1, MULTICAST)

    send(bench, *"1234", address="a")

    assert (bodies(bench, "shared"), bodies(bench, OUTGOING)) == (["1", "3"], ["2", "4"])


@pytest.mark.parametrize(
    ("routing_type", "expected"),
    [(ANYCAST, [(1,)]), (MULTICAST, [(2,)]), (None, [(2, 1)])],
)
def test_a_routing_type_chooses_among_remote_queues_too(bench, routing_type, expected):
    bench.addresses.create("a", [ANYCAST, MULTICAST])
    bind_remote(bench, "any", "a", 1, ANYCAST)
    bind_remote(bench, "all", "a", 2, MULTICAST)

    send(bench, "1", address="a", routing_type=routing_type)

    assert remote_ids(bench) == expected


def test_a_remote_queue_bound_to_a_pattern_takes_what_matches(bench):
    bench.addresses.create("a.b", [ANYCAST])
    bind_remote(bench, "r", "a.#")

    send(bench, "1", address="a.b")

    assert bodies(bench, OUTGOING) == ["1"]


def test_a_queue_that_is_named_gets_what_a_remote_one_might(bench):
    bench.queue("q")
    bind_remote(bench, consumers=[None])

    send(bench, "1", address="q::q")

    assert (bodies(bench, "q"), bodies(bench, OUTGOING)) == (["1"], [])


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_diverts_come_before_remote_queues(bench, is_exclusive):
    bench.queue("copies")
    bind_remote(bench, consumers=[None])
    bench.divert("q", "copies", is_exclusive=is_exclusive)

    send(bench, "1")

    assert bodies(bench, "copies") == ["1"]
    assert bodies(bench, OUTGOING) == ([] if is_exclusive else ["1"])


def test_a_divert_leads_to_a_remote_queue(bench):
    bench.addresses.create("source", [ANYCAST])
    bind_remote(bench, consumers=[None])
    bench.divert("source", "q", is_exclusive=True)

    send(bench, "1", address="source")

    assert bodies(bench, OUTGOING) == ["1"]


def test_a_transaction_sends_to_a_remote_queue_with_its_commit(bench):
    bind_remote(bench)
    session = bench.transacted()
    session.send(message("1"), done)
    assert bodies(bench, OUTGOING) == []

    session.commit(done)

    assert bodies(bench, OUTGOING) == ["1"]


def test_a_message_sent_alone_goes_to_a_remote_queue_by_a_cached_route(bench):
    bind_remote(bench)
    cached = bench.postoffice.cached_route("q", time.monotonic() + 3600)
    sent = message("1")
    sent.message_id = bench.storage.new_id()

    assert bench.postoffice.send_cached(cached, sent, bench.storage.new_context())

    assert remote_ids(bench) == [(1,)]
    (reference,) = bench.addresses.queues[OUTGOING].references()
    # What is recorded has the id in it.
    assert Message.decode(reference.message.encode()).get(f"_AMQ_ROUTE_TO{OUTGOING}") is not None
    assert bench.addresses.by_name["q"].routed_count == 1


def test_a_remote_queue_that_is_gone_gets_nothing(bench):
    bench.queue("q")
    remote = bind_remote(bench, consumers=[None])
    session = bench.session()
    session.send(message("1"), done)

    bench.addresses.unbind(remote)
    session.send(message("2"), done)

    assert (bodies(bench, OUTGOING), bodies(bench, "q")) == (["1"], ["2"])


def test_nothing_is_made_for_an_address_whose_queue_is_elsewhere(bench):
    bind_remote(bench)

    send(bench, "1", routing_type=ANYCAST)

    assert "q" not in bench.addresses.queues
    assert bodies(bench, OUTGOING) == ["1"]


def test_an_address_with_a_remote_queue_is_deleted_by_force_alone(bench):
    bind_remote(bench)

    with pytest.raises(BrokerError, match="has bindings"):
        bench.addresses.delete("q")
    bench.addresses.delete("q", force=True)

    assert "q" not in bench.addresses.by_name
    assert not bench.postoffice.has_queues("q")


def test_clients_are_told_of_remote_queues_of_an_address(bench):
    bench.queue("q")
    bind_remote(bench, "there")

    assert bench.session().administration.query_address("q").queues == ("q", "there@1")


# --- what a change costs ------------------------------------------------------------------------


def test_queues_with_one_filter_ask_it_once_for_what_is_not_for_them(bench):
    for number in range(5):
        bench.queue(f"same {number}", "x", MULTICAST, filter="n = 1 AND m < 9")
    bench.queue("other", "x", MULTICAST, filter="n = 2 AND m < 9")
    bench.queue("all", "x", MULTICAST)
    asked = Counter()

    with asking(asked):
        send(bench, "two", address="x", n=2, m=1)
        send(bench, "none", address="x", n=3, m=1)

    assert asked == {"n = 1 AND m < 9": 2, "n = 2 AND m < 9": 2}
    send(bench, "one", address="x", n=1, m=1)
    assert [bodies(bench, f"same {number}") for number in range(5)] == [["one"]] * 5
    assert bodies(bench, "other") == ["two"]
    assert bodies(bench, "all") == ["two", "none", "one"]


def test_a_queue_with_the_filter_of_others_takes_nothing_while_it_is_disabled(bench):
    for name in ("a", "b", "c"):
        bench.queue(name, "x", MULTICAST, filter="n = 1")
    bench.addresses.update_queue("b", enabled=False)

    send(bench, "1", address="x", n=1)

    assert [bodies(bench, name) for name in "abc"] == [["1"], [], ["1"]]


@contextlib.contextmanager
def asking(counts):
    """Count how often each filter is asked, by its text."""
    real = Filter.matches

    def counted(self, message):
        counts[self.text] += 1
        return real(self, message)

    with mock.patch.object(Filter, "matches", counted):
        yield


def test_a_change_at_one_address_leaves_the_routes_of_others(bench):
    for name in ("x", "y"):
        bench.queue(name)
    postoffice = bench.postoffice
    before = {name: postoffice.route_of(name) for name in ("x", "y")}

    bench.queue("another", "x")

    assert postoffice.route_of("x") is not before["x"]
    assert postoffice.route_of("y") is before["y"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda bench: bench.queue("all", "#", MULTICAST), id="pattern"),
        pytest.param(lambda bench: bind_wild(bench), id="remote pattern"),
        pytest.param(lambda bench: bench.addresses.changed(), id="settings"),
        pytest.param(lambda bench: make_many(bench), id="more than are noted"),
    ],
)
def test_a_change_that_may_concern_any_address_finds_all_routes_anew(bench, change):
    bench.queue("x")
    before = bench.postoffice.route_of("x")

    change(bench)

    assert bench.postoffice.route_of("x") is not before


def bind_wild(bench):
    outgoing = bench.addresses.queues[OUTGOING]
    made = RemoteQueueBinding("all", "#", outgoing, 9, MULTICAST)
    bench.addresses.remote.add(made)


def make_many(bench):
    for number in range(CHANGED_MAX + 1):
        bench.addresses.changed(f"address {number}")


@given(changes=st.lists(st.tuples(st.booleans(), st.sampled_from(NAMES)), max_size=12))
@settings(max_examples=60, deadline=None)
def test_routes_are_those_of_a_post_office_that_keeps_none(changes):
    bench = Bench()
    for name in NAMES:
        bench.addresses.create(name, [ANYCAST, MULTICAST])
    for makes, name in changes:
        queue = f"queue of {name}"
        if makes and queue not in bench.addresses.queues:
            bench.queue(queue, name, MULTICAST)
        elif not makes and queue in bench.addresses.queues:
            bench.addresses.delete_queue(queue)
        for address in NAMES:
            kept = [one.unique_name for one in bench.postoffice.route_of(address).multicast]
            found = [one.unique_name for one in bench.postoffice._find(address).multicast]
            assert kept == found

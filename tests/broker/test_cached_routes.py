"""What is found once for nearly every message holds no longer than it is true."""

import struct
import time
from types import SimpleNamespace

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.routing.cached_routes import CachedRoute
from broker.routing.postoffice import Routing
from broker.settings.policies import AddressFullPolicy
from tests.broker.bench import Bench, done, message


class Guard:
    """Security that counts how often it is asked."""

    is_enabled = True

    def __init__(self, until_s):
        self.until_s = until_s
        self.asked = 0
        self.is_open = True

    def check(self, user, permission, address, queue):
        if permission == "send":
            self.asked += 1
        if not self.is_open:
            raise BrokerError(ErrorCode.SECURITY_EXCEPTION, "no")
        return self.until_s

    def on_change(self, listener):
        self.tell = listener


@pytest.fixture
def guard():
    return Guard(time.monotonic() + 3600)


@pytest.fixture
def bench(guard):
    made = Bench(security=guard)
    guard.on_change(made.postoffice.addresses.changed)
    made.queue()
    return made


@pytest.fixture
def session(bench):
    """One that has found its way to q."""
    made = bench.session()
    made.send(message("first"), done)
    return made


def count(bench, queue="q"):
    return bench.addresses.queues[queue].message_count


def test_the_second_message_asks_nothing(bench, session, guard):
    for _ in range(5):
        assert session.send(message(), done) is Routing.ROUTED

    assert guard.asked == 1
    assert count(bench) == 6
    assert bench.addresses.by_name["q"].routed_count == 6


def test_an_answer_that_holds_for_once_is_asked_for_again(bench, guard):
    guard.until_s = None
    session = bench.session()
    for _ in range(3):
        session.send(message(), done)

    assert guard.asked == 3


def test_an_answer_that_is_over_is_asked_for_again(bench, guard):
    guard.until_s = time.monotonic()
    session = bench.session()
    for _ in range(3):
        session.send(message(), done)

    assert guard.asked == 3


def test_who_may_not_any_more_is_refused(bench, session, guard):
    guard.is_open = False
    guard.tell()

    with pytest.raises(BrokerError) as refusal:
        session.send(message(), done)

    assert refusal.value.code is ErrorCode.SECURITY_EXCEPTION
    assert count(bench) == 1


def test_another_session_asks_for_itself(bench, session, guard):
    bench.session().send(message(), done)

    assert guard.asked == 2


def test_settings_that_come_later_count(bench, session):
    bench.set(expiry_delay_ms=1000)
    session.send(message(), done)
    sink = bench.consume()

    assert [one.expiration for one in sink.got] == [0, bench.now_ms + 1000]


def test_limits_that_come_later_count(bench, session):
    bench.set(max_size_messages=2, address_full_policy=AddressFullPolicy.FAIL)
    session.send(message(), done)

    with pytest.raises(BrokerError) as refusal:
        session.send(message(), done)

    assert refusal.value.code is ErrorCode.ADDRESS_FULL


def test_an_address_that_gets_full_and_empty_again(bench):
    bench.set(max_size_messages=1, address_full_policy=AddressFullPolicy.DROP)
    session = bench.session()
    session.send(message("taken"), done)
    session.send(message("dropped"), done)
    sink = bench.consume()
    sink.session.acknowledge(0, sink.ids[0], done)

    session.send(message("taken too"), done)
    bench.loop.run_turns()

    assert sink.bodies == ["taken", "taken too"]


def test_a_full_broker_and_a_full_disk(bench, session):
    bench.set(address_full_policy=AddressFullPolicy.DROP)
    memory = bench.addresses.memory
    session.send(message(), done)
    memory.count_max = 2
    assert session.send(message(), done) is Routing.NO_BINDINGS
    memory.count_max = -1
    assert session.send(message(), done) is Routing.ROUTED
    memory.size_max = 1
    assert session.send(message(), done) is Routing.NO_BINDINGS


def test_a_divert_that_comes_later_takes_its_part(bench, session):
    bench.queue("other")
    bench.divert("q", "other", is_exclusive=True, routing_type=RoutingType.ANYCAST)

    session.send(message(), done)

    assert (count(bench), count(bench, "other")) == (1, 1)


def test_a_queue_that_is_gone_gets_nothing(bench, session):
    bench.set(auto_create_queues=False, auto_create_addresses=False)
    session.send(message(), done)
    bench.addresses.delete_queue("q")

    assert session.send(message(), done) is Routing.NO_BINDINGS


def test_a_queue_that_comes_later_takes_turns(bench, session):
    bench.queue("r", address="q")
    for _ in range(4):
        session.send(message(), done)

    assert (count(bench), count(bench, "r")) == (3, 2)


def test_a_filter_is_asked_each_time(bench):
    bench.queue("some", address="a", routing_type=RoutingType.MULTICAST, filter="colour = 'red'")
    session = bench.session()
    results = [
        session.send(message(address="a", colour=colour), done) for colour in ("red", "blue", "red")
    ]

    assert results == [Routing.ROUTED, Routing.NO_BINDINGS, Routing.ROUTED]
    assert count(bench, "some") == 2


def test_a_queue_that_was_disabled_takes_nothing(bench, session):
    session.send(message(), done)
    bench.addresses.update_queue("q", enabled=False)

    assert session.send(message(), done) is Routing.NO_BINDINGS


def test_a_routing_type_that_the_address_has_not_goes_the_long_way(bench, session):
    bench.set(auto_create_addresses=False)
    session.send(message(), done)
    made = message()
    made.routing_type = RoutingType.MULTICAST

    # Artemis answers OK, too, where the address has a queue.
    assert session.send(Message.decode(made.encode()), done) is Routing.NO_BINDINGS


def test_what_means_something_to_the_broker_goes_the_long_way(bench, session):
    results = [session.send(message(_AMQ_DUPL_ID="same"), done) for _ in range(2)]

    assert results == [Routing.ROUTED, Routing.DUPLICATE]


def test_a_session_in_a_transaction_takes_no_way(bench, session):
    transacted = bench.transacted()
    for _ in range(2):
        transacted.send(message(), done)
    assert count(bench) == 1

    transacted.commit(done)

    assert count(bench) == 3


@pytest.mark.parametrize("routing_type", [RoutingType.ANYCAST, RoutingType.MULTICAST])
def test_the_routing_type_alone_is_nothing_special(routing_type):
    made = message()
    made.routing_type = routing_type
    read = Message.decode(made.encode())

    assert not read.has_own_properties
    assert read.routing_type is routing_type
    assert read.get("_AMQ_ROUTING_TYPE") == int(routing_type)
    assert read.get("_AMQ_GROUP_ID") is None


def test_what_is_set_later_is_seen(bench):
    read = Message.decode(message(colour="red").encode())
    assert not read.has_own_properties
    assert read.routing_type is None

    read.set("_AMQ_GROUP_ID", read.properties["colour"].type, "g")
    read.routing_type = RoutingType.ANYCAST

    assert read.has_own_properties
    assert read.get("_AMQ_GROUP_ID") == "g"
    assert read.routing_type is RoutingType.ANYCAST
    read.routing_type = None
    assert read.routing_type is None
    assert read.get("_AMQ_ROUTING_TYPE") is None


# --- when a message takes the full path ---------------------------------------------------------

LATER = time.monotonic() + 3600

# What of an address lets no route be cached: each message is routed in full.
NOT_CACHED = {
    "only a pattern is bound": lambda bench: bench.queue("p", "#"),
    "no queue is bound": lambda bench: bench.addresses.create("new", [RoutingType.ANYCAST]),
    "a divert is bound": lambda bench: bench.divert(bench.queue("new").name, "q", filter="n = 1"),
    "messages never expire": lambda bench: set_with_queue(bench, no_expiry=True),
    "messages get a lifetime": lambda bench: set_with_queue(bench, expiry_delay_ms=0),
    "lifetimes have a least": lambda bench: set_with_queue(bench, min_expiry_delay_ms=0),
    "lifetimes have a most": lambda bench: set_with_queue(bench, max_expiry_delay_ms=0),
}


def set_with_queue(bench, **settings):
    bench.queue("new")
    bench.set("new", **settings)


@pytest.mark.parametrize("why", NOT_CACHED)
def test_no_route_is_cached_where(bench, why):
    NOT_CACHED[why](bench)

    assert bench.postoffice.cached_route("new", LATER) is None


@pytest.mark.parametrize("routing_type", [RoutingType.ANYCAST, RoutingType.MULTICAST])
def test_a_route_is_cached_to_any_number_of_queues(bench, routing_type):
    for number in range(3):
        bench.queue(f"new{number}", "new", routing_type)
    bench.queue("p", "#", routing_type)

    assert bench.postoffice.cached_route("new", LATER) is not None


def send_cached(bench, cached, sent=None):
    """Whether a message took the cached route; nothing has happened where it did not."""
    before = count(bench), bench.addresses.by_name["q"].routed_count
    sent = sent or message()
    sent.message_id = bench.storage.new_id()

    is_sent = bench.postoffice.send_cached(cached, sent, bench.storage.new_context())

    after = count(bench), bench.addresses.by_name["q"].routed_count
    assert after == ((before[0] + 1, before[1] + 1) if is_sent else before)
    return is_sent


# What of a moment refuses a route that is cached.
REFUSED = {
    "what is bound has changed": lambda bench: bench.queue("r", "q"),
    "settings have changed": lambda bench: bench.set(redelivery_delay_ms=1),
    "permissions have changed": lambda bench: bench.addresses.changed(),
    "the broker has too many bytes": lambda bench: setattr(bench.addresses.memory, "size_max", 1),
    "the broker has too many messages": lambda bench: setattr(
        bench.addresses.memory, "count_max", 1
    ),
    "the disk is full": lambda bench: bench.addresses.memory.set_disk_full(is_full=True),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_cached_route_is_refused_when(bench, why):
    cached = bench.postoffice.cached_route("q", LATER)
    assert send_cached(bench, cached)

    REFUSED[why](bench)

    assert not send_cached(bench, cached)


@pytest.mark.parametrize("limit", ["max_size_bytes", "max_size_messages"])
def test_a_cached_route_is_refused_when_its_address_is_full(bench, limit):
    bench.set(**{limit: 1})
    cached = bench.postoffice.cached_route("q", LATER)

    assert [send_cached(bench, cached) for _ in range(2)] == [True, False]


def test_a_cached_route_is_refused_when_the_user_may_send_no_longer(bench):
    assert not send_cached(bench, bench.postoffice.cached_route("q", time.monotonic()))


def test_a_cached_route_is_refused_while_anything_is_in_pages(bench):
    paging = SimpleNamespace(active_count=0)
    cached = CachedRoute(
        bench.addresses.by_name["q"],
        bench.postoffice.route_of("q"),
        bench.settings.match("q"),
        paging,
        bench.addresses.version,
        LATER,
        time.monotonic,
    )
    assert send_cached(bench, cached)

    paging.active_count = 1

    assert not send_cached(bench, cached)


def test_a_cached_route_is_refused_by_the_routing_type_of_a_message(bench):
    cached = bench.postoffice.cached_route("q", LATER)
    sent = message()

    sent.routing_type = RoutingType.MULTICAST
    assert not send_cached(bench, cached, Message.decode(sent.encode()))
    sent.routing_type = RoutingType.ANYCAST
    assert send_cached(bench, cached, Message.decode(sent.encode()))


def test_a_cached_route_is_refused_by_a_message_that_no_queue_accepts(bench):
    bench.addresses.update_queue("q", filter="colour = 'red'")
    cached = bench.postoffice.cached_route("q", LATER)

    assert send_cached(bench, cached, message(colour="red"))
    assert not send_cached(bench, cached, message(colour="blue"))


@pytest.mark.parametrize(
    "properties",
    [
        {"_AMQ_DUPL_ID": "id", "_AMQ_GROUP_ID": "g"},
        {"_AMQ_DUPL_ID": b"id", "_AMQ_SCHED_DELIVERY": 1},
        {"_AMQ_DUPL_ID": 1},
        {"_AMQ_BRIDGE_DUP": b"id", "_AMQ_ROUTE_TO": b""},
        {"_AMQ_BRIDGE_DUP": b"id", "_AMQ_DUPL_ID": "id"},
        {"_AMQ_BRIDGE_DUP": "no id"},
        {"_AMQ_ROUTE_TO": b""},
        {"_AMQ_SCHED_DELIVERY": 1},
    ],
)
def test_a_message_that_says_something_to_the_broker_takes_the_full_path(
    bench, session, guard, properties
):
    session.send(message(**properties), done)

    assert guard.asked == 2


def test_a_message_to_a_queue_by_name_takes_the_full_path(bench, session, guard):
    for _ in range(2):
        session.send(message(address="q::q"), done)

    assert guard.asked == 3


def test_what_a_bridge_brings_asks_nothing_and_comes_once(bench, session, guard):
    sent = [
        session.send(message(_AMQ_BRIDGE_DUP=name, color="red"), done)
        for name in (b"one", b"two", b"one", b"two")
    ]

    assert sent == [Routing.ROUTED] * 2 + [Routing.DUPLICATE] * 2
    # Those that are there already take the full path, which says so.
    assert (guard.asked, count(bench)) == (3, 3)
    assert bench.postoffice.duplicates.of_bridges("q").rejected_count == 2
    assert bench.addresses.by_name["q"].routed_count == 3


def named(bench, *names):
    """As a peer of a cluster names queues of this broker."""
    return b"".join(struct.pack(">q", bench.addresses.queues[one].queue_id) for one in names)


def test_what_a_peer_brings_for_a_queue_asks_nothing_and_comes_once(bench, session, guard):
    bench.queue("other", "q")
    session.send(message("second"), done)
    asked = guard.asked
    sent = [
        session.send(
            message(_AMQ_BRIDGE_DUP=name, _AMQ_ROUTE_TO=named(bench, "q"), color="red"), done
        )
        for name in (b"one", b"two", b"one")
    ]
    sink = bench.consume()

    assert sent == [Routing.ROUTED] * 2 + [Routing.DUPLICATE]
    # Not to the other queue in its turn.
    assert (count(bench), count(bench, "other")) == (4, 0)
    assert guard.asked == asked + 1
    assert [list(got.properties) for got in sink.got[2:]] == [["color"], ["color"]]


@pytest.mark.parametrize(
    "queues", [["elsewhere"], ["q", "elsewhere"], ["q", "q"], []], ids=lambda names: " ".join(names)
)
def test_what_a_peer_brings_for_other_queues_takes_the_full_path(bench, session, guard, queues):
    bench.queue("elsewhere")
    session.send(message("second"), done)
    asked = guard.asked

    sent = message(_AMQ_BRIDGE_DUP=b"one", _AMQ_ROUTE_TO=named(bench, *queues))
    session.send(sent, done)

    # It has to be allowed there, too.
    assert guard.asked == asked + 1 + queues.count("elsewhere")
    assert count(bench, "elsewhere") == queues.count("elsewhere")


def test_what_a_peer_brings_keeps_all_where_it_takes_the_full_path(bench, session, guard):
    ids = named(bench, "q")
    asked = guard.asked

    session.send(message(_AMQ_BRIDGE_DUP=b"one", _AMQ_ROUTE_TO=ids, _AMQ_GROUP_ID="g"), done)
    session.send(message(_AMQ_BRIDGE_DUP=b"one", _AMQ_ROUTE_TO=ids, _AMQ_GROUP_ID="g"), done)
    sink = bench.consume()

    assert guard.asked == asked + 2
    assert [list(got.properties) for got in sink.got[1:]] == [["_AMQ_GROUP_ID"]]


@pytest.mark.parametrize("kind", [str, str.encode])
def test_what_has_a_duplicate_id_asks_nothing_and_comes_once(bench, session, guard, kind):
    sent = [
        session.send(message(_AMQ_DUPL_ID=kind(name), color="red"), done)
        for name in ("one", "two", "one", "two")
    ]
    sink = bench.consume()

    assert sent == [Routing.ROUTED] * 2 + [Routing.DUPLICATE] * 2
    # Those that are there already take the full path, which says so.
    assert (guard.asked, count(bench)) == (3, 3)
    assert bench.postoffice.duplicates.of("q").rejected_count == 2
    assert [got.get("_AMQ_DUPL_ID") for got in sink.got[1:]] == [kind("one"), kind("two")]


def test_what_a_bridge_brought_has_its_own_properties_and_no_id_of_the_bridge(bench, session):
    session.send(message(_AMQ_BRIDGE_DUP=b"one", color="red"), done)
    session.send(message(_AMQ_BRIDGE_DUP=b"two", _AMQ_GROUP_ID="g"), done)
    sink = bench.consume()

    assert [list(got.properties) for got in sink.got[1:]] == [["color"], ["_AMQ_GROUP_ID"]]

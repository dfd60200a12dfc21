"""What is found once for nearly every message holds no longer than it is true."""

import time

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.records.binding_records import Divert
from broker.routing.divert import DivertBinding
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
    divert = DivertBinding(
        Divert(
            name="d",
            address="q",
            forwarding_address="other",
            routing_name="d",
            exclusive=True,
            filter=None,
            routing_type=RoutingType.ANYCAST,
            transformer=None,
        ),
        parse_filter=bench.parse_filter,
    )
    bench.addresses.bind(divert)

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

"""As Artemis: shared subscriptions, browsers, rebalanced groups, queues that are left empty."""

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.routing_type import RoutingType
from broker.settings.queue_defaults import QueueRequest
from tests.broker.bench import START_MS, Bench, done, message


@pytest.fixture
def bench():
    return Bench()


def send(bench, *bodies, **attributes):
    session = bench.session()
    for body in bodies:
        session.send(message(body, **attributes), done)
    bench.loop.run_turns()


# --- shared subscriptions -----------------------------------------------------------------------


def subscription(**changes):
    request = {"name": "s", "address": "topic", "routing_type": RoutingType.MULTICAST}
    return QueueRequest(**{**request, "filter": "color = 'red'", **changes})


def test_a_shared_subscription_is_found_again(bench):
    session = bench.session()

    first = session.administration.create_queue(subscription(), is_shared=True)
    # Artemis does not look at how durable it is.
    second = session.administration.create_queue(subscription(is_durable=False), is_shared=True)

    assert first is second


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({"filter": "color = 'blue'"}, 229083),
        ({"filter": None}, 229083),
        ({"address": "other"}, 229082),
    ],
)
def test_a_shared_subscription_is_refused_with_another_selector_or_topic(bench, changes, number):
    session = bench.session()
    session.administration.create_queue(subscription(), is_shared=True)

    with pytest.raises(BrokerError) as refused:
        session.administration.create_queue(subscription(**changes), is_shared=True)

    # A JMS client takes QUEUE_EXISTS for success, and would consume by the other selector.
    assert refused.value.code is ErrorCode.INVALID_TRANSIENT_QUEUE_USE
    assert refused.value.text.startswith(f"AMQ{number}: ")


def test_a_shared_subscription_makes_its_address(bench):
    bench.set(auto_create_addresses=False)

    bench.session().administration.create_queue(subscription(), is_shared=True)

    assert "topic" in bench.addresses.by_name


# --- browsers -----------------------------------------------------------------------------------


def test_a_browser_of_a_session_that_is_not_started_sees_messages(bench):
    bench.queue()
    send(bench, "1", "2")
    session = bench.session()
    sink = bench.consume(session=session, credits=0, is_browser=True)
    session.stop()

    sink.consumer.receive_credits(-1)

    assert sink.bodies == ["1", "2"]


def test_a_consumer_of_a_session_that_is_stopped_gets_nothing(bench):
    bench.queue()
    session = bench.session()
    sink = bench.consume(session=session)
    session.stop()

    send(bench, "1")

    assert sink.bodies == []


# --- groups -------------------------------------------------------------------------------------


@pytest.fixture
def rebalancing(bench):
    bench.queue(group_rebalance=True, group_rebalance_pause_dispatch=True)
    return bench


def groups(bench, *names):
    for name in names:
        send(bench, name, _AMQ_GROUP_ID=name)


ENDS = {
    "acknowledged": lambda old: [old.session.acknowledge(0, one, done) for one in old.ids],
    "acknowledged alone": lambda old: [
        old.session.acknowledge(0, one, done, is_individual=True) for one in old.ids
    ],
    "closed": lambda old: old.session.close(has_failed=False),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_group_waits_until_its_old_owner_has_answered(rebalancing, how):
    old = rebalancing.consume()
    groups(rebalancing, "a", "b")

    new = rebalancing.consume()
    groups(rebalancing, "a", "b", "a", "b")
    held = (old.bodies[2:], new.bodies)
    ENDS[how](old)
    rebalancing.loop.run_turns()

    assert held == ([], [])
    delivered = [*old.bodies[2:], *new.bodies]
    assert sorted(delivered) == sorted("abab" if how != "closed" else "ababab")
    assert how == "closed" or set(new.bodies).isdisjoint(old.bodies[2:])


def test_a_rebalance_waits_for_all_that_is_unanswered(rebalancing):
    old = rebalancing.consume()
    groups(rebalancing, "a", "b")
    new = rebalancing.consume()
    groups(rebalancing, "a", "b")

    old.session.acknowledge(0, old.ids[0], done)
    rebalancing.loop.run_turns()

    assert (old.bodies, new.bodies) == (["a", "b"], [])


def test_without_anything_unanswered_a_rebalance_holds_up_nothing(rebalancing):
    first, second = rebalancing.consume(), rebalancing.consume()

    groups(rebalancing, "a", "b")

    assert (first.bodies, second.bodies) == (["a"], ["b"])


def test_without_the_pause_groups_move_at_once(bench):
    bench.queue(group_rebalance=True)
    old = bench.consume()
    groups(bench, "a", "b")

    new = bench.consume()
    groups(bench, "a", "b")

    assert len(new.bodies) == 1
    assert len(old.bodies) == 3


# --- queues that are not needed -----------------------------------------------------------------


EMPTIES = {
    "purged": lambda bench, queue: queue.remove_all(),
    "expired": lambda bench, queue: (bench.loop.pass_time(5), bench.scan_expired()),
}


@pytest.fixture
def kept(bench):
    """A queue that its consumer left with messages in it."""
    queue = bench.queue(is_auto_created=True)
    sink = bench.consume(credits=0)
    send(bench, "1", "2", expiration=START_MS + 1000)
    sink.session.close(has_failed=False)
    bench.loop.run_turns()
    assert queue.message_count == 2
    return queue


@pytest.mark.parametrize("how", EMPTIES)
def test_an_auto_created_queue_goes_once_it_is_empty(bench, kept, how):
    EMPTIES[how](bench, kept)
    bench.loop.run_turns()

    assert "q" not in bench.addresses.queues


def test_an_auto_created_queue_goes_when_what_was_taken_is_committed(bench):
    bench.queue(is_auto_created=True)
    send(bench, "1")
    session = bench.transacted()
    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[0], done)
    session.close_consumer(0)
    assert "q" in bench.addresses.queues

    session.commit(done)
    bench.loop.run_turns()

    assert "q" not in bench.addresses.queues


@pytest.mark.parametrize(
    "attributes",
    [{"is_auto_created": False}, {"is_auto_created": True, "auto_delete_delay": 60_000}],
)
def test_another_queue_stays_when_it_is_empty(bench, attributes):
    queue = bench.queue(**attributes)
    sink = bench.consume(credits=0)
    send(bench, "1")
    sink.session.close(has_failed=False)

    queue.remove_all()
    bench.loop.run_turns()

    assert "q" in bench.addresses.queues


def test_a_queue_that_was_never_consumed_from_stays(bench):
    queue = bench.queue(is_auto_created=True)
    send(bench, "1")

    queue.remove_all()
    bench.loop.run_turns()

    assert "q" in bench.addresses.queues


# --- createQueue --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_of", "code", "text"),
    [
        ({"name": "q", "address": "other"}, 101, "AMQ229019: Queue q already exists on address q"),
        ({"name": "", "address": "q"}, 104, "AMQ229216: Invalid queue name: "),
        ({"name": "x", "address": "no"}, 106, "AMQ229203: Address Does Not Exist: no"),
        (
            {"name": "x", "address": "q", "routing_type": RoutingType.MULTICAST},
            0,
            (
                "AMQ229207: Can not create queue with routing type: MULTICAST, Supported routing "
                "types for address: q are [ANYCAST]"
            ),
        ),
        ({"name": "x", "address": "q", "group_buckets": -2}, 0, None),
        ({"name": "x", "address": "q", "filter": "a = = 1"}, 103, None),
    ],
)
def test_a_queue_that_cannot_be_is_refused_with_the_code_of_artemis(bench, request_of, code, text):
    bench.queue()
    bench.set(auto_create_addresses=False)
    request = QueueRequest(**{"routing_type": RoutingType.ANYCAST, **request_of})

    with pytest.raises(BrokerError) as refused:
        bench.session().administration.create_queue(request)

    assert refused.value.code == code
    assert text is None or refused.value.text == text

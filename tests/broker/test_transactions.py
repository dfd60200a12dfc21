"""Local and XA transactions, duplicate ids, routing: without storage."""

import struct

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.routing.postoffice import Routing
from broker.security.allow_all import AllowAll
from broker.settings.policies import AddressFullPolicy
from broker.transactions.xa import XaCode, XaError
from tests.broker.bench import Answers, Bench, done, message, one_becomes_durable

XID = Xid(7, b"branch", b"global")
OTHER_XID = Xid(7, b"other", b"global")


@pytest.fixture
def bench():
    made = Bench()
    made.queue()
    return made


def bodies(bench, queue="q"):
    return [bytes(one.message.body).decode() for one in bench.addresses.queues[queue].references()]


# --- local --------------------------------------------------------------------------------------


def test_sends_are_seen_after_the_commit(bench):
    session = bench.transacted()
    session.send(message("1"), done)
    assert bodies(bench) == []

    session.commit(done)

    assert bodies(bench) == ["1"]


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_an_unused_queue_stays_while_a_transaction_has_sent_to_it(ends):
    bench = Bench()
    bench.queue(is_auto_created=True)
    session = bench.transacted()
    session.send(message("1"), done)

    bench.consume().session.close(has_failed=False)
    bench.loop.run_turns()
    stayed = "q" in bench.addresses.queues
    getattr(session, ends)(done)
    bench.consume().session.close(has_failed=False)

    assert stayed
    assert bench.addresses.queues["q"].message_count == 1 if ends == "commit" else True
    assert ("q" in bench.addresses.queues) == (ends == "commit")


def test_a_rollback_leaves_nothing(bench):
    session = bench.transacted()
    session.send(message("1"), done)

    session.rollback(done)
    session.commit(done)

    assert bodies(bench) == []
    assert bench.addresses.memory.count == 0


def test_a_rollback_gives_back_in_order_and_counts_what_was_acknowledged(bench):
    bench.session().send(message("1"), done)
    bench.session().send(message("2"), done)
    bench.session().send(message("3"), done)
    session = bench.transacted()
    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[1], done)

    session.rollback(done)

    assert sink.bodies == ["1", "2", "3", "1", "2", "3"]
    assert sink.counts[3:] == [2, 2, 1]


def test_memory_is_free_again_when_all_is_acknowledged(bench):
    session = bench.transacted()
    session.send(message("1"), done)
    session.commit(done)
    assert bench.addresses.memory.count == 1

    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[0], done)
    session.commit(done)

    assert (bench.addresses.memory.count, bench.addresses.memory.size) == (0, 0)


def test_a_refused_send_makes_the_commit_fail(bench):
    bench.set(auto_create_addresses=False)
    session = bench.transacted()
    session.send(message("fine"), done)
    refused = message("lost", address="nowhere", _AMQ_ROUTING_TYPE="x")
    refused.routing_type = RoutingType.ANYCAST
    with pytest.raises(BrokerError):
        session.send(refused, done)

    with pytest.raises(BrokerError) as failed:
        session.commit(done)

    assert failed.value.code is ErrorCode.ADDRESS_DOES_NOT_EXIST
    assert bodies(bench) == []


def test_closing_a_session_rolls_back(bench):
    session = bench.transacted()
    session.send(message("1"), done)

    session.close(has_failed=False)

    assert bodies(bench) == []


# --- duplicate ids ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["an id", b"\x00\x01"])
def test_the_second_message_with_an_id_is_dropped(bench, value):
    session = bench.session()

    first = session.send(message("1", _AMQ_DUPL_ID=value), done)
    second = session.send(message("2", _AMQ_DUPL_ID=value), done)

    assert (first, second) == (Routing.ROUTED, Routing.DUPLICATE)
    assert bodies(bench) == ["1"]
    assert bench.counters.duplicates == 1


def test_who_sends_it_again_is_told_when_the_first_is_durable(bench):
    store = bench.storage.completions.messages
    told = Answers()
    # To an address that is found at once: otherwise it waits for what is made for it.
    bench.session().send(message("1", _AMQ_DUPL_ID="a", _AMQ_ROUTING_TYPE=1), done)
    store.appended += 1

    bench.session().send(message("2", _AMQ_DUPL_ID="a", _AMQ_ROUTING_TYPE=1), told)

    assert told.count == 0
    one_becomes_durable(bench.storage.completions)
    assert told.errors == [None]


def test_a_string_counts_as_its_utf_16(bench):
    session = bench.session()
    session.send(message("1", _AMQ_DUPL_ID="a"), done)

    assert session.send(message("2", _AMQ_DUPL_ID=b"a\x00"), done) is Routing.DUPLICATE


def test_each_address_has_its_own_ids(bench):
    bench.queue("other")
    session = bench.session()
    session.send(message("1", _AMQ_DUPL_ID="a"), done)
    session.send(message("2", "other", _AMQ_DUPL_ID="a"), done)

    assert bodies(bench) == ["1"]
    assert bodies(bench, "other") == ["2"]


def test_the_circle_forgets_the_oldest():
    bench = Bench()
    bench.set(id_cache_size=2)
    bench.queue()
    session = bench.session()
    for value in "abc":
        session.send(message(value, _AMQ_DUPL_ID=value), done)

    assert session.send(message("b", _AMQ_DUPL_ID="b"), done) is Routing.DUPLICATE
    assert session.send(message("a", _AMQ_DUPL_ID="a"), done) is Routing.ROUTED
    assert session.send(message("c", _AMQ_DUPL_ID="c"), done) is Routing.DUPLICATE
    assert session.send(message("b", _AMQ_DUPL_ID="b"), done) is Routing.ROUTED


def test_a_circle_of_none_remembers_none():
    bench = Bench(id_cache_size=0)
    bench.queue()
    session = bench.session()
    for _ in range(2):
        session.send(message("m", _AMQ_DUPL_ID="a"), done)

    assert bodies(bench) == ["m", "m"]


def test_a_duplicate_drops_the_whole_transaction(bench):
    bench.session().send(message("1", _AMQ_DUPL_ID="a"), done)
    session = bench.transacted()
    session.send(message("innocent"), done)
    session.send(message("again", _AMQ_DUPL_ID="a"), done)

    with pytest.raises(BrokerError) as refused:
        session.commit(done)

    assert refused.value.code is ErrorCode.DUPLICATE_ID_REJECTED
    assert bodies(bench) == ["1"]


def test_one_id_may_stand_for_all_messages_of_a_transaction(bench):
    session = bench.transacted()
    for body in "12":
        session.send(message(body, _AMQ_DUPL_ID="a"), done)
    session.commit(done)
    assert bodies(bench) == ["1", "2"]

    session.send(message("3", _AMQ_DUPL_ID="a"), done)
    with pytest.raises(BrokerError):
        session.commit(done)


def test_of_two_open_transactions_with_one_id_the_first_to_commit_has_it(bench):
    first, second = bench.transacted(), bench.transacted()
    first.send(message("1", _AMQ_DUPL_ID="a"), done)
    second.send(message("2", _AMQ_DUPL_ID="a"), done)
    second.commit(done)

    with pytest.raises(BrokerError) as refused:
        first.commit(done)

    assert refused.value.code is ErrorCode.DUPLICATE_ID_REJECTED
    assert bodies(bench) == ["2"]


def test_an_id_of_a_rolled_back_transaction_may_be_used(bench):
    session = bench.transacted()
    session.send(message("1", _AMQ_DUPL_ID="a"), done)
    session.rollback(done)

    session.send(message("2", _AMQ_DUPL_ID="a"), done)
    session.commit(done)

    assert bodies(bench) == ["2"]


def test_a_bridge_s_id_counts_instead_and_is_removed(bench):
    session = bench.session()
    session.send(message("1", _AMQ_BRIDGE_DUP=b"node and id"), done)
    again = session.send(message("2", _AMQ_BRIDGE_DUP=b"node and id"), done)

    assert again is Routing.DUPLICATE
    assert bench.consume().got[0].get("_AMQ_BRIDGE_DUP") is None


def test_behind_a_bridge_the_sender_s_id_does_not_count(bench):
    session = bench.session()
    session.send(message("1", _AMQ_BRIDGE_DUP=b"1", _AMQ_DUPL_ID="a"), done)
    session.send(message("2", _AMQ_BRIDGE_DUP=b"2", _AMQ_DUPL_ID="a"), done)
    session.send(message("3", _AMQ_DUPL_ID="a"), done)

    assert bodies(bench) == ["1", "2", "3"]


# --- XA -----------------------------------------------------------------------------------------


def test_two_phases(bench):
    session = bench.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
    session.xa.start(XID)
    session.send(message("1"), done)
    session.xa.end(XID, has_failed=False)
    session.xa.prepare(XID, done)
    assert bodies(bench) == []
    assert session.xa.in_doubt() == (XID,)

    bench.session().xa.commit(XID, False, done)

    assert bodies(bench) == ["1"]
    assert session.xa.in_doubt() == ()


def test_a_prepared_transaction_outlives_its_session(bench):
    session = bench.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
    session.xa.start(XID)
    session.send(message("1"), done)
    session.xa.end(XID, has_failed=False)
    session.xa.prepare(XID, done)
    session.close(has_failed=True)

    bench.session().xa.rollback(XID, done)

    assert bodies(bench) == []


def branch_with_work(bench, *, is_ended):
    """A session whose branch acknowledges a message and sends one."""
    bench.session().send(message("1"), done)
    session = xa_session(bench)
    session.xa.start(XID)
    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[0], done)
    session.send(message("2"), done)
    if is_ended:
        session.xa.end(XID, has_failed=False)
    return session


@pytest.mark.parametrize("is_ended", [False, True])
def test_a_branch_that_is_not_prepared_ends_with_a_broken_connection(bench, is_ended):
    """As in Artemis: it would hold the message until its timeout."""
    session = branch_with_work(bench, is_ended=is_ended)

    session.close(has_failed=True)

    assert bench.consume().bodies == ["1"]
    assert len(bench.transactions) == 0


@pytest.mark.parametrize("is_ended", [False, True])
def test_a_branch_outlives_a_session_that_is_closed_in_order(bench, is_ended):
    session = branch_with_work(bench, is_ended=is_ended)

    session.close(has_failed=False)
    other = xa_session(bench)
    other.xa.prepare(XID, done)
    other.xa.commit(XID, False, done)

    assert bench.consume().bodies == ["2"]


def test_a_rollback_of_an_unknown_branch_gives_back_what_was_delivered(bench):
    """As in Artemis: its client has forgotten that, whatever the answer is."""
    bench.session().send(message("1"), done)
    session = xa_session(bench)
    sink = bench.consume(session=session)

    with pytest.raises(XaError):
        session.xa.rollback(XID, done)

    assert sink.bodies == ["1", "1"]
    assert sink.counts == [1, 1]


def test_a_branch_that_another_session_has_decided_is_left_alone(bench):
    session = branch_with_work(bench, is_ended=True)
    bench.session().xa.commit(XID, True, done)

    session.close(has_failed=True)

    assert bench.consume().bodies == ["2"]


@pytest.mark.parametrize("asks", ["commit", "rollback", "in_doubt"])
def test_a_manager_hears_that_a_branch_is_gone_once_its_end_is_durable(bench, asks):
    """Or it forgets its decision, and the broker that restarts has the branch prepared again."""
    store = bench.storage.completions.messages
    branch_with_work(bench, is_ended=True).xa.prepare(XID, done)
    bench.session().xa.commit(XID, False, done)
    store.appended += 1
    asking, told = bench.session(), Answers()

    if asks == "in_doubt":
        assert asking.xa.in_doubt() == ()
    elif asks == "rollback":
        with pytest.raises(XaError):
            asking.xa.rollback(XID, done)
    else:
        with pytest.raises(XaError):
            asking.xa.commit(XID, False, done)
    asking.context.after(told)

    assert told.count == 0
    one_becomes_durable(bench.storage.completions)
    assert told.errors == [None]


def test_what_a_prepared_one_took_is_seen_again_once_its_rollback_is_durable(bench):
    bench.session().send(message("1"), done)
    session = xa_session(bench)
    session.xa.start(XID)
    session.acknowledge(0, bench.consume(session=session).ids[0], done)
    session.xa.end(XID, has_failed=False)
    session.xa.prepare(XID, done)
    session.close(has_failed=True)
    answers = Answers()
    stored = bench.storage.completions.messages

    # As long as the next record is on its way.
    stored.appended += 1
    bench.session().xa.rollback(XID, answers)
    sink = bench.consume()
    assert (sink.bodies, answers.count) == ([], 0)
    one_becomes_durable(bench.storage.completions)

    assert (sink.bodies, answers.count) == (["1"], 1)


def xa_session(bench):
    return bench.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)


def test_an_xa_session_without_a_branch_counts_at_once(bench):
    session = xa_session(bench)
    session.send(message("1"), done)
    session.send(message("2"), done)
    assert bodies(bench) == ["1", "2"]

    sink = bench.consume(session=session)
    session.acknowledge(0, sink.ids[0], done)
    session.acknowledge(0, sink.ids[1], done, is_individual=True)
    session.close(has_failed=False)

    assert bodies(bench) == []
    assert bench.addresses.memory.count == 0


@pytest.mark.parametrize(
    "calls",
    [
        lambda one: one.commit(done),
        lambda one: one.rollback(done),
        lambda one: (one.xa.start(XID), one.xa.end(XID, has_failed=False)),
        lambda one: (one.xa.start(XID), one.xa.suspend()),
    ],
    ids=["commit", "rollback", "end", "suspend"],
)
def test_an_xa_session_counts_at_once_behind_a_branch(bench, calls):
    session = xa_session(bench)
    calls(session)

    session.send(message("1"), done)

    assert bodies(bench) == ["1"]


@pytest.mark.parametrize(
    ("calls", "code"),
    [
        (lambda one: one.xa.commit(XID, False, done), XaCode.NO_SUCH_XID),
        (lambda one: (one.xa.start(XID), one.xa.start(XID)), XaCode.PROTOCOL),
        (lambda one: (one.xa.start(XID), one.xa.prepare(XID, done)), XaCode.PROTOCOL),
        (
            lambda one: (
                one.xa.start(XID),
                one.xa.end(XID, has_failed=False),
                one.xa.commit(XID, False, done),
            ),
            XaCode.PROTOCOL,
        ),
        (
            lambda one: (
                one.xa.start(XID),
                one.xa.end(XID, has_failed=False),
                one.xa.start(XID),
            ),
            XaCode.DUPLICATE_XID,
        ),
        (lambda one: (one.xa.start(XID), one.xa.suspend(), one.xa.join(XID)), XaCode.PROTOCOL),
        (lambda one: one.xa.suspend(), XaCode.PROTOCOL),
        (lambda one: one.xa.forget(XID, done), XaCode.NO_SUCH_XID),
    ],
)
def test_xa_requests_out_of_turn_are_refused(bench, calls, code):
    with pytest.raises(XaError) as refused:
        calls(xa_session(bench))

    assert refused.value.code is code


def test_a_branch_ended_as_failed_can_only_be_rolled_back(bench):
    session = xa_session(bench)
    session.xa.start(XID)
    session.send(message("1"), done)
    session.xa.end(XID, has_failed=True)

    with pytest.raises(XaError):
        session.xa.prepare(XID, done)

    assert bodies(bench) == []


def test_suspended_work_goes_on(bench):
    session = xa_session(bench)
    session.xa.start(XID)
    session.send(message("1"), done)
    session.xa.suspend()
    session.xa.resume(XID)
    session.send(message("2"), done)
    session.xa.end(XID, has_failed=False)
    session.xa.commit(XID, True, done)

    assert bodies(bench) == ["1", "2"]


def test_what_takes_too_long_is_rolled_back(bench):
    session = xa_session(bench)
    session.xa.start(XID)
    session.send(message("1"), done)
    session.xa.end(XID, has_failed=False)
    bench.loop.pass_time(301)

    assert bench.transactions.reap(session.context) == 1
    assert bodies(bench) == []


def test_a_step_of_the_wall_clock_ends_no_transaction(bench):
    session = xa_session(bench)
    session.xa.start(XID)
    session.send(message("1"), done)
    now_ms = bench.clock_ms
    bench.clock_ms = lambda: now_ms() + 3_600_000

    assert bench.transactions.reap(session.context) == 0
    session.xa.end(XID, has_failed=False)
    session.xa.commit(XID, True, done)
    assert bodies(bench) == ["1"]


def test_what_takes_too_long_while_somebody_works_for_it_ends_as_late(bench):
    session = xa_session(bench)
    session.xa.start(XID)
    session.send(message("1"), done)
    bench.loop.pass_time(301)
    assert bench.transactions.reap(session.context) == 1

    with pytest.raises(BrokerError):
        session.send(message("2"), done)
    with pytest.raises(XaError) as told:
        session.xa.end(XID, has_failed=False)

    assert told.value.code is XaCode.ROLLED_BACK_FOR_TIME
    assert bodies(bench) == []


def test_a_session_s_time_for_transactions_is_its_own(bench):
    short, other = xa_session(bench), xa_session(bench)
    for session, xid in ((short, XID), (other, OTHER_XID)):
        session.xa.start(xid)
    short.xa.set_timeout(10)
    bench.loop.pass_time(11)

    assert bench.transactions.reap(short.context) == 1
    assert (short.tx.is_late, other.tx.is_late) == (True, False)
    # What is begun later takes the same time, and with 0 the configured one again.
    assert (short.xa.timeout_seconds, short.tx.timeout_ms) == (300, 10_000)
    other.xa.set_timeout(5)
    other.xa.set_timeout(0)
    bench.loop.pass_time(288)
    assert bench.transactions.reap(other.context) == 0
    bench.loop.pass_time(2)
    assert bench.transactions.reap(other.context) == 1


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_operator_s_decision_is_remembered_until_it_is_forgotten(bench, is_commit):
    session = xa_session(bench)
    session.xa.start(XID)
    session.send(message("1"), done)
    session.xa.end(XID, has_failed=False)
    session.xa.prepare(XID, done)

    bench.transactions.end_heuristically(XID, session.context, done, is_commit=is_commit)

    assert bodies(bench) == (["1"] if is_commit else [])
    with pytest.raises(XaError) as told:
        session.xa.commit(XID, False, done)
    assert told.value.code is (XaCode.HEURISTIC_COMMIT if is_commit else XaCode.HEURISTIC_ROLLBACK)
    session.xa.forget(XID, done)
    assert session.xa.in_doubt() == ()


# --- routing ------------------------------------------------------------------------------------


def test_anycast_takes_turns_and_multicast_copies():
    bench = Bench()
    for name in ("a1", "a2"):
        bench.queue(name, "place")
    for name in ("m1", "m2"):
        bench.queue(name, "place", routing_type=RoutingType.MULTICAST)
    session = bench.session()
    for body in "12":
        session.send(message(body, "place"), done)

    assert bodies(bench, "a1") + bodies(bench, "a2") == ["1", "2"]
    assert bodies(bench, "m1") == bodies(bench, "m2") == ["1", "2"]


def test_patterns_take_part():
    bench = Bench()
    bench.queue("all", "news.#", routing_type=RoutingType.MULTICAST)
    bench.queue("one", "news.eu", routing_type=RoutingType.MULTICAST)
    session = bench.session()
    session.send(message("1", "news.eu"), done)
    bench.queue("late", "news.*", routing_type=RoutingType.MULTICAST)
    session.send(message("2", "news.eu"), done)

    assert bodies(bench, "all") == bodies(bench, "one") == ["1", "2"]
    assert bodies(bench, "late") == ["2"]


def test_a_qualified_name_goes_to_that_queue_alone():
    bench = Bench()
    for name in ("a", "b"):
        bench.queue(name, "place", routing_type=RoutingType.MULTICAST)
    bench.session().send(message("1", "place::b"), done)

    assert bodies(bench, "a") == []
    assert bodies(bench, "b") == ["1"]


def test_unroutable_messages_are_counted(bench):
    bench.addresses.create("empty", [RoutingType.MULTICAST])

    assert bench.session().send(message("1", "empty"), done) is Routing.NO_BINDINGS
    assert bench.counters.unrouted == 1


def test_unroutable_messages_may_go_to_the_dead_letter_address():
    bench = Bench()
    bench.set(send_to_dla_on_no_route=True, dead_letter_address="dead")
    bench.queue("dead")
    bench.addresses.create("empty", [RoutingType.MULTICAST])

    result = bench.session().send(message("1", "empty"), done)

    assert result is Routing.NO_BINDINGS_DLA
    assert bench.consume("dead").got[0].get("_AMQ_ORIG_ADDRESS") == "empty"


def test_an_unknown_address_is_made_with_its_queue():
    bench = Bench()
    sent = message("1", "new")
    sent.routing_type = RoutingType.ANYCAST

    bench.session().send(sent, done)

    assert bodies(bench, "new") == ["1"]
    assert bench.addresses.by_name["new"].is_auto_created


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_diverts(bench, is_exclusive):
    bench.queue("copy")
    bench.divert("q", "copy", is_exclusive=is_exclusive, filter="kind = 'x'")
    session = bench.session()
    session.send(message("1", kind="x"), done)
    session.send(message("2", kind="y"), done)

    assert bodies(bench, "copy") == ["1"]
    assert bodies(bench) == (["2"] if is_exclusive else ["1", "2"])


def test_full_addresses_fail_or_drop_or_hold_back_credits():
    bench = Bench()
    bench.set("fail", address_full_policy=AddressFullPolicy.FAIL, max_size_messages=1)
    bench.set("drop", address_full_policy=AddressFullPolicy.DROP, max_size_messages=1)
    bench.set("block", address_full_policy=AddressFullPolicy.BLOCK, max_size_messages=1)
    granted = []
    session = bench.session()
    for name in ("fail", "drop", "block"):
        bench.queue(name)
        session.send(message("1", name), done)

    with pytest.raises(BrokerError) as refused:
        session.send(message("2", "fail"), done)
    assert refused.value.code is ErrorCode.ADDRESS_FULL
    session.send(message("2", "drop"), done)
    assert bodies(bench, "drop") == ["1"]
    session.request_credits("fail", lambda failing: granted.append(("fail", failing)))
    session.request_credits("block", lambda failing: granted.append(("block", failing)))
    assert granted == [("fail", True)]

    sink = bench.consume("block")
    sink.session.acknowledge(0, sink.ids[0], done)

    assert granted == [("fail", True), ("block", False)]


# --- queues named by their ids ------------------------------------------------------------------


def ids_of(*queue_ids):
    return struct.pack(f">{len(queue_ids)}q", *queue_ids)


def test_a_message_goes_to_the_queues_that_it_names(bench):
    second = bench.queue("second", "q")

    for _ in range(2):
        bench.session().send(message("1", _AMQ_ROUTE_TO=ids_of(second.queue_id)), done)

    assert (bodies(bench), bodies(bench, "second")) == ([], ["1", "1"])


def test_a_message_that_names_no_queue_of_ours_is_routed_by_its_address(bench, caplog):
    routing = bench.session().send(message("1", _AMQ_ROUTE_TO=ids_of(12345)), done)

    assert (routing, bodies(bench)) == (Routing.ROUTED, ["1"])
    assert "no queue has id 12345" in caplog.text
    assert bench.consume().got[0].get("_AMQ_ROUTE_TO") is None


def test_an_id_without_a_queue_is_logged_and_the_others_count(bench, caplog):
    second = bench.queue("second", "q")

    bench.session().send(message("1", _AMQ_ROUTE_TO=ids_of(12345, second.queue_id)), done)

    assert (bodies(bench), bodies(bench, "second")) == ([], ["1"])
    assert "no queue has id 12345" in caplog.text


def test_a_message_names_no_queue_that_its_user_may_not_send_to(bench):
    other = bench.queue("other")
    bench.security = OnlyTo("q")

    with pytest.raises(BrokerError) as refused:
        bench.session().send(message("1", _AMQ_ROUTE_TO=ids_of(other.queue_id)), done)

    assert refused.value.code is ErrorCode.SECURITY_EXCEPTION
    assert bodies(bench, "other") == []


def test_nor_a_queue_of_another_broker_behind_one_that_has_scaled_down(bench):
    node = "1" * 36
    name = f"$.artemis.internal.sf.mesh.{node}"
    forwarding = bench.queue(name)
    ids = ids_of(7)
    bench.security = OnlyTo("q")
    headers = {"_AMQ_SCALEDOWN_TO": ids, "_QUIVER_SCALEDOWN_NODE": node}

    with pytest.raises(BrokerError) as refused:
        bench.session().send(message("1", **headers), done)
    assert refused.value.code is ErrorCode.SECURITY_EXCEPTION
    assert bodies(bench, name) == []

    bench.security = AllowAll()
    bench.session().send(message("1", **headers, **{f"_AMQ_ROUTE_TO{name}": ids_of(8)}), done)
    (sent,) = [one.message for one in forwarding.references()]
    assert sent.get(f"_AMQ_ROUTE_TO{name}") == ids


class OnlyTo(AllowAll):
    """Anyone may send to one address alone."""

    def __init__(self, address):
        self._address = address

    def check(self, user, permission, address, queue):
        if permission == "send" and address != self._address:
            raise BrokerError(ErrorCode.SECURITY_EXCEPTION, f"no sending to {address}")
        return super().check(user, permission, address, queue)

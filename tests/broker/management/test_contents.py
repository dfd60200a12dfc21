"""Operations on the messages of a queue: which they mean, and where they end."""

import pytest

from broker.management import contents
from broker.model.properties import PropertyType
from broker.model.routing_type import RoutingType
from tests.broker.bench import done, message
from tests.broker.management.managed import Failed, ManagedBench


@pytest.fixture
def bench():
    made = ManagedBench()
    made.set("#", dead_letter_address="DLQ", expiry_address="EXP")
    for name in ("q", "other", "DLQ", "EXP"):
        made.queue(name)
    return made


def fill(bench, *bodies, queue="q", **properties):
    session = bench.session()
    for body in bodies:
        session.send(message(body, address=queue, **properties), done)


def bodies(bench, queue):
    found = bench.addresses.queues[queue]
    return [bytes(one.message.body).decode() for one in found.references()]


@pytest.mark.parametrize("wrong", [None, 1.5, "1", True])
@pytest.mark.parametrize(
    ("operation", "others"),
    [
        ("removeMessage", ()),
        ("expireMessage", ()),
        ("sendMessageToDeadLetterAddress", ()),
        ("retryMessage", ()),
        ("moveMessage", ("other",)),
        ("copyMessage", ("other",)),
        ("changeMessagePriority", (9,)),
        ("deliverScheduledMessage", ()),
    ],
)
def test_what_is_no_message_id_means_no_message(bench, operation, others, wrong):
    fill(bench, "1", "2")
    fill(bench, "3", _AMQ_SCHED_DELIVERY=bench.now_ms + 60_000)

    match = "argument 1 of .* must not be null" if wrong is None else "AMQ229069"
    with pytest.raises(Failed, match=match):
        bench.call("queue.q", operation, wrong, *others)

    assert bodies(bench, "q") == ["1", "2", "3"]
    assert bench.get("queue.q", "scheduledCount") == 1
    assert bodies(bench, "other") == bodies(bench, "DLQ") == bodies(bench, "EXP") == []


def test_numbers_that_stand_for_no_whole_or_no_number_are_refused(bench):
    fill(bench, "1")
    (reference,) = bench.addresses.queues["q"].references()

    with pytest.raises(Failed, match=r"argument 2 of .* must not be null"):
        bench.call("queue.q", "changeMessagesPriority", "", None)
    with pytest.raises(Failed, match=r"\(string, number\) fits none of .*\(String, int\)"):
        bench.call("queue.q", "changeMessagesPriority", "", 1.5)
    assert bench.call("queue.q", "removeMessage", float(reference.message.message_id)) is True


@pytest.mark.parametrize(
    ("queue", "operation"),
    [
        ("DLQ", ("sendMessagesToDeadLetterAddress", "")),
        ("EXP", ("expireMessages", "")),
        ("q", ("retryMessages",)),
    ],
)
def test_an_operation_whose_target_is_its_own_queue_ends(bench, queue, operation):
    fill(bench, "1", "2", "3", queue=queue, _AMQ_ORIG_QUEUE="q", _AMQ_ORIG_ADDRESS="q")
    bench.request(f"queue.{queue}", operation[0], list(operation[1:]))
    bench.loop.run_turns(most=100)

    assert bench.result() == 3
    assert bodies(bench, queue) == ["1", "2", "3"]


def test_a_message_is_not_moved_onto_itself(bench):
    fill(bench, "1")
    (reference,) = bench.addresses.queues["q"].references()

    with pytest.raises(Failed, match="onto itself"):
        bench.call("queue.q", "moveMessage", reference.message.message_id, "q")
    with pytest.raises(Failed, match="onto itself"):
        bench.call("queue.q", "moveMessages", "", "q")

    assert bodies(bench, "q") == ["1"]


@pytest.mark.parametrize("operation", ["moveMessages", "copyMessage"])
def test_what_is_left_stays_when_the_target_goes(bench, monkeypatch, operation):
    monkeypatch.setattr(contents, "LOOK_COUNT", 1)
    fill(bench, "1", "2", "3", "4")
    last = list(bench.addresses.queues["q"].references())[-1].message.message_id
    first = "" if operation == "moveMessages" else last
    bench.request("queue.q", operation, [first, "other"])

    bench.addresses.delete_queue("other")

    with pytest.raises(Failed, match="AMQ229049: No queue found for other"):
        bench.result()
    # One was moved in the turn of the request.
    assert bodies(bench, "q") == ["1", "2", "3", "4"][operation == "moveMessages" :]
    assert bench.get("queue.q", "deliveringCount") == 0


def test_nothing_is_looked_at_behind_what_was_wanted(bench, monkeypatch):
    fill(bench, *(str(number) for number in range(20)))
    queue = bench.addresses.queues["q"]
    first = next(queue.references()).message.message_id
    looked = []
    by_id = contents.by_id

    def counted(message_id):
        wanted = by_id(message_id)
        return lambda one: looked.append(one) or wanted(one)

    monkeypatch.setattr("broker.management.queue_control.by_id", counted)

    assert bench.call("queue.q", "removeMessage", first) is True
    assert len(looked) == 1
    assert bench.call("queue.q", "moveMessages", 10, "", "other", False, 0) == 0
    assert bench.call("queue.q", "moveMessages", 10, "", "other", False, 2) == 2
    assert bodies(bench, "other") == ["1", "2"]


def test_no_message_is_listed_where_the_settings_say_none(bench):
    fill(bench, "1")
    bench.set("q", management_browse_page_size=0)

    assert bench.call("queue.q", "listMessages", "") == []
    assert len(bench.call("queue.q", "browse", 1, 1)) == 1


def test_a_retried_message_has_the_address_that_it_was_sent_to(bench):
    bench.queue("all", address="a.*", routing_type=RoutingType.MULTICAST)
    bench.addresses.create("a.b", [RoutingType.MULTICAST])
    fill(bench, "1", queue="a.b")
    (reference,) = bench.addresses.queues["all"].references()
    bench.call("queue.all", "sendMessageToDeadLetterAddress", reference.message.message_id)
    assert bodies(bench, "DLQ") == ["1"]

    assert bench.call("queue.DLQ", "retryMessages") == 1

    (back,) = bench.addresses.queues["all"].references()
    assert back.message.address == "a.b"


def test_what_came_from_no_queue_that_is_there_stays(bench):
    fill(bench, "1", queue="DLQ", _AMQ_ORIG_QUEUE="gone", _AMQ_ORIG_ADDRESS="q")
    session = bench.session()
    lost = message("2", address="DLQ", _AMQ_ORIG_ADDRESS="q")
    lost.set("_AMQ_ORIG_QUEUE", PropertyType.NULL, None)
    session.send(lost, done)

    assert bench.call("queue.DLQ", "retryMessages") == 0
    assert bodies(bench, "DLQ") == ["1", "2"]


def test_what_was_delivered_now_and_came_back_waits_for_its_new_time_alone(bench):
    bench.set("q", redelivery_delay_ms=5_000)
    fill(bench, "other", _AMQ_SCHED_DELIVERY=bench.now_ms + 1_000)
    fill(bench, "late", _AMQ_SCHED_DELIVERY=bench.now_ms + 3_600_000)
    queue = bench.addresses.queues["q"]
    late = list(queue.references())[-1].message.message_id
    session = bench.transacted()
    sink = bench.consume("q", session=session)

    bench.call("queue.q", "deliverScheduledMessage", late)
    assert sink.bodies == ["late"]
    # The application has it: what only lay in the client's buffer would come again at once.
    session.acknowledge(0, late, done)
    session.rollback(done)
    bench.loop.run_turns()
    assert bench.get("queue.q", "scheduledCount") == 2
    bench.loop.pass_time(6)

    assert sink.bodies == ["late", "other", "late"]
    assert bench.get("queue.q", "scheduledCount") == 0


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("listScheduledMessages", ()),
        ("listScheduledMessagesAsJSON", ()),
        ("deliverScheduledMessages", ("n > 0",)),
        ("removeMessages", ("_AMQ_SCHED_DELIVERY > 0",)),
        ("listDeliveringMessages", ()),
        ("listDeliveringMessagesAsJSON", ()),
        ("countDeliveringMessages", ("n > 0",)),
        ("countDeliveringMessages", ("n > 0", "n")),
        ("changeMessagesPriority", ("n > 0", 9)),
    ],
)
def test_others_are_let_in_while_there_is_much_to_do(bench, monkeypatch, operation, arguments):
    monkeypatch.setattr(contents, "LOOK_COUNT", 1)
    fill(bench, "1", "2", "3", n=1)
    sink = bench.consume("q", credits=1)
    sink.consumer.receive_credits(100)
    fill(bench, "4", "5", "6", n=1, _AMQ_SCHED_DELIVERY=bench.now_ms + 60_000)
    bench.request("queue.q", operation, list(arguments))
    turns = 0
    while not bench.answers.got:
        turns += 1
        bench.loop.run_turns(most=1, is_to_end=False)

    bench.result()
    # At least one for each but the last of three messages.
    assert turns > 1

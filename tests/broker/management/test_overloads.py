"""The long forms of createQueue, updateQueue and addAddressSettings, and a divert that changes."""

import json

import pytest

from tests.broker.bench import done, message
from tests.broker.management.managed import Failed, ManagedBench

ADD_HEADERS = "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer"


@pytest.fixture
def bench():
    return ManagedBench()


def queue(bench, name):
    return bench.addresses.queues[name].binding


SHORT = ("a", "ANYCAST", "q", "n = 1", True, 3, False, True, True, 4)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((*SHORT, False, None, False, 2, 50, True), {"ring_size": -1}),
        ((*SHORT, False, "", False, 2, 50, True, 7, 8, True), {"auto_delete_delay": 7}),
        (
            (*SHORT, "first", False, None, False, 2, 50, True, 7, 8, True),
            {"group_first_key": "first", "auto_delete_message_count": 8},
        ),
        (
            (*SHORT, None, False, None, False, 2, 50, False, 7, 8, True, 9),
            {"group_first_key": None, "ring_size": 9, "auto_delete": False},
        ),
    ],
    ids=lambda value: str(len(value)),
)
def test_a_queue_is_made_of_many_arguments(bench, arguments, expected):
    line = bench.call("broker", "createQueue", *arguments)

    assert line.startswith("Queue [name=q, address=a, routingType=ANYCAST, durable=true")
    made = queue(bench, "q")
    common = ("filter", "max_consumers", "exclusive", "group_rebalance", "group_buckets")
    assert [getattr(made, name) for name in common] == ["n = 1", 3, True, True, 4]
    assert (made.consumers_before_dispatch, made.delay_before_dispatch) == (2, 50)
    assert {name: getattr(made, name) for name in expected} == expected


def test_a_queue_s_attributes_change_that_are_not_null(bench):
    bench.call("broker", "createQueue", *SHORT, False, None, False, 2, 50, True)

    bench.call("broker", "updateQueue", "q", None, 5, None, False, "somebody")
    assert (queue(bench, "q").max_consumers, queue(bench, "q").exclusive) == (5, False)
    assert queue(bench, "q").user == "somebody"
    bench.call(
        *("broker", "updateQueue", "q", None, "n = 2", None, None, None, False, 6, True, None),
        *(None, "other"),
    )
    assert (queue(bench, "q").filter, queue(bench, "q").group_buckets) == ("n = 2", 6)
    assert (queue(bench, "q").non_destructive, queue(bench, "q").user) == (True, "other")
    bench.call(
        *("broker", "updateQueue", "q", None, None, None, None, None, None, None, "key", None),
        *(None, 70, None, 8),
    )
    found = queue(bench, "q")
    assert (found.group_first_key, found.delay_before_dispatch, found.ring_size) == ("key", 70, 8)
    assert (found.filter, found.max_consumers, found.user) == ("n = 2", 5, "other")


SETTINGS = (
    *("DLQ", "EXP", 1000, False, 3, 1_000_000, 1000, 5, 100, 1.5, 2000, -1, True),
    *("DROP", -1, 5, "KILL", False, False, False, False),
)


@pytest.mark.parametrize(
    "more",
    [
        (),
        (False, False, True, True),
        (
            *(False, False, True, True, "FORCE", "off", -1, None, False, False, False, -1, ""),
            *(-1, False, 0, -1, "ANYCAST", "multicast", 1024, -1, False, 0, 0, 0, 0.5, 0),
        ),
        (
            *(False, False, True, True, None, None, -1, None, False, False, False, -1, None),
            *(-1, False, 0, -1, None, None, 1024, -1, False, 0, 0, 0, 0, 0),
            *(True, "D.", ".d", True, "E.", ".e"),
        ),
        (
            *(False, False, True, True, None, None, -1, None, False, False, False, -1, None),
            *(-1, False, 0, -1, None, None, 1024, -1, False, 0, 0, 0, 0, 0),
            *(True, "D.", ".d", True, "E.", ".e", 5, 6, False),
        ),
    ],
    ids=len,
)
def test_address_settings_are_given_by_arguments(bench, more):
    bench.call("broker", "addAddressSettings", "a.#", *SETTINGS, *more)

    found = json.loads(bench.call("broker", "getAddressSettingsAsJSON", "a.b"))
    assert (found["deadLetterAddress"], found["maxDeliveryAttempts"]) == ("DLQ", 3)
    assert (found["addressFullMessagePolicy"], found["slowConsumerPolicy"]) == ("DROP", "KILL")
    assert (found["redeliveryMultiplier"], found["pageSizeBytes"]) == (1.5, 1000)
    assert found["autoCreateQueues"] is (not more)
    assert found["configDeleteQueues"] == ("FORCE" if "FORCE" in more else "OFF")
    assert found["deadLetterQueuePrefix"] == ("D." if "D." in more else "DLQ.")
    assert found["enableMetrics"] is (len(more) != 36)


def test_a_page_is_not_larger_than_what_its_address_may_take(bench):
    wrong = (*SETTINGS[:5], 1000, 2000, *SETTINGS[7:])

    with pytest.raises(Failed, match="pageSizeBytes 2000 is larger than maxSizeBytes 1000"):
        bench.call("broker", "addAddressSettings", "a.#", *wrong)


def bodies(bench, name):
    return [bytes(one.message.body).decode() for one in bench.addresses.queues[name].references()]


def test_a_divert_changes(bench):
    for name in ("q", "x", "y"):
        bench.queue(name)
    bench.call("broker", "createDivert", "d", None, "q", "x", False, "n = 1", None, {}, "STRIP")
    bench.call("broker", "createDivert", "e", None, "q", "z", True, "n = 9", None, "{}", "PASS")
    assert bench.get("divert.e", "routingType") == "PASS"
    session = bench.session()
    session.send(message("1", address="q", n=1), done)

    bench.call("broker", "updateDivert", "d", "y", "n = 2", None, None, "ANYCAST")
    for number in (1, 2):
        session.send(message(str(number), address="q", n=number), done)
    bench.loop.run_turns()

    assert (bodies(bench, "x"), bodies(bench, "y")) == (["1"], ["2"])
    assert bench.get("divert.d", "routingType") == "ANYCAST"
    bench.call("broker", "updateDivert", '{"name": "d", "forwarding-address": "x"}')
    assert [bench.get("divert.d", name) for name in ("filter", "forwardingAddress")] == [None, "x"]
    with pytest.raises(Failed, match="AMQ229231"):
        bench.call("broker", "updateDivert", "none", "y", None, None, None, "STRIP")
    with pytest.raises(Failed, match="no transformer is called"):
        bench.call("broker", "updateDivert", "d", "y", None, "a.Transformer", {}, "STRIP")


def test_a_divert_has_a_transformer(bench):
    for name in ("q", "x"):
        bench.queue(name)
    first = ("d", None, "q", "x", False, None)
    bench.call("broker", "createDivert", *first, ADD_HEADERS, '{"by": "d"}', "STRIP")
    session = bench.session()
    session.send(message("1", address="q"), done)
    bench.call("broker", "updateDivert", "d", None, None, ADD_HEADERS, {"by": "e"}, None)
    session.send(message("2", address="q"), done)
    bench.loop.run_turns()

    found = [one.message.get("by") for one in bench.addresses.queues["x"].references()]
    assert found == ["d", "e"]
    assert bench.get("divert.d", "transformerProperties") == {"by": "e"}
    configured = {"class-name": ADD_HEADERS, "properties": {"by": "f"}}
    text = json.dumps({"name": "d", "transformer-configuration": configured})
    bench.call("broker", "updateDivert", text)
    assert bench.get("divert.d", "transformerPropertiesAsJSON") == '{"by":"f"}'

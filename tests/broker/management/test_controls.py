"""What operators do to queues, addresses and the broker."""

import base64
import json

import pytest

from broker.model.routing_type import RoutingType
from broker.model.xid import Xid
from broker.notifications import Origin
from tests.broker.bench import Sink, done, message
from tests.broker.management.managed import Failed, ManagedBench
from tests.broker.remote_queue_binding import RemoteQueueBinding


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
        session.send(message(body, address=queue, n=int(body), **properties), done)


def bodies(bench, queue):
    found = bench.addresses.queues[queue]
    return [bytes(one.message.body).decode() for one in found.references()]


# --- contents of queues -------------------------------------------------------------------------


def test_messages_are_listed_and_counted_by_a_filter(bench):
    fill(bench, "1", "2", "3", kind="x")
    fill(bench, "4", kind="y")

    found = bench.call("queue.q", "listMessages", "n > 2")
    as_json = json.loads(bench.call("queue.q", "listMessagesAsJSON", None))

    assert [one["n"] for one in found] == [3, 4]
    assert [one["n"] for one in as_json] == [1, 2, 3, 4]
    assert (found[0]["address"], found[0]["durable"], found[0]["priority"]) == ("q", True, 4)
    assert bench.call("queue.q", "countMessages", "n > 2") == 2
    assert bench.call("queue.q", "countMessages", "") == 4
    assert json.loads(bench.call("queue.q", "countMessages", None, "kind")) == {"x": 3, "y": 1}
    assert json.loads(bench.call("queue.q", "peekFirstMessageAsJSON"))["n"] == 1
    assert json.loads(bench.call("queue.other", "peekFirstMessageAsJSON")) is None
    assert bench.call("queue.q", "getDurableMessageCount") == 4
    assert bench.call("queue.q", "getPersistentSize") > 4


def test_no_more_are_listed_than_the_settings_allow_and_long_values_are_cut(bench):
    bench.set("q", management_browse_page_size=2, management_message_attribute_size_limit=3)
    fill(bench, "1", "2", "3", text="abcdef")

    found = bench.call("queue.q", "listMessages", "")

    assert [one["n"] for one in found] == [1, 2]
    assert found[0]["text"] == "abc, + 3 more"


def test_messages_are_browsed_page_by_page(bench):
    fill(bench, *"12345")

    assert [one["n"] for one in bench.call("queue.q", "browse")] == [1, 2, 3, 4, 5]
    assert [one["n"] for one in bench.call("queue.q", "browse", "n > 3")] == [4, 5]
    assert [one["n"] for one in bench.call("queue.q", "browse", 2, 2)] == [3, 4]
    assert [one["n"] for one in bench.call("queue.q", "browse", 2, 2, "n > 2")] == [5]
    with pytest.raises(Failed, match="from 1"):
        bench.call("queue.q", "browse", 0, 2)
    assert bench.get("queue.q", "messageCount") == 5


def test_messages_are_removed_one_or_some_or_all(bench):
    fill(bench, *"123456")
    (first, *_) = bench.addresses.queues["q"].references()

    assert bench.call("queue.q", "removeMessage", first.message.message_id) is True
    assert bench.call("queue.q", "removeMessage", 999) is False
    assert bench.call("queue.q", "removeMessages", 100, "n > 4") == 2
    assert bodies(bench, "q") == ["2", "3", "4"]
    assert bench.call("queue.q", "removeAllMessages") == 3
    assert bench.get("queue.q", "messageCount") == 0


def test_messages_are_moved_and_come_back(bench):
    fill(bench, *"1234")

    assert bench.call("queue.q", "moveMessages", "n < 3", "other") == 2
    assert bench.call("queue.q", "moveMessages", 10, None, "other", False, 1) == 1
    assert (bodies(bench, "q"), bodies(bench, "other")) == (["4"], ["1", "2", "3"])
    (moved, *_) = bench.addresses.queues["other"].references()
    assert moved.message.get("_AMQ_ORIG_QUEUE") == "q"
    assert bench.call("queue.other", "retryMessage", moved.message.message_id) is True
    assert bench.call("queue.other", "retryMessages") == 2
    assert (bodies(bench, "q"), bodies(bench, "other")) == (["4", "1", "2", "3"], [])
    # What came from nowhere stays.
    assert bench.call("queue.q", "retryMessages", "n = 4") == 0


def test_a_message_that_the_target_has_seen_stays_if_so_wanted(bench):
    fill(bench, "1", queue="other", _AMQ_DUPL_ID="same")
    fill(bench, "2", _AMQ_DUPL_ID="same")
    (kept,) = bench.addresses.queues["q"].references()

    assert bench.call("queue.q", "moveMessages", None, "other", True) == 0
    assert bodies(bench, "q") == ["2"]
    assert bench.call("queue.q", "moveMessage", kept.message.message_id, "other", False) is True
    assert bodies(bench, "other") == ["1", "2"]


def test_messages_are_copied_killed_expired_and_put_elsewhere_in_line(bench):
    fill(bench, *"1234")
    ids = [one.message.message_id for one in bench.addresses.queues["q"].references()]

    assert bench.call("queue.q", "copyMessage", ids[0], "other") is True
    assert bench.call("queue.q", "sendMessageToDeadLetterAddress", ids[0]) is True
    assert bench.call("queue.q", "expireMessage", ids[1]) is True
    assert bench.call("queue.q", "changeMessagePriority", ids[3], 9) is True

    found = {name: bodies(bench, name) for name in ("q", "other", "DLQ", "EXP")}
    assert found == {"q": ["4", "3"], "other": ["1"], "DLQ": ["1"], "EXP": ["2"]}
    assert bench.call("queue.q", "changeMessagesPriority", "n = 4", 0) == 1
    assert bodies(bench, "q") == ["3", "4"]
    counts = [bench.get("queue.q", name) for name in ("messagesExpired", "messagesKilled")]
    assert counts == [1, 1]


def test_messages_that_are_not_due_are_seen_and_delivered_now(bench):
    fill(bench, "1", "2", _AMQ_SCHED_DELIVERY=bench.now_ms + 60_000)

    assert [one["n"] for one in bench.call("queue.q", "listScheduledMessages")] == [1, 2]
    bench.call("queue.q", "deliverScheduledMessages", "n = 2")
    assert bench.get("queue.q", "scheduledCount") == 1
    sink = bench.consume()
    assert sink.bodies == ["2"]
    assert bench.call("queue.q", "removeMessages", "n = 1") == 1
    assert bench.get("queue.q", "scheduledCount") == 0


def test_what_is_delivered_is_seen_by_consumer(bench):
    fill(bench, "1", "2")
    sink = bench.consume()

    assert sink.bodies == ["1", "2"]
    (found,) = bench.call("queue.q", "listDeliveringMessages").values()
    assert [one["n"] for one in found] == [1, 2]
    assert bench.call("queue.q", "countDeliveringMessages", "n = 1") == 1
    (consumer,) = json.loads(bench.call("queue.q", "listConsumersAsJSON"))
    assert (consumer["deliveringCount"], consumer["queueName"]) == (2, "q")


def test_a_message_is_sent_by_an_operator(bench):
    headers = {"colour": "red"}
    body = base64.b64encode(b"bytes").decode()

    number = bench.call("queue.q", "sendMessage", headers, 4, body, True, None, None)
    bench.call("address.other", "sendMessage", headers, 3, "text", False, None, None, True)

    (sent,) = bench.addresses.queues["q"].references()
    assert (str(sent.message.message_id), bytes(sent.message.body)) == (number, b"bytes")
    assert sent.message.get("colour") == "red"
    (text,) = bench.addresses.queues["other"].references()
    assert (text.message.durable, len(text.message.user_id)) == (False, 16)
    with pytest.raises(Failed, match="not valid Base64"):
        bench.call("queue.q", "sendMessage", None, 4, "&", True, None, None)


def test_headers_of_an_operator_are_texts_or_none(bench):
    headers = {"none": None, "yes": True, "no": False, "n": 7, "x": 1.5, "text": "1"}
    bench.call("queue.q", "sendMessage", headers, 3, None, False, None, None)

    (sent,) = bench.addresses.queues["q"].references()
    found = {name: sent.message.properties[name].value for name in headers}
    assert found == {
        "none": None,
        "yes": "true",
        "no": "false",
        "n": "7",
        "x": "1.5",
        "text": "1",
    }
    with pytest.raises(Failed, match="header h is not text"):
        bench.call("queue.q", "sendMessage", {"h": []}, 3, None, False, None, None)


# --- states -------------------------------------------------------------------------------------


def test_queues_are_paused_disabled_and_reset(bench):
    bench.call("queue.q", "pause", True)
    assert [bench.get("queue.q", "paused"), bench.get("queue.q", "persistedPause")] == [True, True]
    bench.call("queue.q", "resume")
    bench.call("queue.q", "disable")
    fill(bench, "1")
    assert bench.get("queue.q", "messageCount") == 0
    bench.call("queue.q", "enable")
    fill(bench, "2")
    assert bench.get("queue.q", "messagesAdded") == 1
    bench.call("queue.q", "resetMessagesAdded")
    assert bench.get("queue.q", "messagesAdded") == 0


def test_an_address_is_seen_paused_and_purged(bench):
    fill(bench, "1", "2", _AMQ_DUPL_ID=b"same")

    assert bench.get("address.q", "routingTypes") == ["ANYCAST"]
    assert bench.get("address.q", "queueNames") == ["q"]
    assert [bench.get("address.q", "messageCount"), bench.get("broker", "duplicateCount")] == [1, 1]
    assert bench.get("address.q", "currentDuplicateIdCacheSize") == 1
    assert bench.call("address.q", "clearDuplicateIdCache") is True
    fill(bench, "3", _AMQ_DUPL_ID=b"same")
    bench.call("address.q", "pause")
    assert bench.addresses.queues["q"].is_paused
    bench.call("address.q", "resume")
    assert bench.call("address.q", "purge") == 2


# --- the broker ---------------------------------------------------------------------------------


def test_addresses_are_made_changed_and_deleted(bench):
    line = bench.call("broker", "createAddress", "a", "ANYCAST,MULTICAST")
    assert line == "Address [name=a, routingTypes={MULTICAST,ANYCAST}, autoCreated=false]"
    with pytest.raises(Failed, match="AMQ229204"):
        bench.call("broker", "createAddress", "a", "ANYCAST")
    bench.call("broker", "updateAddress", "a", "ANYCAST")
    assert bench.get("address.a", "routingTypes") == ["ANYCAST"]
    bench.call("broker", "createQueue", "a", "aq", "ANYCAST")
    with pytest.raises(Failed, match="AMQ229205"):
        bench.call("broker", "deleteAddress", "a")
    bench.call("broker", "deleteAddress", "a", True)
    assert "aq" not in bench.addresses.queues


def test_an_address_with_diverts_is_deleted_by_force_alone(bench):
    bench.call("broker", "createAddress", "a", "ANYCAST")
    bench.call("broker", "createDivert", "d", None, "a", "other", True, None, None)

    with pytest.raises(Failed, match="AMQ229205"):
        bench.call("broker", "deleteAddress", "a")
    bench.call("broker", "deleteAddress", "a", True)

    assert bench.get("broker", "divertNames") == []


def test_an_auto_created_address_with_diverts_outlives_its_queue(bench):
    bench.addresses.create("a", [RoutingType.ANYCAST], is_auto_created=True)
    bench.queue("aq", "a")
    bench.call("broker", "createDivert", "d", None, "a", "other", True, None, None)

    bench.call("broker", "destroyQueue", "aq", False, True)

    assert bench.get("broker", "divertNames") == ["d"]


@pytest.mark.parametrize(
    ("wanted", "closed"),
    [
        ("10.0.0.1", ["10.0.0.1:5"]),
        ("/10.0.0.1", ["10.0.0.1:5"]),
        ("10.0.0.10:5", ["10.0.0.10:5"]),
        ("10.0.0", []),
        ("::1", ["::1:7"]),
    ],
)
def test_connections_of_one_host_are_closed(bench, wanted, closed):
    ended = []

    class Connection:
        def __init__(self, remote):
            self.origin = Origin(remote, remote, "here", "", "CORE", 1)

        def fail(self):
            ended.append(self.origin.remote)

    for remote in ("10.0.0.1:5", "10.0.0.10:5", "::1:7"):
        bench.connections[remote] = Connection(remote)

    assert bench.call("broker", "closeConnectionsForAddress", wanted) is bool(closed)
    assert ended == closed
    for blank in ("", " ", "/"):
        with pytest.raises(Failed, match="needed"):
            bench.call("broker", "closeConnectionsForAddress", blank)
    assert ended == closed


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["a", "n", "ANYCAST"], ("a", True, None, "ANYCAST")),
        (["a", "n", False], ("a", False, None, "MULTICAST")),
        (["a", "n", True, "ANYCAST"], ("a", True, None, "ANYCAST")),
        (["a", "n", "x = 1", True], ("a", True, "x = 1", "MULTICAST")),
        (["a", "n", "x = 1", False, "ANYCAST"], ("a", False, "x = 1", "ANYCAST")),
        (["a", "ANYCAST", "n", None, True, 3, True, True], ("a", True, None, "ANYCAST")),
        (['{"name":"n","address":"a","routing-type":"ANYCAST"}'], ("a", True, None, "ANYCAST")),
        (
            ['{"name":"n","durable":"false","filter-string":"x = 1"}', True],
            ("n", False, "x = 1", "MULTICAST"),
        ),
    ],
)
def test_queues_are_made_in_every_way(bench, arguments, found):
    bench.call("broker", "createQueue", *arguments)

    queue = bench.addresses.queues["n"]
    binding = queue.binding
    assert (binding.address, queue.is_durable, binding.filter, binding.routing_type.name) == found


def test_a_queue_is_changed_and_deleted(bench):
    made = json.loads(bench.call("broker", "createQueue", '{"name":"n","max-consumers":3}'))
    assert (made["max-consumers"], made["routing-type"]) == (3, "MULTICAST")
    with pytest.raises(Failed, match="AMQ229019"):
        bench.call("broker", "createQueue", '{"name":"n"}')
    assert json.loads(bench.call("broker", "createQueue", '{"name":"n"}', True)) == made
    changed = json.loads(bench.call("broker", "updateQueue", '{"name":"n","exclusive":true}'))
    assert (changed["exclusive"], changed["max-consumers"]) == (True, 3)
    bench.call("broker", "updateQueue", "n", None, 7, None)
    assert bench.get("queue.n", "maxConsumers") == 7
    sink = bench.consume("n")
    with pytest.raises(Failed, match="AMQ229025"):
        bench.call("broker", "destroyQueue", "n")
    bench.call("broker", "destroyQueue", "n", True, True)
    assert sink.closed == [0]
    assert "n" not in bench.addresses.queues
    assert "n" not in bench.addresses.by_name


def test_lists_are_filtered_sorted_and_cut_into_pages(bench):
    fill(bench, "1", "2")
    options = {
        "field": "messageCount",
        "operation": "LESS_THAN",
        "value": "2",
        "sortField": "name",
        "sortOrder": "desc",
    }

    found = json.loads(bench.call("broker", "listQueues", json.dumps(options), 1, 2))
    everything = json.loads(bench.call("broker", "listQueues", "", -1, -1))
    old_name = {"field": "ADDRESS", "operation": "EQUALS", "value": "q"}

    assert found["count"] == 4
    assert [row["name"] for row in found["data"]] == ["other", "answers"]
    assert everything["count"] == 5
    row = next(row for row in everything["data"] if row["name"] == "q")
    assert (row["messageCount"], row["durable"], row["filter"]) == ("2", "true", "")
    (one,) = json.loads(bench.call("broker", "listQueues", json.dumps(old_name), 1, 50))["data"]
    assert one["name"] == "q"
    for name in ("listAddresses", "listConsumers", "listConnections", "listSessions"):
        assert isinstance(json.loads(bench.call("broker", name, "", 1, 50))["count"], int)


def test_settings_hold_at_once(bench):
    taken = bench.call("broker", "addAddressSettings", "a.#", '{"maxDeliveryAttempts":3}')

    assert json.loads(taken) == {"maxDeliveryAttempts": 3}
    shown = json.loads(bench.call("broker", "getAddressSettingsAsJSON", "a.b"))
    assert (shown["maxDeliveryAttempts"], shown["deadLetterAddress"]) == (3, "DLQ")
    with pytest.raises(Failed, match="maxDeliveryAttempts"):
        bench.call("broker", "addAddressSettings", "a.#", '{"maxDeliveryAttempts":"x"}')
    bench.call("broker", "removeAddressSettings", "a.#")
    assert bench.settings.match("a.b").max_delivery_attempts == 10


def test_a_divert_is_made_seen_and_removed(bench):
    bench.call("broker", "createDivert", "d", None, "q", "other", True, "n > 1", None)
    fill(bench, "1", "2")

    assert (bodies(bench, "q"), bodies(bench, "other")) == (["1"], ["2"])
    assert bench.get("divert.d", "forwardingAddress") == "other"
    assert bench.get("broker", "divertNames") == ["d"]
    bench.call("broker", "destroyDivert", "d")
    fill(bench, "3")
    assert bodies(bench, "q") == ["1", "3"]
    with pytest.raises(Failed, match="Divert Does Not Exist"):
        bench.call("broker", "destroyDivert", "d")


@pytest.mark.parametrize("verb", ["commit", "rollback"])
def test_a_prepared_transaction_is_decided(bench, verb):
    xid = Xid(7, b"branch", b"global")
    session = bench.session(auto_commit_sends=False, auto_commit_acks=False, is_xa=True)
    session.xa.start(xid)
    session.send(message("1"), done)
    session.xa.end(xid, has_failed=False)
    session.xa.prepare(xid, done)
    (line,) = bench.call("broker", "listPreparedTransactions")
    name = line.partition("base64: ")[2].split()[0]
    (detail,) = json.loads(bench.call("broker", "listPreparedTransactionDetailsAsJSON"))

    assert (detail["xid_as_base64"], len(detail["tx_related_messages"])) == (name, 1)
    assert bench.call("broker", f"{verb}PreparedTransaction", name) is True
    assert bench.call("broker", f"{verb}PreparedTransaction", name) is False

    decided = "Committed" if verb == "commit" else "RolledBack"
    assert bench.call("broker", f"listHeuristic{decided}Transactions") == [name]
    assert bodies(bench, "q") == (["1"] if verb == "commit" else [])


def test_a_consumer_is_closed_and_its_client_told(bench):
    session = bench.session()
    sink = Sink()
    number = str(session.create_consumer(3, "q", sink).number)

    assert bench.call("broker", "closeConsumerWithID", session.name, number) is True
    assert bench.call("broker", "closeConsumerWithID", session.name, number) is False
    assert sink.closed == [3]
    assert bench.get("queue.q", "consumerCount") == 0


def test_wildcards_and_types_of_queues_are_told(bench):
    bench.queue("m", routing_type=RoutingType.MULTICAST)

    assert bench.call("broker", "getQueueNames", "multicast") == ["m"]
    assert "name=q" in bench.call("broker", "listBindingsForAddress", "q")
    assert bench.call("broker", "listAddresses", ",").split(",")[0] == "answers"


def test_all_that_is_bound_to_an_address_is_listed(bench):
    bench.divert("q", "other")
    outgoing = bench.addresses.queues["other"]
    bench.addresses.bind(RemoteQueueBinding("there", "q", outgoing, distance=2))

    assert bench.get("address.q", "queueNames") == ["q"]
    assert bench.get("address.q", "remoteQueueNames") == ["there@2"]
    assert bench.get("address.q", "allQueueNames") == ["q", "there@2"]
    assert bench.get("address.q", "queueCount") == 1
    # By type, whatever came first.
    assert bench.get("address.q", "bindingNames") == ["q", "there@2", "q to other"]
    assert bench.call("broker", "listBindingsForAddress", "q") == (
        "Queue [name=q, address=q],RemoteQueueBinding [name=there@2, address=q],"
        "Divert [name=q to other]"
    )


def test_a_broker_whose_disk_is_full_can_be_managed(bench):
    bench.postoffice.addresses.memory.set_disk_full(is_full=True)
    granted = []

    bench.session().request_credits(bench.management.address, granted.append)

    assert granted == [False]


def test_producers_wait_while_an_address_is_blocked(bench):
    granted = []
    session = bench.session()
    assert bench.call("address.q", "block") is True
    assert bench.call("address.q", "block") is False

    session.request_credits("q", granted.append)
    bench.loop.run_turns()
    assert granted == []
    bench.call("address.q", "unblock")

    assert granted == [False]


def test_a_broker_without_a_cluster_has_no_topology(bench):
    assert bench.call("broker", "listNetworkTopology") == "[]"

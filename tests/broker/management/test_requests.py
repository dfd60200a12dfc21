"""Requests by message: found, converted, permitted, answered."""

import contextlib
import json
import os

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.message import Message
from broker.model.properties import PropertyType
from broker.options import BrokerOptions, ManagementOptions
from broker.storage.large_files import LargeFiles
from tests.broker.bench import done, message
from tests.broker.management.managed import ANSWERS, Failed, ManagedBench, text_body


@pytest.fixture
def bench():
    return ManagedBench()


def test_an_attribute_is_a_getter_by_either_name(bench):
    bench.queue("q")

    assert bench.get("queue.q", "messageCount") == 0
    assert bench.get("queue.q", "Paused") is False
    assert bench.call("queue.q", "getMessageCount") == 0
    assert bench.get("broker", "queueNames") == [ANSWERS, "q"]


@pytest.mark.parametrize(
    ("resource", "operation", "arguments", "says"),
    [
        ("queue.none", "pause", [], "AMQ229067: Cannot find resource with name queue.none"),
        ("address.none", "pause", [], "AMQ229067"),
        ("divert.none", "getAddress", [], "AMQ229067"),
        ("bridge.none", "stop", [], "AMQ229067"),
        ("queue.q", "fly", [], "AMQ229069: no operation fly/0"),
        ("queue.q", "pause", ["yes"], "AMQ229069: no operation pause/1"),
        ("queue.q", "removeMessage", [2**63], "AMQ229069"),
        ("queue.q", "moveMessages", [None, "none"], "AMQ229049: No queue found for none"),
        ("queue.q", "moveMessages", [None, "q"], "Cannot move messages onto itself"),
        ("queue.q", "listMessages", ["no = = filter"], "AMQ229020"),
        ("queue.q", "changeMessagesPriority", [None, 10], "AMQ229048"),
        ("broker", "destroyQueue", ["none"], "AMQ229017"),
        ("broker", "createQueue", ["{"], "not valid JSON"),
        ("broker", "createQueue", ['{"address":"a"}'], "AMQ229229"),
        ("broker", "createQueue", ["a", "q", "SIDEWAYS"], "no routing type SIDEWAYS"),
        ("broker", "listQueues", ['{"field":"name","operation":"LIKE"}', 1, 1], "no operation"),
    ],
)
def test_what_cannot_be_done_is_answered_with_why(bench, resource, operation, arguments, says):
    bench.queue("q")

    with pytest.raises(Failed) as told:
        bench.call(resource, operation, *arguments)

    assert says in str(told.value)


def test_no_such_attribute_and_no_json(bench):
    with pytest.raises(Failed, match="AMQ229068: no getter method for weight"):
        bench.get("broker", "weight")
    for body in (text_body("{no json"), text_body("{}"), b"\x01\x00"):
        request = bench.request("broker", "listAddresses", JMSReplyTo=None)
        request.body = body
        request.set("JMSReplyTo", PropertyType.STRING, ANSWERS)
        bench.manager.send(request, done)
        with pytest.raises(Failed, match=r"is not a JSON array|is not a string|not valid JSON"):
            bench.result()


def test_a_request_for_nothing_says_neither_yes_nor_no(bench):
    bench.request("broker")

    bench.loop.run_turns()
    (answer,) = bench.answers.got

    assert answer.get("_AMQ_OperationSucceeded") is None


def test_a_fault_in_an_operation_is_answered_and_logged(bench, monkeypatch, caplog):
    monkeypatch.setattr(bench.addresses, "create", None)

    with pytest.raises(Failed, match="not callable"):
        bench.call("broker", "createAddress", "a", "ANYCAST")

    assert "a fault in a management operation" in caplog.text


def test_the_answer_tells_whose_it_is(bench):
    bench.request("broker", attribute="name", JMSCorrelationID="mine")
    bench.loop.run_turns()
    assert bench.answers.got.pop().get("JMSCorrelationID") == "mine"

    request = Message("activemq.management", user_id=bytes(range(16)))
    request.set("_AMQ_ResourceName", PropertyType.STRING, "broker")
    request.set("_AMQ_Attribute", PropertyType.STRING, "name")
    request.set("JMSReplyTo", PropertyType.STRING, f"temp-queue://{ANSWERS}")
    bench.manager.send(request, done)
    bench.loop.run_turns()
    answer = bench.answers.got.pop()
    assert answer.get("JMSCorrelationID") == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert (answer.type, answer.get("JMSReplyTo")) == (3, f"temp-queue://{ANSWERS}")


def test_who_wants_no_answer_gets_none(bench):
    bench.queue("q")
    bench.request("queue.q", "pause", [], JMSReplyTo=None)
    bench.loop.run_turns()

    assert bench.answers.got == []
    assert bench.addresses.queues["q"].is_paused


class Refusing:
    """Refuses what a test names."""

    is_enabled = True

    def __init__(self, *refused):
        self.refused = refused
        self.asked = []

    def check(self, user, permission, address, queue):
        self.asked.append((permission, address))
        if (permission, address) in self.refused:
            raise BrokerError(ErrorCode.SECURITY_EXCEPTION, "AMQ229032: no")


@pytest.mark.parametrize("refused", [("manage", "activemq.management"), ("send", ANSWERS)])
def test_without_permission_nothing_is_done(bench, refused):
    queue = bench.queue("q")
    bench.security = Refusing(refused)

    with pytest.raises(BrokerError, match="AMQ229032"):
        bench.request("queue.q", "pause", [])

    bench.loop.run_turns()
    assert not queue.is_paused


def test_operations_may_need_permissions_of_their_own():
    options = BrokerOptions(management=ManagementOptions(rbac_prefix="mops"))
    bench = ManagedBench(options=options)
    queue = bench.queue("q")
    bench.security = Refusing(("edit", "mops.queue.q.pause"))

    assert bench.get("queue.q", "messageCount") == 0
    with pytest.raises(Failed, match="AMQ229032"):
        bench.call("queue.q", "pause")

    assert not queue.is_paused
    assert ("view", "mops.queue.q.getMessageCount") in bench.security.asked


def test_a_long_operation_lets_others_in(bench):
    bench.queue("q")
    session = bench.session()
    for number in range(2500):
        session.send(message(str(number)), done)
    turns = []
    bench.loop.call_soon(lambda: turns.append(bench.addresses.queues["q"].message_count))

    bench.request("queue.q", "removeAllMessages", [])

    assert bench.addresses.queues["q"].message_count == 1500
    assert bench.answers.got == []
    assert bench.result() == 2500
    assert turns == [1500]


def test_every_operation_of_artemis_that_is_there_can_be_called_by_name(bench):
    """A name that the table has and no method: found here instead of by an operator."""
    bench.queue("q")
    for resource in ("broker", "queue.q", "address.q"):
        control = bench.management._resource(resource)
        for name in sorted(control.names()):
            if not name.startswith(("get", "is")) or control._find(name, ()) is None:
                continue
            with contextlib.suppress(Failed):
                json.dumps(bench.call(resource, name))


def test_a_request_in_parts_leaves_no_file_open(bench, tmp_path):
    files = LargeFiles(tmp_path)
    bench.queue("q")
    request = Message("activemq.management", type=3, message_id=7)
    request.is_large = True
    request.large = files.create(7, is_durable=False)
    request.large.append(text_body('["x = 1"]'))
    request.large.finish(sync=False)
    for name, value in {
        "_AMQ_ResourceName": "queue.q",
        "_AMQ_OperationName": "removeMessages",
        "JMSReplyTo": ANSWERS,
    }.items():
        request.set(name, PropertyType.STRING, value)

    bench.manager.send(request, done)

    assert bench.result() == 0
    assert list(tmp_path.iterdir()) == []
    assert open_files(tmp_path) == []


def open_files(folder):
    """What this process has open in a folder."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [one for one in found if one.startswith(str(folder))]

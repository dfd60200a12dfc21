"""Why a message is not consumed: each state of a queue, and the reasons that follow from it."""

import re
import shlex
from dataclasses import replace

import pytest

from broker.management.address_control import AddressControl
from broker.management.broker_control import BrokerControl
from broker.management.queue_control import QueueControl
from broker.management.reasons.rules import reasons
from broker.management.reasons.state import (
    ConsumerState,
    Forwarding,
    MessageState,
    Place,
    QueueState,
    RemoteState,
)

CONTROLS = {
    "broker": BrokerControl.signatures(),
    "queue": QueueControl.signatures(),
    "address": AddressControl.signatures(),
}
NOW_MS = 1_700_000_000_000
READY = ConsumerState(name="consumer 1", number=1, session="s", connection="c")
BLUE = ConsumerState(name="consumer 2", selector="color = 'blue'", takes=False)
THERE = RemoteState(node_id="B", queue="q")
LOST = Forwarding(
    bridge="sf.B", node_id="B", is_connected=False, lost_since_ms=NOW_MS - 60_000, reason="refused"
)
QUEUE = QueueState(name="q", address="a", now_ms=NOW_MS, redistribution_delay_ms=0)
MESSAGE = MessageState(message_id=7)


def queue(*consumers, **changes):
    return replace(QUEUE, consumers=consumers, consumer_count=len(consumers), **changes)


def message(**changes):
    return replace(MESSAGE, **changes)


def consumer(**changes):
    return replace(READY, **changes)


# What the state is, the codes that follow, and what has to be said.
CASES = {
    "nothing there": (queue(message_count=0), None, ["empty"], "broker address show a"),
    "not durable yet": (queue(message_count=3), None, ["becoming-durable"], "3 messages"),
    "consumed before": (queue(READY), message(place=Place.ABSENT), ["absent"], "broker trace 7"),
    "forwarded": (
        queue(READY),
        message(place=Place.ABSENT, found_in=(LOST,)),
        ["node-not-reached"],
        "node B, which is not reached since 2023-11-14 22:12:20 UTC: refused",
    ),
    "scheduled": (
        queue(READY),
        message(place=Place.SCHEDULED, due_ms=NOW_MS + 90_000),
        ["scheduled"],
        "until 2023-11-14 22:14:50 UTC (90 s from now)",
    ),
    "waits for its redelivery": (
        queue(READY),
        message(place=Place.SCHEDULED, due_ms=NOW_MS + 1000, delivery_count=2),
        ["scheduled"],
        "again after 2 deliveries",
    ),
    "sent in an open transaction": (
        queue(READY),
        message(place=Place.SENT_IN_TRANSACTION, transaction="session s"),
        ["sent-in-open-transaction"],
        "transaction of session s, open",
    ),
    "sent in a prepared transaction": (
        queue(READY),
        message(place=Place.SENT_IN_TRANSACTION, is_prepared=True, xid="AAA="),
        ["sent-in-prepared-transaction"],
        "broker manage broker commitPreparedTransaction AAA=",
    ),
    "acknowledged in an open transaction": (
        queue(READY),
        message(place=Place.ACKNOWLEDGED_IN_TRANSACTION, consumer=READY),
        ["acknowledged-in-open-transaction"],
        "broker manage broker closeSessionWithID c s.",
    ),
    "acknowledged in a prepared transaction": (
        queue(),
        message(place=Place.ACKNOWLEDGED_IN_TRANSACTION, is_prepared=True, xid="AAA="),
        ["acknowledged-in-prepared-transaction"],
        "commitPreparedTransaction",
    ),
    "delivered and never acknowledged": (
        queue(READY),
        message(
            place=Place.DELIVERING,
            consumer=consumer(last_delivered_ms=NOW_MS, delivering_count=5),
        ),
        ["delivering"],
        (
            "to consumer 1 at 2023-11-14 22:13:20 UTC and is not acknowledged: it has never "
            "acknowledged, and has 5 messages"
        ),
    ),
    "delivered before others": (
        queue(READY),
        message(
            place=Place.DELIVERING,
            is_last_delivered=False,
            consumer=consumer(last_delivered_ms=NOW_MS, last_acknowledged_ms=NOW_MS - 1000),
        ),
        ["delivering"],
        (
            "not later than 2023-11-14 22:13:20 UTC and is not acknowledged: it acknowledged last "
            "at 2023-11-14 22:13:19 UTC"
        ),
    ),
    "delivered into a stalled connection": (
        queue(READY),
        message(place=Place.DELIVERING, consumer=consumer(is_stalled=True)),
        ["delivering", "connection-stalled"],
        "takes no more bytes",
    ),
    "on its way to a node that is full": (
        queue(READY, forwarding=replace(LOST, is_connected=True, reason="no credit for 9 s")),
        message(place=Place.DELIVERING, consumer=READY),
        ["delivering", "forwarding"],
        "store-and-forward queue of node B: no credit for 9 s",
    ),
    "between two places": (
        queue(READY),
        message(place=Place.DELIVERING),
        ["delivering"],
        "on its way out",
    ),
    "in a page": (
        queue(READY, paged_count=1000),
        message(place=Place.PAGED),
        ["paged"],
        "1000 messages of the queue",
    ),
    "not read since the start": (
        queue(READY),
        message(place=Place.STORED),
        ["not-read"],
        "not among those read since the start",
    ),
    "behind others": (queue(READY), message(ahead_count=3), ["behind-others"], "3 messages"),
    "queue paused": (
        queue(READY, is_paused=True),
        message(),
        ["queue-paused"],
        "broker manage queue.q resume",
    ),
    "queue paused, and no consumer": (
        queue(is_paused=True),
        message(),
        ["queue-paused", "no-consumer"],
        "Resume it",
    ),
    "consumers before dispatch": (
        queue(READY, is_open=False, consumers_before_dispatch=3),
        message(),
        ["consumers-before-dispatch"],
        "once 3 consumers are there: it has 1",
    ),
    "delay before dispatch": (
        queue(READY, is_open=False, consumers_before_dispatch=3, delay_before_dispatch_ms=5000),
        message(),
        ["consumers-before-dispatch"],
        "3 consumers are there, or 5000 ms after the first one",
    ),
    "groups are given to others": (
        queue(consumer(delivering_count=4), is_rebalancing=True),
        message(),
        ["group-rebalance"],
        "4 delivered messages",
    ),
    "exclusive, and its owner waits": (
        queue(consumer(has_credit=False), READY, exclusive_owner=consumer(has_credit=False)),
        message(),
        ["exclusive", "no-credit"],
        "consumer 1 gets everything, and 1 other consumer nothing",
    ),
    "exclusive, and its owner takes": (
        queue(READY, READY, exclusive_owner=READY),
        message(),
        ["moving"],
        "nothing holds message 7",
    ),
    "a group's owner here": (
        queue(READY, consumer(has_credit=False)),
        message(group="g", group_owner=consumer(has_credit=False, delivering_count=2)),
        ["group-owner", "no-credit"],
        "group 'g', which consumer 1 has; it has 2 messages",
    ),
    "a group's owner who does not take it": (
        queue(READY, BLUE),
        message(group="g", group_owner=BLUE),
        ["group-owner", "no-match"],
        "color = 'blue'",
    ),
    "a group's owner on another node": (
        queue(READY),
        message(group="g", group_node="B"),
        ["group-owner-elsewhere"],
        "group 'g', which node B has",
    ),
    "an exclusive queue of another node": (
        queue(READY),
        message(group_node="B"),
        ["group-owner-elsewhere"],
        "of queue q, exclusive in the cluster, which node B has",
    ),
    "a group without an owner": (queue(READY), message(group="g"), ["moving"], "nothing holds"),
    "no consumer": (queue(), message(), ["no-consumer"], "broker consumer --destination queue://q"),
    "no selector takes it": (
        queue(BLUE, nearest="color = 'blue' here"),
        message(),
        ["no-match"],
        "none of 1 consumers on this node takes message 7; nearest is color = 'blue' here",
    ),
    "all have refused it": (
        queue(consumer(takes=False, has_refused=True)),
        message(),
        ["refused"],
        "broker manage queue.q sendMessageToDeadLetterAddress 7",
    ),
    "without credit": (
        queue(consumer(has_credit=False, delivering_count=10), BLUE),
        message(),
        ["no-credit"],
        "consumer 1 takes it and has no credit left: it has 10 messages",
    ),
    "two without credit": (
        queue(consumer(has_credit=False), consumer(has_credit=False)),
        message(),
        ["no-credit"],
        "consumer 1 and 1 others",
    ),
    "connection stalled": (
        queue(consumer(is_stalled=True)),
        message(),
        ["connection-stalled"],
        "broker manage broker closeConsumerWithID s 1.",
    ),
    "a large message before it": (
        queue(consumer(is_streaming=True)),
        message(),
        ["large-message"],
        "is sent a large message first",
    ),
    "session not started": (
        queue(consumer(is_started=False)),
        message(),
        ["not-started"],
        "connection.start()",
    ),
    "each for another reason": (
        queue(consumer(has_credit=False), consumer(is_stalled=True), consumer(is_started=False)),
        message(),
        ["no-credit", "connection-stalled", "not-started"],
        "no credit left",
    ),
    "redistribution delay": (
        queue(remotes=(THERE,), redistribution_delay_ms=5000, redistribution_in_ms=2500),
        message(),
        ["no-consumer", "redistribution-delay"],
        "it goes to node B in 2.5 s",
    ),
    "redistributed now": (
        queue(remotes=(THERE,), redistribution_in_ms=0),
        message(),
        ["no-consumer", "redistributing"],
        "on its way to node B",
    ),
    "redistribution off": (
        queue(BLUE, remotes=(THERE,), redistribution_delay_ms=-1),
        message(),
        ["no-match", "redistribution-off"],
        "redistribution-delay of a is -1: what waits stays",
    ),
    "mode STRICT": (
        queue(remotes=(replace(THERE, mode="STRICT", redistributes=False),)),
        message(),
        ["no-consumer", "mode-without-redistribution"],
        "message-load-balancing STRICT moves nothing",
    ),
    "a group stays": (
        queue(remotes=(THERE,)),
        message(group="g"),
        ["no-consumer", "group-stays"],
        "messages of a group are not redistributed",
    ),
    "no consumer anywhere": (
        queue(remotes=(replace(THERE, takes=False, consumer_count=0),)),
        message(),
        ["no-consumer", "no-consumer-elsewhere"],
        "1 other node has the queue, with 0 consumers",
    ),
    "no selector takes it anywhere": (
        queue(BLUE, remotes=(replace(THERE, takes=False, consumer_count=3),)),
        message(),
        ["no-match", "no-match-elsewhere"],
        "with 3 consumers, none of which takes message 7",
    ),
    "node not reached": (
        queue(remotes=(replace(THERE, is_connected=False, takes=False, consumer_count=0),)),
        message(),
        ["no-consumer", "node-not-reached"],
        "node B has the queue and is not reached",
    ),
    "store-and-forward queue of a node that is lost": (
        queue(READY, forwarding=LOST, is_internal=True),
        message(),
        ["node-not-reached"],
        "broker cluster",
    ),
    "store-and-forward queue of a node that was never seen": (
        queue(forwarding=replace(LOST, is_known=False), is_internal=True),
        message(),
        ["node-gone"],
        "not seen since this broker started",
    ),
    "target full": (
        queue(READY, forwarding=replace(LOST, is_connected=True, reason="no credit for 9 s: full")),
        message(),
        ["forwarding"],
        "no credit for 9 s: full",
    ),
    "queue of a core bridge": (
        queue(READY, forwarding=replace(LOST, node_id=None, bridge="b", reason="paused")),
        message(),
        ["bridge"],
        "broker bridge why b",
    ),
    "nothing holds it": (queue(READY), message(), ["moving"], "report it as a fault"),
}


@pytest.mark.parametrize("case", CASES)
def test_reasons_of_a_state(case):
    state, asked, codes, said = CASES[case]

    found = reasons(state, asked)

    assert [one.code for one in found] == codes
    assert said in "\n".join(f"{one.text}\n{one.action}" for one in found)
    for one in found:
        assert one.text
        assert one.action.endswith(".")
        for resource, name, *given in commands(one.action):
            control = CONTROLS[resource.partition(".")[0]]
            assert (name, len(given)) in {(known, len(types)) for known, types in control}


def commands(action):
    """The words of each `broker manage` that an action advises."""
    for line in re.findall(r"broker manage((?: (?:'[^']*'|[^\s';,]+))+)", action):
        yield shlex.split(line.removesuffix("."))

"""Every operation with any arguments of its kinds: a result or a refusal, never a fault of ours."""

import logging
import math

import pytest

from broker.errors import BrokerError
from broker.management.address_control import AddressControl
from broker.management.broker_control import BrokerControl
from broker.management.divert_control import DivertControl
from broker.management.errors import ManagementError
from broker.management.invocation import (
    BOOLEAN,
    BOOLEAN_OR_NULL,
    DOUBLE,
    INT,
    INT_OR_NULL,
    LIST,
    LONG,
    LONG_OR_NULL,
    MAP,
    NAME,
    TEXT,
)
from broker.management.queue_control import QueueControl
from broker.management.registry import Resources
from tests.broker.bench import done, message
from tests.broker.management.managed import Failed, ManagedBench

RESOURCES = {
    "broker": BrokerControl,
    "queue.q": QueueControl,
    "address.q": AddressControl,
    "divert.d": DivertControl,
}
VALUES = {
    TEXT: [None, "", "q", "n = 1", '{"field":"NAME"}', "\ud800", "other"],
    NAME: ["", "q", "{}", "\ud800", "other", "1-aa-bb"],
    BOOLEAN: [True, False],
    BOOLEAN_OR_NULL: [None, True, False],
    INT: [0, -1, 2**31 - 1],
    INT_OR_NULL: [None, 0, -1, 2**31 - 1],
    LONG: [0, -1, 2**63 - 1],
    LONG_OR_NULL: [None, 0, -1, 2**63 - 1],
    DOUBLE: [0.0, -1.5, 1e308],
    LIST: [[], ["YQ==", "\ud800"], [None, 1]],
    MAP: [None, {}, {"n": None, "": 1, "\ud800": "\ud800"}],
}
MOST = 60
SIGNATURES = [
    (resource, name, kinds)
    for resource, control in RESOURCES.items()
    for name, found in sorted(control._operations.items())
    for _, kinds in found
]


def combinations(choices):
    """All of them, or as many as MOST that lie far from each other."""
    count = math.prod(len(one) for one in choices)
    for number in range(0, count, max(1, count // MOST)):
        rest, values = number, []
        for one in choices:
            rest, at = divmod(rest, len(one))
            values.append(one[at])
        yield values


@pytest.mark.parametrize(
    ("resource", "operation", "kinds"),
    SIGNATURES,
    ids=[f"{resource}-{name}-{len(kinds)}" for resource, name, kinds in SIGNATURES],
)
def test_an_operation_gives_a_result_or_refuses(resource, operation, kinds, caplog):
    bench = ManagedBench()
    bench.set("#", dead_letter_address="DLQ", expiry_address="EXP")
    for name in ("q", "other", "DLQ", "EXP"):
        bench.queue(name)
    bench.call("broker", "createDivert", "d", None, "q", "other", False, None, None)
    session = bench.session()
    session.send(message("1", n=1), done)
    session.send(message("2", _AMQ_SCHED_DELIVERY=bench.now_ms + 60_000), done)

    for values in combinations([VALUES[kind] for kind in kinds]):
        control = Resources(bench).find(resource)
        if control is None:
            break
        try:
            result = control.invoke(operation, values)
            if hasattr(result, "send"):
                for _ in result:
                    bench.loop.run_turns(most=1000)
        except (ManagementError, BrokerError):
            pass
        bench.loop.run_turns()

    assert [one for one in caplog.records if one.levelno >= logging.CRITICAL] == []


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("createAddress", (None, "ANYCAST")),
        ("createQueue", ("a", None)),
        ("createQueue", (None, "q2")),
        ("deleteAddress", (None,)),
        ("addAddressSettings", (None, "{}")),
    ],
)
def test_what_has_to_have_a_name_is_refused_without(operation, arguments):
    bench = ManagedBench()
    before = bench.get("broker", "addressNames")

    with pytest.raises(Failed, match=r"must not be null|not a JSON|not valid JSON"):
        bench.call("broker", operation, *arguments)

    assert bench.get("broker", "addressNames") == before

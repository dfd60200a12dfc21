"""What ONCE_AND_ONLY_ONCE by duplicate ids finds out of both sides before it begins."""

import dataclasses
import struct

import pytest

from broker.bridges.jms import BridgeState, ExactlyOnce, QualityOfService
from broker.bridges.jms.duplicate_ids import duplicate_id
from broker.embedded import EmbeddedBroker
from broker.options import BrokerOptions
from broker.security.permission import Permission
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bridges.jms.ends import WAIT_S, End, an_end, bridge
from tests.broker.bridges.test_security import secured
from tests.broker.cluster.mesh import node_options
from tests.proxy import Proxy

ONCE = {"quality_of_service": QualityOfService.ONCE_AND_ONLY_ONCE}
FORGETS = "the target forgets duplicate ids when it restarts (persist-id-cache is false)"


def in_a_cluster():
    """A node that listens at another port than its connector says."""
    return dataclasses.replace(
        node_options("a", 1, ()), acceptors=(AcceptorOptions(host="127.0.0.1", port=0),)
    )


@pytest.fixture
def forgetful():
    """A target that keeps its ids in memory alone."""
    listens = (AcceptorOptions(host="127.0.0.1", port=0),)
    with an_end(options=BrokerOptions(acceptors=listens, persist_id_cache=False)) as end:
        end.create("q")
        yield end


def test_a_target_that_forgets_its_ids_is_refused(source, forgetful):
    with bridge(source, forgetful, **ONCE) as moving:
        assert moving.wait_until(BridgeState.FAILED, timeout_s=WAIT_S)
        assert FORGETS in moving.why


def test_or_has_two_phase_commit(source, forgetful, tmp_path):
    source.send("q", "one")
    with bridge(source, forgetful, transaction_log=tmp_path / "log", **ONCE) as moving:
        assert forgetful.contents("q", 1) == ["one"]
        assert moving.snapshot()["mode"] == "two-phase commit"


@pytest.mark.parametrize(
    "changes",
    [
        {"exactly_once": ExactlyOnce.TWO_PHASE},
        {"quality_of_service": QualityOfService.DUPLICATES_OK},
    ],
)
def test_what_needs_no_ids_does_not_ask_for_them(source, forgetful, tmp_path, changes, caplog):
    caplog.set_level("DEBUG", "broker.bridge")
    source.send("q", "one")
    with bridge(source, forgetful, transaction_log=tmp_path / "log", **{**ONCE, **changes}):
        assert forgetful.contents("q", 1) == ["one"]


def test_a_target_that_does_not_tell_its_number_of_ids_gets_fewer_at_once(source, caplog):
    """Its user may not manage it."""
    may = set(Permission) - {Permission.MANAGE}
    with EmbeddedBroker(security=secured(*may)) as guarded:
        target = End(guarded)
        with target.client:
            target.create("q")
            source.send("q", "one")
            with bridge(source, target.tcp, max_batch_size=1000, max_batch_time=50, **ONCE):
                assert target.contents("q", 1) == ["one"]
    assert "batches are of 500 messages" in caplog.text


@pytest.mark.parametrize("way", ["vm", "address"])
def test_a_source_in_a_cluster_is_known_however_it_is_reached(target, way):
    """By `vm://`, or by an address that its connector does not have."""
    with an_end(options=in_a_cluster()) as source:
        source.create("q")
        source.send("q", "one")
        broker = source.embedded.broker
        (reference,) = broker.parts.postoffice.addresses.queues["q"].references()
        number = struct.pack(">q", reference.message.message_id)
        made = duplicate_id(str(broker.node_id), b"q\0" + number)
        with Proxy(source.port) as proxy:
            factory = source.factory if way == "vm" else lambda: source.tcp(proxy.port)
            with bridge(factory, target, **ONCE) as moving:
                (found,) = target.take("q", 1)
                assert moving.snapshot()["mode"] == "duplicate ids", moving.why
    assert found.get("_AMQ_DUPL_ID") == made


def test_a_source_that_does_not_tell_who_it_is_says_what_is_missing(target):
    may = set(Permission) - {Permission.MANAGE}
    with EmbeddedBroker(in_a_cluster(), security=secured(*may)) as guarded:
        source = End(guarded)
        with source.client:
            source.create("q")
            with bridge(source.tcp, target, **ONCE) as moving:
                assert moving.wait_until(BridgeState.FAILED, timeout_s=WAIT_S)
                assert "the source does not tell its node id to this user" in moving.why

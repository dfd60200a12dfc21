"""A router: local filter, cache, quorum, and what becomes of a client."""

import re
from dataclasses import dataclass, field

import pytest

from broker.config.cluster_connections import StaticConnectors
from broker.config.connection_routers import (
    CacheConfig,
    ConnectionRouterConfig,
    KeyType,
    PolicyConfig,
    PolicyName,
    PoolConfig,
)
from broker.model.transport_configuration import TransportConfiguration
from broker.protocols.redirection import Redirection, RoutingRefusal
from broker.records.binding_records import KeyValuePair
from broker.routers import cache as caches
from broker.routers.cache import TargetCache
from broker.routers.keys import RoutedClient
from broker.routers.policies import Policy
from broker.routers.router import ConnectionRouter
from broker.routers.targets import ROUTER_CLIENT_PREFIX, LocalTarget

REFUSED = RoutingRefusal("r", is_unavailable=False)
NOT_READY = RoutingRefusal("r", is_unavailable=True)
LOCAL = LocalTarget("own", lambda: 0)


@dataclass
class Remote:
    node_id: str
    connection_count: int = 0
    is_local: bool = False

    @property
    def connector(self):
        return TransportConfiguration(self.node_id, parameters={"host": self.node_id, "port": 1})


@dataclass
class Targets:
    """A pool whose targets a test sets."""

    ready: list = field(default_factory=list)
    quorum: int = 1

    @property
    def has_quorum(self):
        return len(self.ready) >= self.quorum

    def ready_target(self, node_id):
        return next((one for one in self.ready if one.node_id == node_id), None)


class Store:
    """Records of settings, by id."""

    def __init__(self):
        self.records, self._next = {}, 1

    def add_setting(self, record):
        self.records[self._next] = record
        self._next += 1
        return self._next - 1

    def replace_setting(self, old_id, record):
        del self.records[old_id]
        return self.add_setting(record)

    def delete_setting(self, record_id):
        del self.records[record_id]


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


def config(**changes):
    pool = PoolConfig(static_connectors=StaticConnectors(connector_refs=("a",)))
    return ConnectionRouterConfig(
        **{"name": "r", "key_type": KeyType.CLIENT_ID, "pool": pool, **changes}
    )


def router(targets, policy="FIRST_ELEMENT", cache=None, modulo=0, **changes):
    policy = policy and Policy(PolicyConfig(PolicyName[policy], modulo))
    return ConnectionRouter(config(**changes), LOCAL, targets, policy, cache)


def client(client_id="c"):
    return RoutedClient(remote="h:1", client_id=client_id)


def test_a_client_is_sent_to_the_target():
    found = router(Targets([Remote("a"), Remote("b")])).route(client())

    assert isinstance(found, Redirection)
    assert (found.node_id, found.place) == ("a", "a:1")
    assert found.text == "Connection router r redirected the connection to a:1"


def test_a_client_is_served_here_if_this_broker_is_the_target():
    assert router(Targets([LOCAL])).route(client()) is None
    # By a connector that leads here.
    assert router(Targets([Remote("own", is_local=True)])).route(client()) is None


def test_the_local_filter_matches_the_whole_key():
    found = router(Targets([Remote("a")]), local_target_filter=re.compile("FOO.*"))

    assert found.route(client("FOO1")) is None
    assert found.route(client("aFOO1")).node_id == "a"
    assert router(Targets(), local_target_filter=re.compile("NULL")).route(client(None)) is None


def test_without_pool_or_policy_all_others_are_refused():
    local = {"local_target_filter": re.compile("FOO.*")}

    assert router(None, policy=None, **local).route(client("BAR")) == REFUSED
    assert router(None, **local).route(client("BAR")) == REFUSED
    assert router(Targets([Remote("a")]), policy=None, **local).route(client("BAR")) == REFUSED


def test_a_modulo_shards_by_the_local_filter():
    shards = [
        router(None, "CONSISTENT_HASH_MODULO", modulo=2, local_target_filter=re.compile(str(one)))
        for one in range(2)
    ]

    for number in range(20):
        answers = [one.route(client(f"client-{number}")) for one in shards]
        assert sorted(answers, key=str) == [None, REFUSED]


def test_without_a_quorum_nobody_is_sent_anywhere():
    targets = Targets([Remote("a")], quorum=2)
    found = router(targets)

    assert found.route(client()) == NOT_READY
    targets.ready.append(Remote("b"))
    assert found.route(client()).node_id == "a"


def test_a_router_that_checks_its_targets_is_served():
    found = router(Targets([Remote("a")]))

    assert found.route(client(f"{ROUTER_CLIENT_PREFIX}1")) is None


def kept(store=None, clock=None, recorded=(), **options):
    return TargetCache(
        CacheConfig(persisted=store is not None, **options),
        "r",
        storage=store or Store(),
        monotonic_s=clock or Clock(),
        recorded=recorded,
    )


def test_a_key_keeps_its_target_as_long_as_that_is_ready():
    targets = Targets([Remote("a"), Remote("b")])
    found = router(targets, cache=kept())

    assert found.route(client("x")).node_id == "a"
    targets.ready.reverse()
    assert found.route(client("x")).node_id == "a"
    assert found.route(client("y")).node_id == "b"
    del targets.ready[-1]
    assert found.route(client("x")).node_id == "b"
    targets.ready.append(Remote("a"))
    assert found.route(client("x")).node_id == "b"


def test_an_entry_ends_behind_its_timeout():
    clock, store = Clock(), Store()
    found = kept(store, clock, timeout_ms=1000)
    found.put("x", "a")
    found.put("y", "b")

    clock.now_s += 0.9
    assert found.get("x") == "a"
    clock.now_s += 0.9
    assert (found.get("x"), found.get("y")) == ("a", None)
    assert list(store.records.values()) == [KeyValuePair("$.BC.r", "x", "a")]


def test_recorded_entries_are_there_after_a_restart():
    store = Store()
    first = kept(store)
    for node_id in ("a", "a", "b"):
        first.put("x", node_id)
    store.add_setting(KeyValuePair("$.BC.other", "y", "a"))

    again = kept(store, recorded=tuple(store.records.items()))
    again.put("x", "c")

    assert (again.get("x"), again.get("y")) == ("c", None)
    assert sorted(one.value for one in store.records.values()) == ["a", "c"]


def test_entries_that_are_not_to_be_recorded_are_not():
    store = Store()
    found = TargetCache(CacheConfig(), "r", storage=store, monotonic_s=Clock())

    found.put("x", "a")

    assert store.records == {}


def test_a_cache_has_an_end(monkeypatch):
    monkeypatch.setattr(caches, "ENTRY_COUNT_MAX", 2)
    found = kept()
    for key in "xyz":
        found.put(key, "a")
        found.get("x")

    assert [found.get(key) for key in "xyz"] == ["a", None, "a"]
    assert len(found) == 2


@pytest.mark.parametrize("refusal", [REFUSED, NOT_READY])
def test_a_refusal_names_the_router(refusal):
    assert refusal.text.startswith("Connection router r ")

"""The key of a client, and the target that a policy selects for it."""

import re
from dataclasses import dataclass

import pytest

from broker.config.connection_routers import KeyType, PolicyConfig, PolicyName
from broker.routers.keys import NO_KEY, RoutedClient, key_of
from broker.routers.policies import Policy, hash_of

CLIENT = RoutedClient(
    remote="10.0.0.7:50123",
    client_id="FOO_1",
    user="bob",
    roles=frozenset({"users", "admins", "tenant-b"}),
    sni_host="eu.example.com",
)
NOBODY = RoutedClient(remote="")


@dataclass
class Node:
    node_id: str
    connection_count: int | None = None


@pytest.mark.parametrize(
    ("key_type", "key_filter", "key"),
    [
        ("CLIENT_ID", None, "FOO_1"),
        ("CLIENT_ID", "^.{3}", "FOO"),
        ("CLIENT_ID", "BAR", NO_KEY),
        ("SNI_HOST", None, "eu.example.com"),
        ("SNI_HOST", "^[^.]+", "eu"),
        ("SOURCE_IP", None, "10.0.0.7"),
        ("USER_NAME", None, "bob"),
        ("ROLE_NAME", None, "admins"),
        ("ROLE_NAME", "tenant-.", "tenant-b"),
        ("ROLE_NAME", "guests", NO_KEY),
    ],
)
def test_the_key_of_a_client(key_type, key_filter, key):
    pattern = None if key_filter is None else re.compile(key_filter)

    assert key_of(KeyType[key_type], pattern, CLIENT) == key


@pytest.mark.parametrize("key_type", KeyType)
def test_a_client_without_a_key(key_type):
    assert key_of(key_type, re.compile("."), NOBODY) == NO_KEY


def test_an_address_of_ipv6_is_a_key():
    client = RoutedClient(remote="::1:50123")

    assert key_of(KeyType.SOURCE_IP, None, client) == "::1"


@pytest.mark.parametrize(
    ("text", "hash_in_java"),
    # Of Artemis's ConsistentHashPolicy.getHash: `hash = (hash ^ char) * 0x01000193`.
    [("", -2128831035), ("a", -468965076), ("foobar", -1080231576)],
)
def test_the_hash_is_artemis_own(text, hash_in_java):
    assert hash_of(text) == hash_in_java


def select(name, targets, key="k", turn=0, count=1, **properties):
    policy = Policy(PolicyConfig(PolicyName[name], **properties), turn)
    found = [policy.select(targets, key) for _ in range(count)]
    return [one and one.node_id for one in found]


@pytest.mark.parametrize("name", PolicyName)
def test_no_target_is_none(name):
    assert select(name.value, [], modulo=2) == [None]


def test_the_first_element_and_each_in_turn():
    nodes = [Node("a"), Node("b"), Node("c")]

    assert select("FIRST_ELEMENT", nodes, count=2) == ["a", "a"]
    assert select("ROUND_ROBIN", nodes, turn=2, count=4) == ["c", "a", "b", "c"]


def test_each_in_turn_goes_on_when_there_are_fewer():
    policy = Policy(PolicyConfig(PolicyName.ROUND_ROBIN), 2)
    nodes = [Node("a"), Node("b"), Node("c")]

    assert policy.select(nodes[:2], "k").node_id == "a"


def test_a_consistent_hash_selects_the_nearest_below():
    nodes = sorted((Node(name) for name in "abcdef"), key=lambda one: hash_of(one.node_id))
    hashes = [hash_of(one.node_id) for one in nodes]
    keys = [f"client-{number}" for number in range(200)]

    found = {key: select("CONSISTENT_HASH", nodes, key)[0] for key in keys}

    for key, node_id in found.items():
        lower = [at for at, one in enumerate(hashes) if one <= hash_of(key)]
        assert node_id == nodes[lower[-1] if lower else 0].node_id
    assert len(set(found.values())) > 1


def test_a_consistent_hash_moves_the_keys_of_a_lost_target_only():
    nodes = [Node(name) for name in "abcdef"]
    keys = [f"client-{number}" for number in range(200)]

    before = {key: select("CONSISTENT_HASH", nodes, key) for key in keys}
    after = {key: select("CONSISTENT_HASH", nodes[1:], key) for key in keys}

    assert all(before[key] == after[key] for key in keys if before[key] != ["a"])


def test_least_connections():
    nodes = [Node("a", 9), Node("b", 4), Node("c", 4), Node("d")]

    assert select("LEAST_CONNECTIONS", nodes, count=3) == ["b", "c", "b"]
    assert select("LEAST_CONNECTIONS", nodes[:1]) == ["a"]
    assert select("LEAST_CONNECTIONS", nodes[3:]) == ["d"]


def test_below_the_threshold_connections_do_not_count():
    nodes = [Node("a", 9), Node("b", 4), Node("c", 12)]
    threshold = {"connection_count_threshold": 10}

    assert select("LEAST_CONNECTIONS", nodes, count=2, **threshold) == ["a", "b"]


def test_a_modulo_makes_other_keys_and_selects_none():
    policy = Policy(PolicyConfig(PolicyName.CONSISTENT_HASH_MODULO, modulo=3))

    assert {policy.transformed(f"client-{number}") for number in range(50)} == {"0", "1", "2"}
    assert policy.select([Node("a")], "0") is None

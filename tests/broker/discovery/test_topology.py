"""The merge of statements about members: any order, any repetition, the same outcome."""

from hypothesis import given
from hypothesis import strategies as st

from broker.discovery import topology as module
from broker.discovery.topology import Departure, Member, NodeState, Topology, state_of
from broker.model.transport_configuration import TransportConfiguration

NODES = ("a", "b", "c")

connectors = st.none() | st.sampled_from([TransportConfiguration(name) for name in "pqr"])
event_ids = st.integers(0, 6)
updates = st.builds(
    Member,
    st.sampled_from(NODES),
    event_ids,
    connectors,
    connectors,
    st.none() | st.sampled_from(("g", "h")),
    st.none() | st.sampled_from(("s", "t")),
)
departures = st.builds(Departure, st.sampled_from(NODES), event_ids)
statements = st.lists(updates | departures, max_size=12)


def known(said):
    topology = Topology()
    for one in said:
        topology.merge(one)
    return {member.node_id: member for member in topology.members}


@given(statements, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(said, chance):
    shuffled = list(said)
    chance.shuffle(shuffled)

    assert known(shuffled) == known(said)


@given(statements)
def test_repetition_does_not_matter(said):
    assert known([*said, *said]) == known(said)


@given(statements, statements)
def test_two_that_have_heard_different_things_agree_after_telling_each_other(one, other):
    states = [dict.fromkeys(NODES, NodeState()) for _ in range(2)]
    for state, said in zip(states, (one, other), strict=True):
        for statement in said:
            node = statement.node_id
            state[node] = state[node].merged(state_of(statement))

    for node in NODES:
        first, second = (state[node] for state in states)
        assert first.merged(second) == second.merged(first)
        assert first.merged(first) == first


@given(statements)
def test_the_newest_primary_counts(said):
    for node, member in known(said).items():
        of_node = [one for one in said if one.node_id == node]
        left = [one.unique_event_id for one in of_node if isinstance(one, Departure)]
        gone = max(left, default=-1)
        counting = [
            one for one in of_node if isinstance(one, Member) and one.unique_event_id > gone
        ]
        assert member.unique_event_id == max(one.unique_event_id for one in counting)
        for role in ("primary", "backup"):
            told = [one for one in counting if getattr(one, role) is not None]
            newest = max((one.unique_event_id for one in told), default=None)
            candidates = [getattr(one, role) for one in told if one.unique_event_id == newest]
            assert getattr(member, role) in (candidates or [None])


@given(statements)
def test_merge_says_whether_a_member_changed(said):
    topology = Topology()
    for one in said:
        before = topology.member(one.node_id)
        assert topology.merge(one) == (topology.member(one.node_id) != before)


def test_a_pair_survives_news_of_one_of_the_two():
    primary, backup, other = map(TransportConfiguration, ("primary", "backup", "other"))
    topology = Topology()

    topology.merge(Member("a", 1, primary))
    topology.merge(Member("a", 2, backup=backup))
    assert (topology.member("a").primary, topology.member("a").backup) == (primary, backup)
    # It took over, and knows no backup yet.
    topology.merge(Member("a", 3, other))
    assert (topology.member("a").primary, topology.member("a").backup) == (other, backup)


def test_a_node_that_is_back_comes_after_its_departure():
    topology = Topology()
    topology.merge(Member("a", 5))
    topology.merge(Departure("a", 5))

    assert not topology.merge(Member("a", 5))
    assert topology.merge(Member("a", 6))
    assert not topology.merge(Departure("a", 5))


def test_departures_that_are_remembered_have_a_maximum(monkeypatch):
    monkeypatch.setattr(module, "DEPARTED_COUNT_MAX", 2)
    topology = Topology()
    for node in ("a", "b", "c"):
        topology.merge(Member(node, 1))
        topology.merge(Departure(node, 2))

    assert [topology.merge(Member(node, 1)) for node in ("a", "b", "c")] == [True, False, False]

"""Where messages go, held against what Artemis answered."""

from itertools import product
from random import Random

import pytest

from broker.model.address import AddressTree, Matcher
from tests.broker import routing_cells
from tests.broker.bench import Bench


@pytest.fixture(scope="module")
def answers():
    return routing_cells.on_the_bench()


def test_every_routing_type_pattern_and_filter_goes_where_artemis_sends_it(answers):
    expected = routing_cells.read_table()

    assert {name: one for name, one in answers.items() if one != expected[name]} == {}
    assert answers.keys() == expected.keys()


@pytest.mark.parametrize("patterns", ["rx,*,#"])
def test_anycast_queues_of_different_patterns_each_get_all(answers, patterns):
    counts, _ = answers[f"fixed A to A at {patterns} by one"]

    assert counts == {"A0own": 6, "A0one": 6, "A0any": 6}


def test_a_route_follows_every_change_of_patterns():
    """Held against a comparison of each name with each pattern."""
    bench = Bench()
    random = Random(7)
    names = [".".join(words) for count in (1, 2) for words in product("ab*#", repeat=count)]
    literal = [name for name in names if not set(name) & set("*#")]
    matcher = Matcher()
    addresses = bench.addresses

    for number in range(400):
        name = random.choice(names)
        if random.random() < 0.6:
            bench.queue(f"q{number}", name)
        elif name in addresses.by_name:
            if random.random() < 0.5:
                addresses.delete(name, force=True)
            elif addresses.by_name[name].queues:
                addresses.delete_queue(random.choice(list(addresses.by_name[name].queues)))
        sent_to = random.choice(literal)
        route = bench.postoffice.route_of(sent_to)
        assert {one.unique_name for one in route.anycast} == {
            queue.name
            for queue in addresses.queues.values()
            if matcher.matches(queue.binding.address, sent_to)
        }
        assert len(route.anycast) == len(set(route.anycast))


def test_a_queue_on_a_pattern_costs_the_same_however_many_there_are(monkeypatch):
    added = []
    add = AddressTree.add
    monkeypatch.setattr(
        AddressTree, "add", lambda tree, name, value: added.append(name) or add(tree, name, value)
    )
    bench = Bench()

    for number in range(100):
        bench.queue(f"q{number}", f"a{number}.#")
        assert bench.postoffice.route_of(f"a{number}.b").anycast

    assert len(added) == 100

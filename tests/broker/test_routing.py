"""Where messages go, held against what Artemis answered."""

import pytest

from tests.broker import routing_cells


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

import random

import pytest

from broker.client.balancing import (
    FirstElement,
    Random,
    RandomSticky,
    RoundRobin,
    policy_named,
)

PACKAGE = "org.apache.activemq.artemis.api.core.client.loadbalance."


def test_round_robin_goes_on_from_any():
    policy = RoundRobin(random.Random(1))

    chosen = [policy.select(4) for _ in range(9)]

    assert chosen == [(chosen[0] + step) % 4 for step in range(9)]
    assert policy.select(2) in (0, 1)


def test_random_chooses_all_of_them():
    policy = Random(random.Random(1))

    assert {policy.select(3) for _ in range(100)} == {0, 1, 2}


def test_random_sticky_stays_while_it_can():
    policy = RandomSticky(random.Random(1))

    first = policy.select(100)
    assert {policy.select(100) for _ in range(20)} == {first}
    assert policy.select(1) == 0


def test_the_first_element_is_the_first():
    assert FirstElement().select(7) == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (PACKAGE + "RoundRobinConnectionLoadBalancingPolicy", RoundRobin),
        (PACKAGE + "RandomConnectionLoadBalancingPolicy", Random),
        (PACKAGE + "RandomStickyConnectionLoadBalancingPolicy", RandomSticky),
        ("FirstElementConnectionLoadBalancingPolicy", FirstElement),
    ],
)
def test_policies_have_the_names_of_artemis(name, kind):
    assert type(policy_named(name)) is kind


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="known are"):
        policy_named("com.example.Mine")


class Last:
    """A policy of an application."""

    def select(self, count):
        return count - 1


def test_a_policy_of_an_application_is_named_by_its_path():
    policy = policy_named("tests.broker.client.test_balancing:Last")

    assert policy.select(5) == 4


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("no.such.module:Last", "No module named"),
        ("tests.broker.client.test_balancing:Least", "Least"),
        ("builtins:dict", "has no select"),
        ("broker.client.options:with_parameters", "missing 2 required"),
        (":Last", "Empty module name"),
    ],
)
def test_a_path_that_leads_to_no_policy_is_refused(path, why):
    with pytest.raises(ValueError, match=why):
        policy_named(path)

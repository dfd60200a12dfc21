"""Which selector comes nearest to a message, and the text of its parts."""

import doctest

import pytest

from broker.selector import node_text as node_text_module
from broker.selector import parse
from broker.selector.nearest import compare_selector, nearest
from broker.selector.node_text import names_in, node_text
from broker.selector.parser import parse_tree
from tests.broker.bench import message

MESSAGE = message(color="red", size=3)


@pytest.mark.parametrize(
    ("selector", "matched_count", "failed"),
    [
        ("color = 'red'", 1, []),
        ("color = 'blue'", 0, ["color = 'blue' (color is 'red')"]),
        ("color = 'red' AND size > 5", 1, ["size > 5 (size is 3)"]),
        (
            "color = 'blue' AND size > 5",
            0,
            ["color = 'blue' (color is 'red')", "size > 5 (size is 3)"],
        ),
        ("color = 'blue' OR (color = 'red' AND size > 5)", 1, ["size > 5 (size is 3)"]),
        ("shape IS NOT NULL", 0, ["shape IS NOT NULL (shape is not set)"]),
        ("NOT (color = 'red')", 0, ["color <> 'red' (color is 'red')"]),
        ("size + color > 1", 0, ["(size + color) > 1 (size is 3, color is 'red')"]),
        ("hyphenated_props:a-b = 1", 0, ["a-b = 1 (a-b is not set)"]),
        ("1 = 2", 0, ["1 = 2"]),
    ],
)
def test_parts_that_do_not_match(selector, matched_count, failed):
    found = compare_selector(selector, MESSAGE)

    assert found.matched_count == matched_count
    assert list(map(str, found.failures)) == failed
    assert parse(selector).matches(MESSAGE) is (not failed)


def test_the_nearest_has_fewest_failures_then_most_matches():
    selectors = ("color = 'blue'", "color = 'red' AND size > 5", "size > 9 AND color = 'x'")

    assert nearest(selectors, MESSAGE).selector == "color = 'red' AND size > 5"
    assert nearest((), MESSAGE) is None


def test_long_values_are_cut():
    (failure,) = compare_selector("text = 'a'", message(text="x" * 1000)).failures

    assert len(str(failure)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 AND (b = 2 OR c = 3)",
        "a BETWEEN 1 AND 5",
        "a NOT BETWEEN 1 AND 5",
        "a LIKE 'x%' ESCAPE '!'",
        "a NOT LIKE 'x_'",
        "a IN ('x', 'it''s') OR a NOT IN ('y')",
        "a IS NULL OR b IS NOT NULL",
        "NOT (a = 1 AND b)",
        "(a + 1) * -b >= 2.5",
        "a <> TRUE",
        "XPATH '//a'",
    ],
)
def test_the_text_of_a_tree_means_the_same(text):
    tree = parse_tree(text)

    assert parse_tree(node_text(tree)) == tree


def test_names_are_given_once():
    assert names_in(parse_tree("a = 1 AND (b > a OR NOT (c LIKE 'x')) AND d IN ('y')")) == [
        *("a", "b", "c", "d")
    ]


def test_examples():
    assert doctest.testmod(node_text_module).failed == 0

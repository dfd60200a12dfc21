"""Wildcards of addresses, with Artemis's cases.

From its AddressImplTest, AddressMapUnitTest and MatchTest.
"""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.address import AddressTree, Matcher, WildcardConfiguration

MATCHING = [
    ("abcde", "abcde"),
    ("a.b", "a.b"),
    ("a.b.c.*", "a.b.c.d"),
    ("a.b.*.d", "a.b.c.d"),
    ("a.b.*.d.*", "a.b.c.d.e"),
    ("a.b.*.d.*.f", "a.b.c.d.e.f"),
    ("#", "a.b.c.d.e.f"),
    ("#", "a"),
    ("a.#", "a.b.c.x.e.f"),
    ("a.#", "a"),
    ("#.b.#", "a.b.c.d.e.f"),
    ("#.b.#", "b"),
    ("a.#.b.#", "a.b.c.d.e.f"),
    ("a.#.c.d.e.f", "a.b.c.d.e.f"),
    ("a.#.c.d.e.*", "a.b.c.d.e.x"),
    ("a.#.c.d.*.f", "a.b.c.d.e.f"),
    ("a.b.c.#", "a.b.c"),
    ("*.stock.#", "usd.stock"),
    ("a.b.#.d", "a.b.d"),
    ("a.b.#.d", "a.b.b.b.b.d"),
    ("a.#.f", "a.c.f"),
    ("#.a", "a"),
    ("*", "a"),
    # The first place behind the `#` is not the right one.
    ("a.#.b.c", "a.b.x.b.c"),
    ("#.a.#.a", "a.b.a"),
]
NOT_MATCHING = [
    ("a.b.c.d.e.f.g.h.i.j.k.l.m.n.*", "a.b.c"),
    ("a.b.c.*", "a.b.x.e"),
    ("a.b.*.d", "a.b.c.x"),
    ("a.b.*.d.*", "a.b.c.x.e"),
    ("a.b.*.d.*.f", "a.b.c.x.e.f"),
    ("a.#.c.d.e.f", "a.b.c.x.e.f"),
    ("a.#.c.d.*.f", "a.b.c.d.e.x"),
    ("a.b.c.#", "a.b.x.e"),
    ("*.stock.#", "a.b.x.e"),
    ("a.b.c#", "a.b.c.d"),
    ("#a.b.c", "a.b.c.d"),
    ("#*a.b.c", "a.b.c.d"),
    ("a.b.c*", "a.b.c.d"),
    ("*a.b.c", "a.b.c.d"),
    ("#.a", "a.b"),
    ("*", "a.b"),
    ("a.#", "ab"),
    ("a.*", "a"),
]


@pytest.mark.parametrize(("pattern", "address"), MATCHING)
def test_a_pattern_matches(pattern, address):
    tree = AddressTree()
    tree.add(pattern, "bound")
    reverse = AddressTree()
    reverse.add(address, "bound")

    assert Matcher().matches(pattern, address)
    assert tree.matching(address) == ["bound"]
    assert reverse.matched_by(pattern) == ["bound"]


@pytest.mark.parametrize(("pattern", "address"), NOT_MATCHING)
def test_a_pattern_does_not_match(pattern, address):
    tree = AddressTree()
    tree.add(pattern, "bound")

    assert not Matcher().matches(pattern, address)
    assert tree.matching(address) == []


def expected(pattern, address):
    """The same by a regular expression over words."""
    text = "".join(
        {"#": "(?:[^.]+[.])*", "*": "[^.]+[.]"}.get(word, re.escape(word) + "[.]")
        for word in pattern.split(".")
    )
    return re.fullmatch(text, address + ".") is not None


def test_every_short_pattern_and_address_match_as_a_regular_expression_says():
    patterns = [".".join(p) for n in (1, 2, 3, 4) for p in itertools.product("ab*#", repeat=n)]
    addresses = [".".join(a) for n in (1, 2, 3, 4) for a in itertools.product("ab", repeat=n)]
    tree = AddressTree()
    for pattern in patterns:
        tree.add(pattern, pattern)

    matches = Matcher().matches
    for address in addresses:
        wanted = {pattern for pattern in patterns if expected(pattern, address)}
        assert {p for p in patterns if matches(p, address)} == wanted
        found = tree.matching(address)
        assert len(found) == len(set(found))
        assert set(found) == wanted


@given(st.lists(st.text("ab.*#", min_size=1, max_size=8), max_size=8), st.text("ab.", max_size=9))
def test_the_tree_finds_what_the_matcher_says(patterns, address):
    tree = AddressTree()
    for index, pattern in enumerate(patterns):
        tree.add(pattern, (index, pattern))

    matches = Matcher().matches
    assert sorted(tree.matching(address)) == [
        (index, pattern) for index, pattern in enumerate(patterns) if matches(pattern, address)
    ]

    for index, pattern in enumerate(patterns):
        tree.remove(pattern, (index, pattern))
    assert not tree
    assert not tree._root.children


def test_an_address_with_wildcards_is_literal_when_sent_to():
    tree = AddressTree()
    for name in ("a.b", "a.b.c", "a.b.#"):
        tree.add(name, name)

    assert tree.matching("a.b.#") == ["a.b.#"]
    assert tree.matched_by("a.b.#") == ["a.b", "a.b.c"]


def test_thousands_of_words_are_no_danger():
    deep = ".".join("a" * 20_000)
    tree = AddressTree()
    tree.add(deep, 1)
    tree.add("#.a.#", 2)

    assert sorted(tree.matching(deep)) == [1, 2]
    tree.remove(deep, 1)
    assert list(tree) == [2]


def test_removing_what_is_not_bound_is_an_error():
    tree = AddressTree()
    tree.add("a", 1)

    with pytest.raises(KeyError):
        tree.remove("b", 1)
    with pytest.raises(ValueError, match="not in list"):
        tree.remove("a", 2)


def test_other_characters_than_the_default():
    matcher = Matcher(WildcardConfiguration(delimiter="/", single_word="+", any_words="$"))

    assert matcher.matches("a/+/c", "a/b/c")
    assert matcher.matches("a/$", "a")
    assert matcher.matches("a.#", "a.#")
    assert not matcher.matches("a.#", "a.b")


@pytest.mark.parametrize("wrong", [{"delimiter": "*"}, {"any_words": ""}, {"single_word": "**"}])
def test_the_three_characters_differ(wrong):
    with pytest.raises(ValueError, match="three different characters"):
        WildcardConfiguration(**wrong)


@pytest.mark.parametrize(
    ("match", "yes", "no"),
    [
        ("test.#", ["test", "test.A", "test.A.B"], ["testing.A", "tes"]),
        ("test.*", ["test.A"], ["testing.A", "test", "test.A.B"]),
        ("$test.#", ["$test", "$test.A", "$test.A.B"], ["$testing.A"]),
        ("test*", ["testA"], ["test", "test.A"]),
        ("#", ["", "a", "a.b"], []),
        ("ab#", ["ab", "ab.c"], ["abc"]),
        ("a(b)+[c].d", ["a(b)+[c].d"], ["ab", "a(b)+[c]xd"]),
    ],
)
def test_a_match_of_the_configuration(match, yes, no):
    pattern = Matcher().compile_match(match)

    assert [name for name in yes + no if pattern.fullmatch(name)] == yes


def test_a_match_with_a_dollar_for_any_words():
    pattern = Matcher(WildcardConfiguration(any_words="$")).compile_match("test.$")

    assert [name for name in ("test", "test.A.B", "testing.A") if pattern.fullmatch(name)] == [
        "test",
        "test.A.B",
    ]


def test_any_words_stand_at_the_end_of_a_match():
    with pytest.raises(ValueError, match="last character"):
        Matcher().compile_match("hjhjhjhjh.#.hhh")

"""The order of candidates, with the cases of Artemis's RepositoryTest."""

import pytest

from broker.model.address import WildcardConfiguration
from broker.settings.hierarchical_repository import CACHE_SIZE_MAX, HierarchicalRepository


def repository(*matches, **options):
    made = HierarchicalRepository(**options)
    for match in matches:
        made.add(match, match)
    return made


def first(made, name):
    return next(iter(made.candidates(name)), None)


def test_nothing_fits():
    assert repository("queues.*").candidates("topics.a") == ()


@pytest.mark.parametrize("delimiter", [".", "_", "/"])
def test_the_documented_examples_with_any_delimiter(delimiter):
    def spelt(text):
        return text.replace(".", delimiter)

    made = repository(
        *map(spelt, ("a.b.#", "a.b.d.#", "#")), wildcards=WildcardConfiguration(delimiter=delimiter)
    )

    for name, match in {
        "a.b": "a.b.#",
        "a.b.c": "a.b.#",
        "a.b.d.lll": "a.b.d.#",
        "z.z.z.z.z": "#",
        "a.babc": "#",
        "a.b.dabc": "a.b.#",
        "a.b.d": "a.b.d.#",
    }.items():
        assert first(made, spelt(name)) == spelt(match)


def test_the_order_of_single_words():
    made = repository(
        "a.b.c.d.e.f",
        "a.b.c.d.e.*",
        "a.*.*.*.*.*",
        "*.b.c.d.*.f",
        "*.b.*.d.*.f",
        "a.b.c.d.e.#",
    )

    for name, match in {
        "a.b.c.d.e.f": "a.b.c.d.e.f",
        "a.b.c.d.e.x": "a.b.c.d.e.*",
        "a.b.x.d.x.f": "a.*.*.*.*.*",
        "x.b.c.d.e.f": "*.b.c.d.*.f",
        "x.b.x.d.e.f": "*.b.*.d.*.f",
        "a.b.c.d.e.f.g": "a.b.c.d.e.#",
    }.items():
        assert first(made, name) == match


def test_many_wildcards():
    made = repository(
        *("#", "a", "a.#", "a.*", "a.b.c", "a.*.c", "a.d.c", "a.b.#", "a.b", "a.b.c.#", "a.b.c.d"),
        *("a.*.*.d", "a.*.d.#"),
    )

    for name, match in {
        "a": "a",
        "a.b": "a.b",
        "a.x": "a.*",
        "a.b.x": "a.b.#",
        "a.b.c": "a.b.c",
        "a.d.c": "a.d.c",
        "a.x.c": "a.*.c",
        "a.b.c.d": "a.b.c.d",
        "a.x.c.d": "a.*.*.d",
        "a.b.x.d": "a.*.*.d",
        "a.d.x.d": "a.*.*.d",
        "a.d.d.g": "a.*.d.#",
        "zzzz.z.z.z.d.r.g.f.sd.s.fsdfd.fsdfs": "#",
    }.items():
        assert first(made, name) == match


def test_all_candidates_in_order():
    made = repository("#", "a.#", "b.#", "a.b.#", "b.c.#", "a.b.c.#", "a.b.*.d", "a.b.c.*")

    assert made.candidates("a.b.c.d") == ("a.b.c.*", "a.b.*.d", "a.b.c.#", "a.b.#", "a.#", "#")
    assert made.candidates("a.b.c") == ("a.b.c.#", "a.b.#", "a.#", "#")
    assert made.candidates("z") == ("#",)


def test_a_literal_match_is_that_name_only():
    made = repository("#", "(a.#)", "a.#", "a.b", "a.*", literal_markers="()")

    assert made.candidates("a.b") == ("a.b", "a.*", "a.#", "#")
    assert made.candidates("a.#") == ("(a.#)", "a.*", "a.#", "#")
    assert made.remove("(a.#)")
    assert made.candidates("a.#") == ("a.*", "a.#", "#")


def test_what_is_added_later_is_found_and_what_is_removed_is_not():
    made = repository("#")
    assert first(made, "b") == "#"

    made.add("b", "b")
    assert first(made, "b") == "b"

    assert made.remove("b")
    assert not made.remove("b")
    assert first(made, "b") == "#"
    assert made.remove("#")
    assert made.candidates("b") == ()


def test_the_exact_match_alone():
    made = repository("a.b", "a.*")

    assert made.exact("a.b") == "a.b"
    assert made.exact("a.*") is None


def test_listeners_hear_of_changes():
    made = repository("#")
    heard = []
    made.on_change(lambda: heard.append(made.candidates("a")))

    made.add("a", "a")
    made.remove("nothing")
    made.remove("a")
    made.replace_all([("a", "other")])

    assert heard == [("a", "#"), ("#",), ("other",)]


def test_a_wrong_match_changes_nothing():
    made = repository("#", "a.*")

    with pytest.raises(ValueError, match="last character of a match"):
        made.add("hjhjhjhjh.#.hhh", "x")
    with pytest.raises(ValueError, match="last character of a match"):
        made.replace_all([("b", "b"), ("#.x", "x")])

    assert sorted(match for match, _ in made.items()) == ["#", "a.*"]


def test_markers_are_two_characters():
    with pytest.raises(ValueError, match="two characters"):
        HierarchicalRepository(literal_markers="(")


def test_the_cache_of_names_has_an_end():
    made = repository("#")

    for number in range(CACHE_SIZE_MAX + 10):
        made.candidates(f"temporary.{number}")

    assert len(made._cache) <= CACHE_SIZE_MAX

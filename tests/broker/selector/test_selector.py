"""What Artemis's tables leave open: types, prefixes, the lexer's corners, limits."""

import math
import time

import pytest

from broker.model.properties import PropertyType
from broker.selector import Filter, SelectorError, parse, translate_jms
from tests.broker.selector.stored import Stored

NUMBERS = ("BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE")
# Left, then those on the right that compare: the table of broker/selector/values.py.
COMPARABLE = {
    "BYTE": set(NUMBERS),
    "SHORT": set(NUMBERS) - {"BYTE"},
    "INT": {"INT", "LONG", "FLOAT", "DOUBLE"},
    "LONG": {"INT", "LONG", "FLOAT", "DOUBLE"},
    "FLOAT": {"INT", "LONG", "FLOAT", "DOUBLE"},
    "DOUBLE": {"INT", "LONG", "FLOAT", "DOUBLE"},
}


def matches(text, **properties):
    return parse(text).matches(Stored().put(**properties))


@pytest.mark.parametrize("left", NUMBERS)
@pytest.mark.parametrize("right", NUMBERS)
def test_numbers_promote_in_the_listed_direction_only(left, right):
    values = {"l": (PropertyType[left], 5), "r": (PropertyType[right], 5)}
    comparable = right in COMPARABLE[left]

    assert matches("l = r", **values) is comparable
    assert matches("l >= r", **values) is comparable
    # FALSE, not unknown.
    assert matches("NOT (l = r)", **values) is not comparable


@pytest.mark.parametrize(
    "text",
    ["a = '1'", "'1' = a", "a = TRUE", "a LIKE '1'", "NOT (a IN ('1'))", "NOT (a NOT IN ('1'))"],
)
def test_a_number_is_no_text_and_no_boolean(text):
    assert not matches(text, a=1)


def test_boolean_char_and_bytes():
    assert matches("a = TRUE AND a <> FALSE AND a", a=True)
    assert not matches("a", a="true")
    assert not matches("a = 1", a=True)
    assert matches("NOT (a = 'x')", a=(PropertyType.CHAR, "x"))
    assert not matches("a = 'x'", a=b"x")
    assert not matches("a > 1 OR NOT (a > 1)", a=b"x")


def test_whole_numbers_wrap_as_in_java():
    assert matches(f"a + 1 = {-(2**31)}", a=2**31 - 1)
    assert matches(f"a * 2 = {2**32}", a=(PropertyType.LONG, 2**31))
    assert matches(f"a + 1 = -{2**63}", a=(PropertyType.LONG, 2**63 - 1))
    assert matches("-a < 0", a=-(2**31))


def test_division_and_remainder_are_doubles():
    assert matches("7 / 2 = 3.5 AND 7 % 2 = 1.0 AND -7 % 2 = -1.0")
    assert matches("1 / 0 > 1E308 AND -1 / 0 < -1E308")
    # NaN equals itself, as Double.equals says, and is above all.
    assert matches("0 / 0 = 0 % 0 AND 0 / 0 > 1E308")
    assert not matches("a = 0.0", a=-0.0)
    assert matches("a < 0.0", a=-0.0)
    assert matches("a = a AND a > 5", a=math.nan)


def test_an_operation_on_the_wrong_type_does_not_match_and_is_logged_once(caplog):
    selector = parse("name * 2 = 4 OR TRUE")

    for _ in range(3):
        assert not selector.matches(Stored().put(name="x"))

    assert len(caplog.records) == 1
    assert not matches("-a < 0", a=(PropertyType.SHORT, 5))


def test_a_text_takes_what_is_added_to_it():
    assert matches("a + 1 + TRUE + 1.50 + b = 'x1true1.5y'", a="x", b="y")
    assert not matches("1 + a = '1x'", a="x")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("017", 15),
        ("0xFF", 255),
        ("5L", 5),
        ("2147483648", 2**31),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0x7fffffffffffffff", 2**63 - 1),
    ],
)
def test_number_literals(text, value):
    assert matches(f"a = {text}", a=(PropertyType.LONG, value))


def test_a_number_beyond_64_bits_compares_with_nothing():
    huge = "1" + "0" * 30

    assert matches(f"NOT (a < {huge}) AND {huge} = {huge}", a=1)


def test_names_quotes_comments_and_keywords():
    assert matches('"a.b" = \'x\' And "q""q" iS nOt nULL', **{"a.b": "x", 'q"q': 1})
    assert matches(
        "a = 'it''s' /* a comment * / */ -- another\n AND $b_1 = 1", a="it's", **{"$b_1": 1}
    )
    # Without the end of a line `--` are two signs.
    assert matches("a = 1 -- b", a=3, b=2)
    assert matches("a=1.AND b=.5", a=1, b=0.5)


def test_not_binds_closest():
    assert not matches("NOT a = 1", a=True)
    assert matches("NOT a = FALSE", a=True)


def test_hyphenated_names():
    assert matches("hyphenated_props:content-type = 'x'", **{"content-type": "x"})
    assert matches("content-type = 5", content=(PropertyType.INT, 7), type=(PropertyType.INT, 2))
    with pytest.raises(SelectorError):
        parse('hyphenated_props:"a" = 1')
    assert matches('hyphenated_props:no_hyphenated_props:"a" = 1', a=1)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a = 5", "5", True),
        ("a = 5", "5.0", False),
        ("a = 5.0", "5", True),
        ("a > 4", "5", True),
        ("5 = a", "5", True),
        ("a = TRUE", "True", True),
        ("a = FALSE", "no", True),
        ("a < 5", "x", False),
        ("NOT (a < 5)", "x", True),
        ("a + 1 = '51'", "5", True),
        ("a * 2 = 10", "5", True),
        ("a * 2 = 5.0", "2.5", True),
        ("a = 5", "99999999999", False),
        ("a = 1.5", "1.5f", True),
        ("a > 5.0", "1e999", True),
        ("a = 1_0", "10", None),
        ("a = 10", "1_0", False),
    ],
)
def test_texts_become_numbers_behind_the_prefix(text, value, expected):
    if expected is None:
        with pytest.raises(SelectorError):
            parse(f"convert_string_expressions:{text}")
        return
    assert matches(f"convert_string_expressions:{text}", a=value) is expected


def test_the_last_prefix_of_a_pair_counts():
    assert not matches(
        "convert_string_expressions:hyphenated_props:no_convert_string_expressions:a = 5", a="5"
    )
    assert matches("no_convert_string_expressions:convert_string_expressions:a = 5", a="5")


def test_position_counts_from_the_start_of_the_whole_text():
    with pytest.raises(SelectorError) as refused:
        parse("convert_string_expressions:a = ")

    assert refused.value.position == len("convert_string_expressions:a =")
    assert str(refused.value).endswith("the end where a value is expected")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1000 + "a" + ")" * 1000,
        "NOT " * 1000 + "a",
        "-" * 1000 + "a = 1",
        "a" + " + 1" * 1000 + " = 1",
        "a" + " * 1" * 1000 + " = 1",
        "a" + " = b" * 1000,
        "a" + " LIKE 'b'" * 1000,
        "a = '" + "x" * 70_000 + "'",
        "a = " + "9" * 5000,
    ],
)
def test_a_selector_that_would_overflow_is_refused(text):
    with pytest.raises(SelectorError):
        parse(text)


def test_a_deep_and_a_long_one_work():
    assert matches("(" * 60 + "a" + ")" * 60, a=True)
    assert matches(" OR ".join(f"a = {n}" for n in range(2000)), a=1999)
    assert matches("a" + " + 1" * 200 + " = 200", a=0)


def test_like_does_not_backtrack():
    text = "a" * 20_000
    selector = "x LIKE '" + "%a" * 200 + "%b'"

    begun = time.process_time()
    assert not matches(selector, x=text)

    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("", "a", False),
        ("%", "", True),
        ("%%", "a\nb", True),
        ("_", "", False),
        ("a%", "ab", True),
        ("%a", "ba", True),
        ("ab%ba", "aba", False),
        ("ab%ba", "abba", True),
        ("%a_c%", "xabcx", True),
        ("%ab%ab%", "xab", False),
        ("_%_", "a", False),
        ("a\\", "a\\", True),
    ],
)
def test_like(pattern, text, expected):
    assert matches(f"x LIKE '{pattern}'", x=text) is expected


def test_an_escape_counts_only_before_what_it_escapes():
    assert matches("x LIKE 'a\\bc' ESCAPE '\\'", x="a\\bc")
    assert matches("x LIKE 'a\\\\' ESCAPE '\\'", x="a\\")


def test_filters_are_equal_by_their_text():
    assert parse(" a = 1 ") == parse("a = 1")
    assert len({parse("a = 1"), parse("a = 1"), parse("a=1")}) == 2
    assert parse("a = 1") != "a = 1"
    assert isinstance(parse("a"), Filter)
    assert repr(parse("a")) == "Filter('a')"


def test_selectors_of_jms():
    assert translate_jms(
        "JMSDeliveryMode = 'PERSISTENT' AND JMSXGroupID = 'JMSPriority' OR xJMSPriority = 1"
    ) == ("AMQDurable = 'DURABLE' AND AMQGroupID = 'JMSPriority' OR xJMSPriority = 1")

"""Artemis's own tables: SelectorTest, UnknownHandlingSelectorTest, FilterTest."""

import uuid

import pytest

from broker.model.properties import PropertyType
from broker.selector import SelectorError, parse
from tests.broker.selector.stored import Stored


def message():
    return Stored().put(
        name="James",
        location="London",
        byteProp=(PropertyType.BYTE, 123),
        byteProp2=(PropertyType.BYTE, 33),
        shortProp=(PropertyType.SHORT, 123),
        intProp=123,
        longProp=(PropertyType.LONG, 123),
        floatProp=(PropertyType.FLOAT, 123.0),
        doubleProp=123.0,
        rank=123,
        version=2,
        quote="'In God We Trust'",
        foo="_foo",
        punctuation="!#$&()*+,-./:;<=>?@[\\]^`{|}~",
        endingUnderScore="XD7xlJIQn_",
        trueProp=True,
        falseProp=False,
        nullProp=None,
    )


MATCHING = [
    "name = 'James'",
    "rank > 100",
    "rank >= 123",
    "byteProp = 123",
    "byteProp2 = 33",
    "shortProp = 123",
    "intProp = 123",
    "longProp = 123",
    "floatProp = 123",
    "doubleProp = 123",
    "name = 'James' and rank < 200",
    "name = 'James' or rank < 200",
    "name = 'James' or rank > 200",
    "name = 'Foo' or rank < 200",
    "rank + 2 = 125",
    "(rank + 2) = 125",
    "125 = (rank + 2)",
    "rank + version = 125",
    "name + '!' = 'James!'",
    "rank - 2 = 121",
    "rank - version = 121",
    "rank * 2 = 246",
    "rank * version = 246",
    "rank / version = 61.5",
    "version / 2 = 1",
    "rank between 100 and 150",
    "name in ('James', 'Bob', 'Gromit')",
    "name in ('Gromit', 'Bob', 'James')",
    "name not in ('Gromit', 'Bob', 'Cheddar')",
    "dummy is null",
    "name is not null",
    "1.0 < 1.1",
    "-1.1 < 1.0",
    "1.0E1 < 1.1E1",
    "-1.1E1 < 1.0E1",
    "1. < 1.1",
    "-1.1 < 1.",
    "1.E1 < 1.1E1",
    ".1 < .5",
    "-.5 < .1",
    ".1E1 < .5E1",
    "4E10 < 5E10",
    "5E8 < 5E10",
    "-4E10 < 2E10",
    "4E+10 < 5E+10",
    "4E-10 < 5E-10",
    "quote = '''In God We Trust'''",
    "quote LIKE '''In G_d We Trust'''",
    "quote NOT LIKE '''In Gd_ We Trust'''",
    "foo LIKE '%oo'",
    "foo NOT LIKE '%ar'",
    "foo LIKE '!_%' ESCAPE '!'",
    "quote NOT LIKE '!_%' ESCAPE '!'",
    "punctuation LIKE '!#$&()*+,-./:;<=>?@[\\]^`{|}~'",
    "foo LIKE '%_%' ESCAPE '%'",
    "endingUnderScore LIKE '_D7xlJIQn$_' ESCAPE '$'",
    "endingUnderScore LIKE '_D7xlJIQn__' ESCAPE '_'",
    "endingUnderScore LIKE '%D7xlJIQn%_' ESCAPE '%'",
    "endingUnderScore LIKE '%D7xlJIQn%'  ESCAPE '%'",
    "endingUnderScore LIKE '_D7xlJIQn\\_' ESCAPE '\\'",
    "endingUnderScore LIKE '%D7xlJIQn\\_' ESCAPE '\\'",
]
NOT_MATCHING = [
    "rank >= 124",
    "byteProp = 10",
    "shortProp = 10",
    "intProp = 10",
    "longProp = 10",
    "floatProp = 10",
    "doubleProp = 10",
    "name = 'James' and rank > 200",
    "name = 'Foo' and rank < 200",
    "unknown = 'Foo' and anotherUnknown < 200",
    "unknown = 'Foo' or anotherUnknown < 200",
    "name = 'Foo' or rank > 200",
    "rank + 2 < 124",
    "rank - 2 > 122",
    "rank * 2 < 130",
    "rank / 3 > 100.0",
    "rank / 3 > 100",
    "rank between 10 and 120",
    "name in ('Gromit', 'Bob', 'Cheddar')",
    "dummy is not null",
    "name is null",
    "-5E8 > 2E2",
    "quote LIKE '''In Gd_ We Trust'''",
    "quote NOT LIKE '''In G_d We Trust'''",
    "foo LIKE '%ar'",
    "quote LIKE '!_%' ESCAPE '!'",
    "endingUnderScore LIKE '%D7xlJIQn%%'  ESCAPE '%'",
    "SessionserverId=1870414179",
    "Command NOT IN ('MirrorLobbyRequest', 'MirrorLobbyReply')",
]
INVALID = [
    "3",
    "3+5",
    "True AND 3+5",
    "=TEST 'test'",
    "prop1 = prop2 foo AND string = 'Test'",
    "a = 1 AMD  b = 2",
    "color = 'red",
    "a > 'text'",
    "a > TRUE",
    "(a = 1) > 2",
    "a = NULL",
    "NULL <> a",
    "TRUE = 1",
    "a LIKE 5",
    "a LIKE 'x' ESCAPE 'yz'",
    "1 IN ('a')",
    "a IN ()",
    "a IN (1)",
    "a.b = 1",
    "a-b = 'c' OR",
    "((a = 1)",
    "a = 08",
    "a = 0xffffffffffffffffff",
    "a = 1 §",
    '"a = 1',
    "XPATH '//['",
]
# Condition, its outcome: True, False, or None for unknown.
THREE_VALUED = [
    *[(text, True) for text in ("trueProp AND trueProp", "trueProp OR unknownProp")],
    *[(text, True) for text in ("unknownProp OR trueProp", "unknownProp IS NULL")],
    *[
        (text, True)
        for text in ("nullProp IS NULL", "trueProp IS NOT NULL", "falseProp OR trueProp")
    ],
    *[(text, False) for text in ("trueProp AND falseProp", "falseProp AND unknownProp")],
    *[(text, False) for text in ("unknownProp AND falseProp", "falseProp OR falseProp")],
    *[(text, False) for text in ("trueProp IS NULL", "unknownProp IS NOT NULL")],
    *[(text, None) for text in ("trueProp AND unknownProp", "unknownProp AND unknownProp")],
    *[(text, None) for text in ("falseProp OR unknownProp", "unknownProp OR unknownProp")],
    *[
        (f"{name} {condition}", None)
        for name in ("unknownProp", "nullProp")
        for condition in (
            *("= 0", "> 0", ">= 0", "< 0", "<= 0", "<> 0", "LIKE 'zero'", "NOT LIKE 'zero'"),
            *("IN ('zero')", "NOT IN ('zero')", "BETWEEN 1 AND 2", "NOT BETWEEN 1 AND 2"),
            *("* 2 = 0", "/ 2 = 0", "+ 2 = 0", "- 2 = 0"),
        )
    ],
    ("-unknownProp = 0", None),
    ("+unknownProp = 0", None),
    # The other way round Artemis says FALSE, not unknown.
    ("0 = unknownProp", False),
    ("unknownProp = nullProp", True),
]


@pytest.mark.parametrize("text", MATCHING)
def test_matches(text):
    assert parse(text).matches(message())


@pytest.mark.parametrize("text", NOT_MATCHING)
def test_does_not_match(text):
    assert not parse(text).matches(message())


@pytest.mark.parametrize("text", INVALID)
def test_is_no_selector(text):
    with pytest.raises(SelectorError, match=r"^selector, character \d+: .") as refused:
        parse(text)

    assert "\n" not in str(refused.value)
    assert 0 <= refused.value.position <= len(text)


@pytest.mark.parametrize(("text", "outcome"), THREE_VALUED)
def test_three_values(text, outcome):
    assert parse(text).matches(message()) is (outcome is True)
    assert parse(f"not({text})").matches(message()) is (outcome is False)


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_nothing_is_no_filter(text):
    assert parse(text) is None


def test_headers():
    identity = uuid.UUID("0a1b2c3d-4e5f-1071-8293-a4b5c6d7e8f9")
    stored = Stored(
        durable=True,
        priority=3,
        timestamp=12345678,
        expiration=2**40,
        user_id=identity.bytes,
        encoded_size=222,
        address="orders",
    ).put(_AMQ_GROUP_ID="g")

    for text in (
        *("AMQDurable='DURABLE'", "AMQPriority=3", "AMQTimestamp=12345678", "AMQSize > 221"),
        *("AMQSize < 223", f"AMQUserID='ID:{identity}'", "AMQUserID IS NOT NULL"),
        *("AMQAddress = 'orders'", "AMQGroupID = 'g'", f"AMQExpiration = {2**40}"),
    ):
        assert parse(text).matches(stored), text
    assert not parse("AMQDurable='NON_DURABLE'").matches(stored)
    assert parse("AMQUserID IS NULL AND AMQDurable='NON_DURABLE'").matches(Stored())
    assert parse("AMQGroupID IS NULL").matches(Stored())


def test_a_message_id_that_came_from_another_protocol():
    assert parse("AMQUserID = 'x'").matches(Stored().put(NATIVE_MESSAGE_ID="x"))


def test_a_property_may_have_the_name_of_a_header_that_is_missing():
    assert parse("AMQUserID = 'mine'").matches(Stored().put(AMQUserID="mine"))


XML = "<doc><a key='first' num='1'/><b key='second' num='2'>b</b></doc>"


@pytest.mark.parametrize(
    ("xpath", "expected"),
    [
        ("doc/a", True),
        ("//doc/b", True),
        ("doc/c", False),
        ('//doc/b/text()="b"', True),
        ('//doc/b="c"', False),
        ('//doc/b!="c"', True),
        ("//doc/*[@key='second']", True),
        ("//doc/*[@key='third']", False),
        ("//doc/a[@num=1]", True),
        ("/doc/b='b' and /doc/b[@key='first']", False),
        ("not(//doc/c)", True),
        ("//doc/a[not(not(@key='first'))]", True),
        ("string(//doc/b)", True),
        ("string(//doc/a)", False),
        ("sum(//@num) < 10", True),
        ("sum(//@num) > 10", False),
        ("number('x')", False),
    ],
)
def test_xpath(xpath, expected):
    quoted = xpath.replace("'", "''")

    assert parse(f"XPATH '{quoted}'").matches(Stored().with_text(XML)) is expected


@pytest.mark.parametrize(
    "stored",
    [
        Stored(),
        Stored().with_text("no xml"),
        Stored(type=4).with_text(XML),
        Stored(body=memoryview(b"\x01\x00\x00\x00\x09")),
        Stored().with_text("<a>" + "x" * 200_000 + "</a>"),
    ],
)
def test_xpath_of_what_is_no_xml_text(stored):
    assert not parse("XPATH '//a'").matches(stored)


def test_xml_entities_are_not_resolved(tmp_path):
    (tmp_path / "secret").write_text("secret")
    xml = f'<!DOCTYPE a [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]><a>&e;</a>'

    assert not parse("XPATH 'contains(//a, \"secret\")'").matches(Stored().with_text(xml))


def test_xquery_is_taken_and_never_true():
    assert not parse("XQUERY 'anything'").matches(Stored())

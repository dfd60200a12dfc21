"""Random selectors over random messages, against SQLite's three-valued logic.

Each strategy draws a pair: the selector's text, and the same in SQLite's dialect. They differ in
what JMS has otherwise: `=` with a NULL on its right, and division, which is never whole.
"""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.properties import PropertyType
from broker.selector import parse
from tests.broker.selector.stored import Stored

LONGS = ("l1", "l2")
DOUBLES = ("d1", "d2")
TEXTS = ("t1", "t2")
BOOLEANS = ("b1", "b2")
COLUMNS = (*LONGS, *DOUBLES, *TEXTS, *BOOLEANS)

TEXT = st.text("ab_%'", max_size=5)
SMALL = st.integers(0, 50)
BINARY = st.floats(0, 50).map(lambda value: round(value * 8) / 8)  # Exact in both.


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def both(text):
    """What reads the same in both."""
    return text, text


def pairs(template, *strategies, sql=None):
    """Texts put into a template, each side into its own."""
    return st.tuples(*strategies).map(
        lambda drawn: (
            template.format(*(pair[0] for pair in drawn)),
            (sql or template).format(*(pair[1] for pair in drawn)),
        )
    )


numbers = st.recursive(
    st.one_of(
        st.sampled_from(LONGS + DOUBLES).map(both),
        SMALL.map(str).map(both),
        BINARY.map(str).map(both),
    ),
    lambda inner: st.one_of(
        st.sampled_from("+-*").flatmap(lambda sign: pairs(f"({{}} {sign} {{}})", inner, inner)),
        pairs("({} / {})", inner, st.just(("4", "4.0")), sql="({} / {})"),
        pairs("(- {})", inner),
        pairs("(+{})", inner),
    ),
    max_leaves=4,
)


def without_negative_zero(pair):
    """An operand of a comparison: to Java -0.0 and 0.0 are two numbers, to SQLite they are one."""
    return tuple(f"({side} + 0)" for side in pair) if set("-*/") & set(pair[0]) else pair


operands = numbers.map(without_negative_zero)
EQUAL = (
    "(CASE WHEN {0} IS NULL THEN (CASE WHEN {1} IS NULL THEN 1 END)"
    " ELSE coalesce({0} = {1}, 0) END)"
)
texts = st.one_of(st.sampled_from(TEXTS).map(both), TEXT.map(quoted).map(both))


def like(name, pattern, escape, keyword):
    if escape:
        # Only before what it escapes does an escape mean the same in both.
        pattern = "".join("!" + c if c in "_%" and len(pattern) % 2 else c for c in pattern)
        return both(f"{name} {keyword} {quoted(pattern)} ESCAPE '!'")
    return both(f"{name} {keyword} {quoted(pattern)}")


simple = st.one_of(
    pairs("{} = {}", operands, operands, sql=EQUAL),
    pairs("{} <> {}", operands, operands, sql=f"(NOT {EQUAL})"),
    pairs("{} = {}", texts, texts, sql=EQUAL),
    pairs("{} <> {}", texts, texts, sql=f"(NOT {EQUAL})"),
    st.sampled_from([">", ">=", "<", "<="]).flatmap(
        lambda sign: pairs(f"({{}} {sign} {{}})", operands, operands)
    ),
    pairs("({} BETWEEN {} AND {})", operands, operands, operands),
    pairs("({} NOT BETWEEN {} AND {})", operands, operands, operands),
    st.sampled_from(BOOLEANS).map(both),
    st.sampled_from(BOOLEANS).flatmap(
        lambda name: pairs(f"({name} = {{}})", st.sampled_from([("TRUE", "1"), ("FALSE", "0")]))
    ),
    st.sampled_from(COLUMNS).map(lambda name: both(f"({name} IS NULL)")),
    st.sampled_from(COLUMNS).map(lambda name: both(f"({name} IS NOT NULL)")),
    st.builds(
        like,
        st.sampled_from(TEXTS),
        TEXT,
        st.booleans(),
        st.sampled_from(["LIKE", "NOT LIKE"]),
    ),
    st.builds(
        lambda name, items, keyword: both(f"({name} {keyword} ({', '.join(map(quoted, items))}))"),
        st.sampled_from(TEXTS),
        st.lists(TEXT, min_size=1, max_size=6),
        st.sampled_from(["IN", "NOT IN"]),
    ),
)
conditions = st.recursive(
    simple.map(lambda pair: (f"({pair[0]})", f"({pair[1]})")),
    lambda inner: st.one_of(
        pairs("({} AND {})", inner, inner),
        pairs("({} OR {})", inner, inner),
        pairs("({} AND {} OR {})", inner, inner, inner),
        pairs("(NOT {})", inner),
    ),
    max_leaves=6,
)
messages = st.fixed_dictionaries(
    {
        **{name: st.none() | st.integers(-50, 50) for name in LONGS},
        **{name: st.none() | BINARY for name in DOUBLES},
        **{name: st.none() | TEXT for name in TEXTS},
        **{name: st.none() | st.booleans() for name in BOOLEANS},
    }
)


@pytest.fixture(scope="module")
def database():
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA case_sensitive_like = ON")
    columns = ", ".join(
        f"{name} {'REAL' if name in DOUBLES else 'TEXT' if name in TEXTS else 'INTEGER'}"
        for name in COLUMNS
    )
    connection.execute(f"CREATE TABLE message ({columns})")
    yield connection
    connection.close()


@given(condition=conditions, message=messages)
def test_a_selector_is_what_sqlite_says(database, condition, message):
    text, sql = condition
    stored = Stored().put(
        **{
            name: (PropertyType.LONG, value) if name in LONGS else value
            for name, value in message.items()
            if value is not None
        }
    )
    with database:
        database.execute("DELETE FROM message")
        names = ", ".join(f":{name}" for name in COLUMNS)
        database.execute(f"INSERT INTO message VALUES ({names})", message)
    outcome = database.execute(f"SELECT {sql} FROM message").fetchone()[0]

    assert parse(text).matches(stored) is (outcome == 1)
    assert parse(f"NOT ({text})").matches(stored) is (outcome == 0)

"""What is packed for PostgreSQL is what it takes, and quoting leaves no way out."""

import pytest

from jdbcstore.batch import Batch
from jdbcstore.record_tables.copy_binary import copy_rows, scanned_row
from jdbcstore.record_tables.postgresql import numbered, quoted


def test_a_row_is_packed_as_copy_binary_wants_it():
    batch = Batch()
    batch.stage((1, 13, 255, b"body", 50, b"x", 9))

    packed = copy_rows(batch)

    head, rest = packed[:19], packed[19:]
    assert head == b"PGCOPY\n\xff\r\n\0" + bytes(8)
    fields = []
    assert rest[:2] == b"\0\x0b"
    rest = rest[2:]
    for _ in range(11):
        size = int.from_bytes(rest[:4], "big")
        fields.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    numbers = [int.from_bytes(field, "big", signed=True) for field in fields]
    assert [numbers[i] for i in (0, 1, 2, 3, 4, 5, 7, 9, 10)] == [1, 13, 0, 50, -1, 4, 1, 0, 9]
    assert (fields[6], fields[8]) == (b"body", b"x")
    assert rest == b"\xff\xff"


@pytest.mark.parametrize("text", ["it's", "a\\'; DROP TABLE x; --", "%s %%", "'" * 9])
def test_a_quoted_text_ends_at_its_last_quote_only(text):
    inside = quoted(text)[2:-1]

    assert inside.replace("''", "").replace("\\\\", "").count("'") == 0
    assert inside.replace("''", "'").replace("\\\\", "\\") == text


def test_marks_are_numbered():
    assert numbered("a = %s AND b LIKE '5%%' AND c = %s") == "a = $1 AND b LIKE '5%' AND c = $2"


def scanned(*fields):
    """A row as COPY BINARY sends it."""
    return len(fields).to_bytes(2, "big") + b"".join(
        (-1).to_bytes(4, "big", signed=True)
        if field is None
        else len(field).to_bytes(4, "big") + field
        for field in fields
    )


FIELDS = (
    (7).to_bytes(8, "big"),
    (11).to_bytes(2, "big"),
    (-1).to_bytes(2, "big", signed=True),
    b"body",
    (50).to_bytes(8, "big"),
    None,
    (9).to_bytes(8, "big"),
)


@pytest.mark.parametrize("head", [b"", b"PGCOPY\n\xff\r\n\0" + bytes(8)])
def test_a_row_of_a_load_is_read(head):
    assert scanned_row(head + scanned(*FIELDS)) == (7, 11, 255, b"body", 50, b"", 9)
    assert scanned_row(head + b"\xff\xff") is None


@pytest.mark.parametrize("cut", range(3, len(scanned(*FIELDS))))
def test_a_row_that_is_cut_off_is_refused(cut):
    with pytest.raises(ValueError, match=r"a row ends within|a number of"):
        scanned_row(scanned(*FIELDS)[:cut])

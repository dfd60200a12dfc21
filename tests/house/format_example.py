"""The worked example of docs/format/journal.md; run as a module it prints it.

python -m tests.house.format_example
"""

from tests.house.format_calls import MARK, header, led_record, mark

FILE_ID = 1
FILE_SIZE = 10240
SECTOR = 512  # of the closing mark, in a file as small as this
ADD, DELETE, ADD_TX, COMMIT = 11, 16, 13, 18

LEADER = (("marker", 1), ("crc32c and ordinal", 8))
HEADER_LEADER = (("marker", 1), ("crc32c and file size in sectors", 8))
HEAD = (("type", 1), ("file id", 4), ("compact count", 1))
BODY = (("record id", 8), ("body size", 4), ("user type", 1), ("body", 5))
CHECK = (("check size", 4),)


def parts():
    """(what it is, its bytes, its fields as (name, size)) for each thing in the example's file."""
    data = list(header_and_records())
    yield from data
    used = sum(len(part) for _, part, _ in data)
    yield "zeros to the end of the sector", bytes(-used % SECTOR), (("zeros", -used % SECTOR),)
    yield "mark: four records are synced; the journal was closed", mark(MARK, FILE_ID, 4), LEADER


def header_and_records():
    """The same, up to the last record."""
    yield (
        "header, with its leader",
        header(FILE_ID, file_size=FILE_SIZE),
        (("format version", 4), ("user version", 4), ("file id", 8), *HEADER_LEADER),
    )
    yield "mark: nothing is synced yet; the first flush begins", mark(MARK, FILE_ID, 0), LEADER
    yield (
        "add record 7 of user type 45",
        led_record(ADD, FILE_ID, 0, record_id=7, user_type=45, body=b"hello"),
        (*LEADER, *HEAD, *BODY, *CHECK),
    )
    yield (
        "add record 8 in transaction 100",
        led_record(ADD_TX, FILE_ID, 1, tx_id=100, record_id=8, user_type=45, body=b"world"),
        (*LEADER, *HEAD, ("transaction id", 8), *BODY, *CHECK),
    )
    yield (
        "commit of transaction 100, of which one record is in this file",
        led_record(COMMIT, FILE_ID, 2, tx_id=100, records_in_file=1),
        (*LEADER, *HEAD, ("transaction id", 8), ("records in file", 4), *CHECK),
    )
    yield "mark: three records are synced; the second flush begins", mark(MARK, FILE_ID, 3), LEADER
    yield (
        "delete record 7",
        led_record(DELETE, FILE_ID, 3, record_id=7),
        (*LEADER, *HEAD, ("record id", 8), *CHECK),
    )


def image():
    """The example's file up to its last byte that is not zero."""
    return b"".join(data for _, data, _ in parts())


def text():
    """The example as the document shows it."""
    lines = []
    offset = 0
    for title, data, fields in parts():
        lines.append(title)
        for name, size in fields:
            shown = data[:size].hex(" ") if any(data[:size]) or size <= 8 else "00 ..."
            lines.append(f"  {offset:4d}  {shown:<26}  {name}")
            data = data[size:]
            offset += size
        assert not data, title
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(text(), end="")

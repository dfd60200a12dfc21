"""Commands of MySQL's protocol, one packet each, in memory that is used again."""

import pytest

from jdbcstore.batch import Batch
from jdbcstore.record_tables.mysql_commands import Commands, plain_rows


def packet(command):
    """As the protocol has it: size in three bytes, number 0."""
    return len(command).to_bytes(3, "little") + b"\0" + command


def sized(data):
    """Bytes behind their size, as the protocol has them."""
    size = len(data)
    if size < 251:
        return bytes([size]) + data
    if size < 1 << 16:
        return b"\xfc" + size.to_bytes(2, "little") + data
    return b"\xfd" + size.to_bytes(3, "little") + data


@pytest.mark.parametrize(
    "commands", [[], [b"\x03SELECT 1"], [b"", b"\x03" * 300, b"x"], [bytes(70_000), b"\x03y"]]
)
def test_commands_stand_as_packets_one_behind_the_other(commands):
    made = Commands(commands)

    assert made.packets() == b"".join(map(packet, commands))
    assert [made[place] for place in range(len(made))] == commands
    assert made.longest == max(map(len, commands), default=0)
    with pytest.raises(IndexError):
        made[len(commands)]


def test_what_is_cleared_holds_only_what_comes_then():
    made = Commands([bytes(100), b"b"])
    made.clear()
    assert (len(made), made.packets(), made.longest) == (0, b"", 0)

    made.add(b"c")
    assert (len(made), made.packets(), made.longest) == (1, packet(b"c"), 1)


def test_a_very_large_command_is_given_back():
    made = Commands([bytes(40 << 20)])
    made.clear()
    made.add(b"small")

    assert made.packets() == packet(b"small")


@pytest.mark.parametrize("size", [0, 1, 250, 251, 65_535, 65_536])
def test_rows_stand_between_other_commands(size):
    batch = Batch()
    for number in (1, 2, 3):
        batch.insert((number, 11, 45, b"r" * size, 0, b"", number + 10))
    made = Commands([b"before"])
    assert plain_rows(batch, 0, 2, 1 << 30) == 2
    start = made.add_rows(batch, 0, 2, 7)
    made.add_rows(batch, start, 1, 8)
    made.add(b"behind")

    assert (made[0], made[3]) == (b"before", b"behind")
    for command, statement, numbers in ((made[1], 7, (1, 2)), (made[2], 8, (3,))):
        count = len(numbers)
        assert command[:10] == b"\x17" + statement.to_bytes(4, "little") + b"\0\1\0\0\0"
        assert command[10 + (6 * count + 7) // 8 + 1 + 12 * count :] == b"".join(
            number.to_bytes(8, "little")
            + (11).to_bytes(2, "little")
            + (45).to_bytes(2, "little")
            + size.to_bytes(4, "little")
            + sized(b"r" * size)
            + (number + 10).to_bytes(8, "little")
            for number in numbers
        )

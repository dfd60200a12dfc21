"""The control file: written, read back, and never believed in part."""

import pytest

from journal.compaction_recovery import read_control_file
from journal.control import ControlList, decode_control_list, encode_control_list
from journal.replacement import control_file

LISTS = [
    ControlList((), ()),
    ControlList(("activemq-data-1.amq",), ("activemq-data-9.amq.cmp",)),
    ControlList(
        tuple(f"activemq-data-{number}.amq" for number in range(300)),
        tuple(f"activemq-data-{number}.amq.cmp" for number in range(300, 400)),
        (("activemq-data-7.amq", "activemq-data-8.amq"),),
    ),
]


@pytest.mark.parametrize("control", LISTS, ids=["empty", "one", "many"])
@pytest.mark.parametrize("leader", [True, False], ids=["leader", "plain"])
def test_round_trip(tmp_path, control, leader):
    path = tmp_path / "journal-rename-control.ctr"

    data = control_file(control, 0, leader)
    path.write_bytes(data)

    assert len(data) % 4096 == 0
    assert read_control_file(path) == control


@pytest.mark.parametrize("control", LISTS, ids=["empty", "one", "many"])
def test_slack_behind_the_lists_is_ignored(control):
    assert decode_control_list(encode_control_list(control) + bytes(100)) == control


@pytest.mark.parametrize("leader", [True, False], ids=["leader", "plain"])
def test_cut_file_is_not_a_control_file(tmp_path, leader):
    path = tmp_path / "journal-rename-control.ctr"
    data = control_file(LISTS[1], 0, leader)
    end = len(data.rstrip(b"\0"))

    for size in range(end):
        path.write_bytes(data[:size])
        assert read_control_file(path) is None


def test_every_flipped_bit_is_seen(tmp_path):
    path = tmp_path / "journal-rename-control.ctr"
    data = control_file(LISTS[1], 0, True)

    for bit in range(8 * len(data.rstrip(b"\0"))):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert read_control_file(path) in (None, LISTS[1])

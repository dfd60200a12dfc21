"""What a command cannot do is one line and no traceback."""

import pytest

from tests.journal.golden import Scenario

SMALL = ("--file-size", "64K", "--buffer-size", "16K")


def test_no_id_is_left_for_append(call, shell, tmp_path):
    folder = tmp_path / "journal"
    shell("exec", folder, *SMALL, input=f"add 1 cafe id={2**63 - 2}\n")

    done = shell("append", folder, "--count", 3, "--size", 5, *SMALL)

    assert done.returncode == 2
    assert done.stdout == f"ACK {2**63 - 1}\n"
    assert "no id is left above" in done.stderr
    assert "Traceback" not in done.stderr
    assert call("print-data", folder, "--format", "ids")[1] == [str(2**63 - 2), str(2**63 - 1)]


@pytest.mark.parametrize("command", ["append", "print-data", "stat", "verify", "compact", "export"])
@pytest.mark.parametrize("number", [99999999999, 2**31, -(2**31) - 1])
def test_a_user_version_out_of_range_is_refused(command, number, call, shell, tmp_path):
    shell("append", tmp_path / "journal", "--count", 1, *SMALL)

    status, out, said = call(command, tmp_path / "journal", "--user-version", number)

    assert (status, out) == (2, [])
    assert "--user-version" in said[-1]


@pytest.mark.parametrize(
    "name", ["mid_compact_cmp", "mid_compact_control", "mid_compact_half_renamed"]
)
def test_raw_shows_what_is_on_disk_while_a_compaction_is_half_done(name, call, tmp_path):
    folder = Scenario(name).unpack(tmp_path)
    names = {path.name for path in folder.iterdir() if path.stat().st_size >= 16}

    status, out, said = call("print-data", folder, "--raw")

    shown = {name for name in names if any(name in line for line in out)}
    assert status == 0
    assert shown == {name for name in names if not name.endswith(".tmp")}
    assert "shown as it is before recovery" in said[0]
    assert {path.name for path in folder.iterdir()} >= names

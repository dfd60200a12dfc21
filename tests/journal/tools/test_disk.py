"""What lies under a folder, from a kernel's view made by hand."""

import os

import pytest

from journal.tools.disk import disk_facts


@pytest.fixture
def machine(tmp_path):
    """`machine(mount, write_cache=..., ...)`: the facts of a machine with such a disk."""
    folder = tmp_path / "data"
    folder.mkdir()
    number = os.stat(folder).st_dev
    device = f"{os.major(number)}:{os.minor(number)}"

    def facts(kind, options="rw", *, datasync=True, **attributes):
        disk = tmp_path / "sys" / "devices" / "disk0"
        (disk / "queue").mkdir(parents=True)
        (disk / "disk0p1").mkdir()
        for name, value in attributes.items():
            (disk / "queue" / name).write_text(f"{value}\n")
        place = tmp_path / "sys" / "dev" / "block"
        place.mkdir(parents=True)
        (place / device).symlink_to(disk / "disk0p1")
        mounts = tmp_path / "mountinfo"
        mounts.write_text(
            "1 0 0:1 / / rw - overlay none rw\n"
            f"2 1 {device} / {tmp_path} rw,relatime shared:1 - {kind} /dev/disk0p1 {options}\n"
        )
        return disk_facts(folder, datasync=datasync, system=tmp_path / "sys", mounts=mounts)

    return facts


def test_disk_of_a_partition_is_found(machine):
    facts = machine(
        "xfs",
        logical_block_size=512,
        physical_block_size=4096,
        write_cache="write back",
        fua=1,
        rotational=0,
    )

    assert (facts.file_system, facts.device) == ("xfs", "disk0")
    assert (facts.logical_block_size, facts.physical_block_size) == (512, 4096)
    assert (facts.write_cache, facts.fua, facts.rotational) == ("write back", True, False)
    assert facts.mount_options == "rw,relatime"


@pytest.mark.parametrize(
    ("kind", "options", "attributes", "sentence"),
    [
        ("ext4", "rw", {"write_cache": "write back", "fua": 0}, "a flush of the whole cache"),
        ("ext4", "rw", {"write_cache": "write back", "fua": 1}, "a forced write (FUA)"),
        ("ext4", "rw", {"write_cache": "write through"}, "no volatile write cache"),
        ("ext4", "rw,nobarrier", {"write_cache": "write through"}, "without barriers"),
        ("ext4", "rw", {}, "does not say"),
        ("tmpfs", "rw", {}, "nothing survives"),
        ("nfs4", "rw", {}, "a server keeps the data"),
        ("ext4", "rw", {"write_cache": "write through", "datasync": False}, "without datasync"),
    ],
)
def test_power_loss_in_one_sentence(kind, options, attributes, sentence, machine):
    assert sentence in machine(kind, options, **attributes).power_loss


def test_system_that_says_nothing_is_unknown(tmp_path):
    facts = disk_facts(tmp_path, system=tmp_path / "none", mounts=tmp_path / "none")

    assert (facts.file_system, facts.device, facts.write_cache, facts.fua) == (None,) * 4
    assert "does not say" in facts.power_loss

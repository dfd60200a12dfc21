"""A compaction that was cut off: finished or undone, and never half."""

import pytest

from journal.compaction_recovery import SystemFolder, apply_recovery, plan_recovery
from journal.control import ControlList, encode_control_list
from journal.errors import JournalDamaged, JournalIOError
from journal.folder import CONTROL_FILE, JournalName
from tests.journal.build import Built, flip_byte

OLD = ("activemq-data-1.amq", "activemq-data-2.amq")
NEW = ("activemq-data-3.amq.cmp",)


def write_control(folder, control):
    built = Built(file_id=0, has_leaders=False, size=512)
    built.add(1, encode_control_list(control))
    path = folder / CONTROL_FILE
    built.save(folder, 99).rename(path)
    return path


@pytest.fixture
def folder(tmp_path):
    """Two old files, one new one, and a control file that says so."""
    for file_id in (1, 2):
        built = Built(file_id=file_id)
        built.add(file_id)
        built.save(tmp_path)
    new = Built(file_id=1)
    new.add(12)
    new.save(tmp_path, 3).rename(tmp_path / NEW[0])
    write_control(tmp_path, ControlList(OLD, NEW))
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Killed(Exception):
    """The process ends here."""


class KilledAfter(SystemFolder):
    """Does so many calls, then is killed."""

    def __init__(self, folder, calls):
        super().__init__(folder)
        self.calls = calls

    def count(self):
        if self.calls == 0:
            raise Killed
        self.calls -= 1

    def delete(self, name):
        self.count()
        super().delete(name)

    def rename(self, source, target):
        self.count()
        super().rename(source, target)

    def sync_file(self, name):
        self.count()
        super().sync_file(name)

    def sync(self):
        self.count()
        super().sync()


def test_plan_touches_nothing_and_shows_the_new_files(folder):
    before = names(folder)

    plan = plan_recovery(folder, JournalName())

    assert names(folder) == before
    assert [(file.name, file.path.name) for file in plan.files] == [
        ("activemq-data-3.amq", "activemq-data-3.amq.cmp")
    ]
    assert "1 new files replace 2 old ones" in plan.describe()


@pytest.mark.parametrize("calls", range(11))
def test_recovery_killed_anywhere_ends_the_same_when_run_again(folder, calls):
    try:
        apply_recovery(plan_recovery(folder, JournalName()), KilledAfter(folder, calls))
    except Killed:
        assert calls < 9

    apply_recovery(plan_recovery(folder, JournalName()))

    assert names(folder) == ["activemq-data-3.amq"]


class Noted(SystemFolder):
    """Writes down what recovery does, in order."""

    def __init__(self, folder):
        super().__init__(folder)
        self.calls = []

    def delete(self, name):
        self.calls.append(("delete", name))
        super().delete(name)

    def rename(self, source, target):
        self.calls.append(("rename", source))
        super().rename(source, target)

    def sync_file(self, name):
        self.calls.append(("sync_file", name))
        super().sync_file(name)

    def sync(self):
        self.calls.append(("sync", ""))
        super().sync()


def test_list_and_new_files_are_on_disk_before_an_old_file_goes(folder):
    """A process that was killed may have written the list and never synced it."""
    operations = Noted(folder)

    apply_recovery(plan_recovery(folder, JournalName()), operations)

    first_change = min(i for i, (call, _) in enumerate(operations.calls) if "sync" not in call)
    assert operations.calls[:first_change] == [
        ("sync_file", NEW[0]),
        ("sync_file", CONTROL_FILE),
        ("sync", ""),
    ]


def test_damaged_control_file_leaves_the_old_files(folder):
    flip_byte(folder / CONTROL_FILE, 17)

    apply_recovery(plan_recovery(folder, JournalName()))

    assert names(folder) == list(OLD)


def test_new_file_under_an_old_name_survives_a_second_run(folder):
    """Its rename came through, the end of the first run did not."""
    write_control(folder, ControlList(OLD, ("activemq-data-2.amq.cmp",)))
    (folder / NEW[0]).unlink()

    apply_recovery(plan_recovery(folder, JournalName()))

    assert names(folder) == ["activemq-data-2.amq"]


@pytest.mark.parametrize(
    "control",
    [
        ControlList(("/etc/passwd",), ()),
        ControlList(("../activemq-data-1.amq",), ()),
        ControlList((), ("activemq-data-3.amq",)),
        ControlList((), (), (("activemq-data-1.amq", "server.lock"),)),
    ],
    ids=str,
)
def test_control_file_with_foreign_names_is_refused(folder, control):
    write_control(folder, control)
    before = names(folder)

    with pytest.raises(JournalDamaged, match="none of this journal's"):
        plan_recovery(folder, JournalName())

    assert names(folder) == before


def test_foreign_leftovers_stay(folder):
    for name in ("notes.amq.tmp", "other-1.amq.cmp", "activemq-data-9.amq.tmp"):
        (folder / name).touch()

    apply_recovery(plan_recovery(folder, JournalName()))

    assert names(folder) == ["activemq-data-3.amq", "notes.amq.tmp", "other-1.amq.cmp"]


def test_failing_call_is_an_error_with_the_file_s_name(folder, monkeypatch):
    plan = plan_recovery(folder, JournalName())
    (folder / OLD[0]).unlink()
    (folder / OLD[0]).mkdir()

    with pytest.raises(JournalIOError, match=OLD[0]):
        apply_recovery(plan)

"""Names of journal files: what belongs to a journal, and in which order."""

import doctest

import pytest

import journal.control
import journal.folder
from journal.errors import JournalIOError, WrongUse
from journal.folder import JournalName, guess_name, list_files, parse_name
from tests.journal.build import Built


@pytest.mark.parametrize("module", [journal.folder, journal.control])
def test_examples_in_the_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "file",
    [
        "activemq-data-.amq",
        "activemq-data-1.amq.tmp",
        "activemq-data-1.amqx",
        "activemq-data-x.amq",
        "activemq-data--1.amq",
        "xactivemq-data-1.amq",
        "activemq-data-1.amq\n",
        "activemq-data-9999999999999999999.amq",
        "sub/activemq-data-1.amq",
        "activemq-data-١.amq",
    ],
)
def test_name_that_is_not_one_of_the_journal_s_is_foreign(file):
    assert parse_name(JournalName(), file) is None


def test_guess_takes_sidecars_too(tmp_path):
    (tmp_path / "bindings-3.bin.cmp").touch()

    assert guess_name(tmp_path) == JournalName("bindings", "bin")


def test_guess_needs_one_pair(tmp_path):
    for name in ("a-1.x", "b-1.x"):
        (tmp_path / name).touch()

    with pytest.raises(WrongUse, match=r"a-N\.x, b-N\.x"):
        guess_name(tmp_path)
    assert guess_name(tmp_path, prefix="b") == JournalName("b", "x")


def test_guess_with_both_given_still_reads_the_folder(tmp_path):
    with pytest.raises(JournalIOError, match="cannot read"):
        guess_name(tmp_path / "gone", "a", "x")


def test_files_are_ordered_by_id_with_short_ones_first(tmp_path):
    Built(file_id=9).save(tmp_path, 1)
    Built(file_id=2).save(tmp_path, 7)
    (tmp_path / "activemq-data-4.amq").write_bytes(b"short")

    files = list_files(tmp_path, JournalName())

    assert [(file.number, file.file_id, file.is_short) for file in files] == [
        (4, 0, True),
        (7, 2, False),
        (1, 9, False),
    ]

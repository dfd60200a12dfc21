"""The decoder fed by the journal's own reader and loader, without anything in between."""

import re
from importlib.metadata import entry_points

import pytest

from broker.printing.journal_decoder import JournalDecoder
from journal.folder import JournalName, list_files
from journal.index import RecordIndex
from journal.loader import Loader
from journal.reader import read_folder
from tests.unpack import unpack

DECODER = JournalDecoder()
NAMES = {
    "messages": ("journal", JournalName("activemq-data", "amq")),
    "bindings": ("bindings", JournalName("activemq-bindings", "bindings")),
}
IDENTITY = re.compile(r"(?<=\]@)\d+|(?<=BridgeConfiguration@)[0-9a-f]+|(?<=XidImpl \()\d+")


@pytest.fixture
def files(scenario, journal, tmp_path):
    folder, name = NAMES[journal]
    return list_files(unpack(scenario.folder / "broker.tar.gz", tmp_path) / folder, name)


def test_print_of_a_folder_is_that_of_artemis(scenario, journal, files):
    loader = Loader(files, RecordIndex())
    result = loader.load()

    lines = [
        *DECODER.print_files(NAMES[journal][0], read_folder(files)),
        *DECODER.print_surviving(loader.records(), result.prepared, result.failed),
    ]

    assert lines == [IDENTITY.sub("0", line) for line in scenario.printed(journal)]


def test_every_live_record_decodes(files):
    loader = Loader(files, RecordIndex())
    loader.load()

    for record in loader.records():
        decoded = DECODER.decode(
            record.user_type,
            record.body,
            record_id=record.record_id,
            is_update=record.is_update,
        )
        assert decoded is not None
        assert "error" not in decoded


def test_the_journal_finds_the_decoder_by_its_entry_point():
    (entry,) = entry_points(group="quiver.journal.decoders", name="broker")

    assert entry.load() is JournalDecoder

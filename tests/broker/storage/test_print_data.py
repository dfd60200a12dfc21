"""The text around the records, line by line against the reference's `data print`."""

import re
from itertools import chain

from broker.storage.records import JournalDecoder

DECODER = JournalDecoder()
PATHS = {"messages": "journal", "bindings": "bindings"}
IDENTITY = re.compile(r"(?<=\]@)\d+|(?<=BridgeConfiguration@)[0-9a-f]+|(?<=XidImpl \()\d+")


def test_whole_print_is_that_of_the_reference(scenario, journal):
    files = DECODER.print_files(PATHS[journal], scenario.files(journal))
    surviving = DECODER.print_surviving(scenario.load(journal))

    lines = list(chain(files, surviving))

    assert lines == [IDENTITY.sub("0", line) for line in scenario.printed(journal)]

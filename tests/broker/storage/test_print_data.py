"""The text around the records, line by line against Artemis's `data print`."""

import re
import struct
from itertools import chain

import pytest

from broker.printing.journal_decoder import JournalDecoder
from broker.printing.print_data import section_lines
from tests.broker.storage.scenarios import Delete, File, Live, Load, Record, Transaction

DECODER = JournalDecoder()
PATHS = {"messages": "journal", "bindings": "bindings"}
IDENTITY = re.compile(r"(?<=\]@)\d+|(?<=BridgeConfiguration@)[0-9a-f]+|(?<=XidImpl \()\d+")


def print_load(load, **options):
    return DECODER.print_surviving(load.committed, load.prepared, load.failed, **options)


def test_whole_print_is_that_of_artemis(scenario, journal):
    files = DECODER.print_files(PATHS[journal], scenario.files(journal))
    surviving = print_load(scenario.load(journal))

    lines = list(chain(files, surviving))

    assert lines == [IDENTITY.sub("0", line) for line in scenario.printed(journal)]


def lines_of(record):
    return list(DECODER.print_files("p", [File("f-1.amq", 2**31 + 5, 1024, [record])]))


def test_a_file_line_shows_the_low_bits_of_the_file_id():
    record = Record("rollback", tx_id=3)

    assert lines_of(record) == [
        "Journal path: p",
        "#JournalFileImpl: (f-1.amq id = 2147483653, recordID = 5) (size=1024)",
        "operation@Rollback;txID=3",
        "",
    ]


@pytest.mark.parametrize(
    ("record", "head", "text"),
    [
        (
            Record("event", record_id=5, user_type=49, body=b"x"),
            "operation@Event;recordID=5;userRecordType=49;isUpdate=false;compactCount=0;",
            "** null **",
        ),
        (
            Record("add", record_id=-1, user_type=200, compact_count=127, body=b""),
            "operation@AddRecord;recordID=-1;userRecordType=-56;isUpdate=false;compactCount=127;",
            "** null **",
        ),
        (
            Record("update_tx", record_id=5, tx_id=9, user_type=35, body=bytes(11) + b"\1"),
            "operation@UpdateTX;txID=9,recordID=5;userRecordType=35;isUpdate=true;compactCount=0;",
            "PageUpdateTXEncoding [pageTX=0, records=1]",
        ),
        (
            Record("prepare", tx_id=9, records_in_file=2, body=b"\xff\xff"),
            "operation@Prepare,txID=9,numberOfRecords=2,extraData=__8=, xid=",
            "null",
        ),
        (Record("delete", record_id=5), "operation@DeleteRecord;recordID=5", ""),
        (
            Record("add", record_id=5, user_type=32, body=b"x"),
            "operation@AddRecord;recordID=5;userRecordType=32;isUpdate=false;compactCount=0;",
            "** damaged: 8 bytes wanted, 1 left at byte 0 of 1 **",
        ),
    ],
)
def test_record_lines(record, head, text):
    assert lines_of(record)[2:] == [head + text, ""]


def counter(kind, user_type, *values):
    layout = ">qqq" if user_type == 40 else ">qiq"
    return Record(kind, record_id=1, user_type=user_type, body=struct.pack(layout, *values))


def test_updates_of_page_counters_are_followed_in_file_order():
    records = [
        counter("update", 41, 7, 2, 10),
        counter("update_tx", 40, 7, 5, 50),
        counter("update", 40, 7, -3, 60),
        counter("update", 41, 7, 4, 10),
        counter("add", 40, 8, 9, 9),
        Record("update", record_id=1, user_type=40, body=b"short"),
    ]
    lines = list(DECODER.print_files("p", [File("f", 1, 16, records)]))

    assert [line for line in lines if line.startswith(("#C", "##", "Q"))] == [
        "#Counter queue 7 value=0 persistentSize=0 increased by 2",
        "#Counter queue 7 value=5 persistentSize=50, result=5",
        "####### Counter replace wrongly on queue 7 oldValue=5 newValue=-3",
        "#Counter queue 7 value=-3 persistentSize=60, result=-3 #NegativeCounter!!!!",
        "#Counter queue 7 value=-3 persistentSize=60 increased by 4 #NegativeCounter!!!!",
        "#Counters during initial load:",
        "Queue 7 value=-3",
    ]


REFERENCE_LINE = (
    "recordID=1;userRecordType=32;isUpdate=true;compactCount=0;AddRef;QueueEncoding [queueID=5]"
)


def reference(user_type, queue_id):
    return user_type, struct.pack(">q", queue_id)


def test_message_counts():
    counts = DECODER.message_counts()
    for record in [
        (45, b""),
        (31, b""),
        (30, b""),
        reference(32, 5),
        reference(32, 5),
        reference(33, 5),
        reference(33, 6),
        reference(33, 6),
        (32, b"bad"),
        (99, b""),
    ]:
        counts.add(*record)
    for record in [
        (45, b""),
        (30, b""),
        reference(32, 5),
        reference(33, 5),
    ]:
        counts.add_prepared(*record)

    assert list(counts.lines()) == [
        "### Message Counts ###",
        "message count=2",
        "large message count=1",
        "message reference count",
        "queue id 5,count=1",
        "queue id 6,count=-1",
        "prepared message count=1",
        "prepared large message count=1",
        "prepared message reference count",
        "queue id 5,count=1",
    ]


def test_deletes_of_transactions_are_marked():
    record = Live(1, *reference(32, 5), is_update=True)
    failed = Transaction(2, [record], [Delete(9)])
    load = Load([], [Transaction(1, [], [Delete(8)])], [failed])

    assert list(print_load(load))[:11] == [
        "### Surviving Records Summary ###",
        "",
        "### Prepared TX ###",
        "1",
        "- recordID=8;userRecordType=0;isUpdate=true;compactCount=0;** null ** <marked to delete>",
        "",
        "### Failed Transactions (Missing commit/prepare/rollback record) ###",
        "Transaction 2 failed with these records:",
        f"- {REFERENCE_LINE}",
        "- recordID=9;userRecordType=0;isUpdate=true;compactCount=0;** null ** <marked to delete>",
        "",
    ]


def test_safe_text_reaches_every_record():
    body = struct.pack(">i", 2) + b"a\0" + bytes(4) + b"\0\0"
    record = Record("add", record_id=1, user_type=44, body=body)
    safe = "PersistentAddressBindingEncoding(safe data)"

    assert list(DECODER.print_files("p", [File("f", 1, 16, [record])], safe=True))[2].endswith(safe)
    live = Live(1, 44, body)
    load = Load([live], [Transaction(1, [live], [])], [])
    assert str(list(print_load(load, safe=True))).count(safe) == 2


def test_sections_are_framed():
    assert list(section_lines("P A G I N G")) == ["", "*" * 44, "P A G I N G", "*" * 44]

"""What is said of each message in a page, and of the page."""

import struct

import pytest

from broker.model.message import Message
from broker.printing.live_messages import LiveMessages
from broker.printing.print_pages import PagePrinter
from broker.records.page_records import encode_entry
from broker.storage.page_folders import FileFolders
from tests.broker.storage.scenarios import Live

TX = 900


def entry(number, queue_ids, tx_id=-1):
    message = Message("a", b"body", message_id=number, durable=True)
    return encode_entry(message, queue_ids, tx_id)


@pytest.fixture
def pages(tmp_path):
    folders = FileFolders(tmp_path)
    folder = folders.create("a", 1)
    folder.append(1, [entry(0, (7, 8)), entry(1, (7,)), entry(2, (7, 99), TX)])
    folder.append(3, [entry(3, (8,), TX + 1), b"{torn"])
    folder.sync(3)
    folder.close()
    return folders.view()


@pytest.fixture
def journal():
    with LiveMessages() as found:
        found.take(
            [
                Live(1, 39, struct.pack(">qqi", 7, 1, 0)),
                Live(2, 42, struct.pack(">qqi", 8, 1, 3)),
                Live(3, 35, struct.pack(">qi", TX, 1)),
            ]
        )
        yield found


def test_every_queue_of_every_message_is_evaluated(pages, journal):
    lines = list(PagePrinter(journal, {7, 8}, safe=True).lines(pages))

    shown = [line for line in lines if line.startswith(("pg=", "^^^", "***", "Number"))]
    assert shown[:2] == [
        "Number of pages ::2, Current writing page ::3",
        "*******   Page 1",
    ]
    queues = [line.partition(",Queues = ")[2] for line in shown if line.startswith("pg=")]
    assert queues == [
        "7 (ACK),8 (PG-COMPLETE)",
        "7 (OK) ",
        "7 (OK) ,99 (N/A) ",
        "8 (OK) , **PG_TX_NOT_FOUND**",
    ]
    heads = [line.partition(", msg=C")[0] for line in shown if line.startswith("pg=")]
    assert heads == [
        "pg=1, msg=0,pgTX=-1",
        "pg=1, msg=1,pgTX=-1",
        "pg=1, msg=2,pgTX=900",
        "pg=3, msg=0,pgTX=901",
    ]
    left = [line for line in shown if line.startswith("^^^")]
    assert left[1] == "^^^ Previous record has 1 acked queues and 2 queues routed"
    assert len(left) == 3


def test_pages_are_counted_as_artemis_counts_them(pages, journal):
    lines = list(PagePrinter(journal, {7, 8}, max_pages=0).lines(pages))

    assert lines[-1] == "******* Giving up at Page 3, System has a total of 2 pages"

"""Our broker on a folder that Artemis's wrote while it was paging."""

import asyncio
import re
from pathlib import Path

from broker.records.page_records import NO_TX, entries
from tests.broker.paging.runs import BrokerRun, durable
from tests.unpack import unpack

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "broker_paging"
QUEUE_IDS = (7, 12, 15)


def expected_counts(folder):
    """By queue id, what it has in pages: all that counts, less what Artemis's print says
    is acknowledged; and what is prepared.
    """
    text = (GOLDEN / "data_print.txt").read_text()
    surviving, prepared = text.split("### Surviving Records Summary ###")[-1].split(
        "### Prepared TX ###"
    )
    committed = set(map(int, re.findall(r"Impl\(transactionID=(\d+)", surviving)))
    in_doubt = set(map(int, re.findall(r"Impl\(transactionID=(\d+)", prepared)))
    counts = dict.fromkeys(QUEUE_IDS, 0)
    prepared_count = 0
    for page in folder.glob("paging/*/*.page"):
        for entry in entries(page.read_bytes(), 0, 0):
            prepared_count += entry.tx_id in in_doubt
            if entry.tx_id in {NO_TX, *committed}:
                for queue_id in entry.queue_ids:
                    counts[queue_id] += 1
    for queue_id, number in re.findall(
        r"CursorAckRecordEncoding \[queueID=(\d+), position=.*?messageNr=(-?\d+)", surviving
    ):
        counts[int(queue_id)] -= int(number) >= 0
    return counts, prepared_count


def test_what_artemis_has_in_pages_is_found_and_comes(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    unpack(GOLDEN / "broker.tar.gz", folder)
    (folder / "large").rename(folder / "largemessages")
    expected, prepared_count = expected_counts(folder)
    assert all(count > 0 for count in expected.values())
    assert prepared_count

    async def live():
        async with BrokerRun(folder) as run:
            queues = run.broker.parts.postoffice.addresses.queues_by_id
            found = {one: queues[one].pages.unread_count for one in QUEUE_IDS}
            (xid,) = run.broker.parts.transactions.in_doubt()
            session = run.session(is_xa=True, auto_commit_sends=False, auto_commit_acks=False)
            await durable(session.xa.commit, xid, False)
            more = queues[7].pages.unread_count - found[7]
            for one in QUEUE_IDS:
                sink = run.consume(queues[one].name)
                while queues[one].message_count:
                    count = len(sink.acknowledged) if hasattr(sink, "acknowledged") else 0
                    await run.until(lambda sink=sink, count=count: len(sink.got) > count)
                    sink.acknowledged = list(sink.ids)
                    await run.acknowledge(sink, sink.ids[-1])
                assert len(set(sink.ids)) == len(sink.ids)
            await run.until(lambda: not list(folder.glob("paging/*/*.page")))
            return found, more

    found, more = asyncio.run(live())

    assert found == expected
    assert more == prepared_count

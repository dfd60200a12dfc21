"""Metrics and health over HTTP, of a broker that runs."""

import asyncio
import re
from dataclasses import replace

import pytest

from broker.errors import BrokerError
from broker.management.metrics import SERIES_MAX, Metrics
from broker.options import BrokerOptions, WebOptions
from broker.server.server import Broker
from tests.broker.bench import done, message
from tests.broker.management.managed import ManagedBench


async def get(port, path, accept="*/*"):
    """Status, content type and text of an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nConnection: close\r\n\r\n".encode()
    )
    head, _, body = (await asyncio.wait_for(reader.read(), 60)).decode().partition("\r\n\r\n")
    writer.close()
    kind = re.search(r"content-type: (.*)", head, re.IGNORECASE)
    return int(head.split()[1]), kind and kind[1].strip(), body


OPTIONS = BrokerOptions(name="b", acceptors=(), web=(WebOptions(host="127.0.0.1", port=0),))


def test_a_broker_tells_what_it_counts_and_whether_it_serves():
    async def run():
        broker = Broker(OPTIONS)
        await broker.start()
        try:
            port = broker.web[0].port
            answers = [
                await get(port, path) for path in ("/metrics", "/livez", "/readyz", "/healthz")
            ]
            none = await get(port, "/other")
            broker.lifecycle.fail(OSError("the disk is gone"))
            late = await get(port, "/readyz")
            broker.lifecycle.failure = None
        finally:
            await broker.stop()
        with pytest.raises(OSError, match=r"refused|failed"):
            await asyncio.open_connection("127.0.0.1", port)
        return answers, none, late

    answers, none, late = asyncio.run(run())

    assert [status for status, _, _ in answers] == [200] * 4
    assert answers[0][1].startswith("text/plain; version=")
    assert 'artemis_active{broker="b"} 1.0' in answers[0][2]
    assert "process_resident_memory_bytes" in answers[0][2]
    assert (answers[1][2], answers[2][2]) == ("alive\n", "ready\n")
    assert none[0] == 404
    assert (late[0], late[2]) == (503, "not ready: the disk is gone\n")


def test_a_port_that_is_taken_is_told_before_clients_come():
    async def both():
        first = Broker(OPTIONS)
        await first.start()
        taken = WebOptions(host="127.0.0.1", port=first.web[0].port)
        try:
            with pytest.raises(BrokerError, match="the web server cannot listen on"):
                await Broker(replace(OPTIONS, web=(taken,))).start()
        finally:
            await first.stop()

    asyncio.run(both())


def values(text):
    """Series by name and labels."""
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_queues_addresses_and_duplicates_are_measured():
    bench = ManagedBench()
    bench.queue("q")
    for body in "12":
        bench.session().send(message(body, _AMQ_DUPL_ID="same"), done)
    bench.consume("q")

    kind, text = Metrics(bench).answer("application/openmetrics-text; version=1.0.0")

    found = values(text)
    queue = '{address="q",broker="bench",queue="q"}'
    assert kind.startswith("application/openmetrics-text")
    assert found[f"artemis_message_count{queue}"] == 1
    assert found[f"artemis_delivering_message_count{queue}"] == 1
    assert found[f"artemis_consumer_count{queue}"] == 1
    assert found['quiver_duplicates_rejected_total{broker="bench"}'] == 1
    assert found['quiver_address_duplicates_rejected_total{address="q",broker="bench"}'] == 1
    assert found['artemis_routed_message_count{address="q",broker="bench"}'] == 1


def test_of_many_queues_those_with_most_messages_are_told_unless_all_are_wanted():
    bench = ManagedBench()
    bench.set("hidden", enable_metrics=False)
    for number in range(SERIES_MAX + 5):
        bench.queue(f"q{number}")
    bench.queue("hidden")
    bench.session().send(message("1", address="q104"), done)

    some = values(Metrics(bench).answer(None)[1])
    everything = values(Metrics(bench).answer(None, is_whole=True)[1])

    def counted(found):
        return [name for name in found if name.startswith("artemis_message_count")]

    assert len(counted(some)) == SERIES_MAX
    assert any('queue="q104"' in name for name in counted(some))
    assert len(counted(everything)) == SERIES_MAX + 6
    assert some['quiver_queues{broker="bench"}'] == SERIES_MAX + 7
    assert not any("hidden" in name for name in everything)

"""server-dump-interval: a line about the broker's state, every so often."""

import asyncio
import logging

from broker.options import BrokerOptions
from broker.server.server import Broker
from broker.server.server_dump import server_dump
from tests.broker.bench import Bench, done, message
from tests.broker.log_lines import Lines


def test_what_a_line_says():
    bench = Bench()
    bench.queue()
    bench.session().send(message(), done)
    bench.loop.run_turns()

    line = server_dump(bench.addresses.memory, bench.paging, 3)

    assert line.startswith("messages: 1 in memory, ")
    assert "paging: none; " in line
    assert line.endswith("connections: 3")


def test_it_comes_every_so_often(caplog):
    caplog.set_level(logging.INFO, "broker")

    async def serve():
        lines = Lines()
        logging.getLogger("broker").addHandler(lines)
        broker = Broker(BrokerOptions(acceptors=(), server_dump_interval=10))
        await broker.start()
        try:
            await lines.until("AMQ221004: messages: 0 in memory")
            await lines.until("AMQ221004: messages: 0 in memory")
        finally:
            logging.getLogger("broker").removeHandler(lines)
            await broker.stop()

    asyncio.run(serve())

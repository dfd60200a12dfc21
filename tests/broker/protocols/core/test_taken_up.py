"""A session that is taken up on a new connection: how far it came, as its client is told."""

import asyncio

from broker.protocols.core import packet_connection as connections
from broker.protocols.core import packet_session as sessions
from broker.protocols.core import versions
from broker.protocols.core.frames import MAGIC, FrameReader
from broker.protocols.core.packet_message import Send
from broker.protocols.core.packets import decode_packet
from broker.storage.context import Gate
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bench import message
from tests.broker.test_recovery import Life

CHANNEL = 10
VERSION = versions.CURRENT
WINDOW = 100_000
ACCEPTORS = (AcceptorOptions(port=0),)


class Wire:
    """A transport that keeps what is written."""

    def __init__(self):
        self.written = []
        self._is_closed = False

    def write(self, data):
        self.written.append(bytes(data))

    def get_extra_info(self, name, default=None):
        return ("127.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, **limits):
        pass

    def is_closing(self):
        return self._is_closed

    def close(self):
        self._is_closed = True

    abort = close


class Peer:
    """A connection to the broker of a life."""

    def __init__(self, life):
        self.wire = Wire()
        self.frames = FrameReader()
        self.connection = life.broker.acceptors[0]._accept()
        self.connection.connection_made(self.wire)
        self.connection.data_received(MAGIC)
        self.put(connections.Ping(60_000), 0)

    def put(self, packet, channel=CHANNEL):
        self.connection.data_received(packet.frame(channel, VERSION))

    def begin(self, name):
        session = connections.CreateSession(
            *(name, CHANNEL, VERSION, None, None, 100_000),
            xa=False,
            auto_commit_sends=True,
            auto_commit_acks=True,
            window_size=WINDOW,
            pre_acknowledge=False,
            default_address=None,
        )
        self.put(session, connections.SESSION_CHANNEL)

    def take_up(self, name):
        self.put(connections.ReattachSession(name, -1), connections.SESSION_CHANNEL)

    def lose(self):
        self.wire.close()
        self.connection.connection_lost(None)

    def answers(self, kind=connections.ReattachSessionResponse):
        """Those of a kind."""
        packets = [
            decode_packet(kind, body, VERSION)
            for data in self.wire.written
            for kind, _, body in self.frames.feed(data)
        ]
        self.wire.written.clear()
        return [one for one in packets if isinstance(one, kind)]


def send(number):
    return Send(message(str(number)), requires_response=True, correlation_id=number)


async def until(is_so):
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 -- what is durable comes from a thread.
            await asyncio.sleep(0.001)


def test_what_is_not_durable_yet_counts_before_the_client_is_told(tmp_path):
    async def run():
        async with Life(tmp_path / "data", acceptors=ACCEPTORS) as life:
            await life.queue()
            storage = life.broker.core.storage
            first = Peer(life)
            first.begin("s")
            gate = Gate()
            storage.new_context().after_gate(gate, lambda error: None)
            for number in range(3):
                first.put(send(number))
            first.lose()
            lost_again = Peer(life)
            lost_again.take_up("s")
            lost_again.lose()
            second = Peer(life)
            second.take_up("s")
            assert second.answers() == []

            gate.open(lambda storage: None, storage)
            storage.completions.run_due()
            found = []
            await until(lambda: found.extend(second.answers()) or found)
            assert found == [connections.ReattachSessionResponse(2, True)]
            assert lost_again.answers() == []
            assert life.bodies() == ["0", "1", "2"]
            second.put(send(3))
            await until(lambda: len(life.bodies()) == 4)

    asyncio.run(run())


def test_what_was_refused_counts(tmp_path):
    async def run():
        async with Life(tmp_path / "data", acceptors=ACCEPTORS) as life:
            await life.queue()
            first = Peer(life)
            first.begin("s")
            first.put(sessions.CreateConsumer(0, "missing"))
            first.put(send(0))
            await until(lambda: life.bodies() == ["0"])
            first.lose()
            second = Peer(life)
            second.take_up("s")
            found = []
            await until(lambda: found.extend(second.answers()) or found)
            assert found == [connections.ReattachSessionResponse(1, True)]

    asyncio.run(run())


def test_a_session_is_begun_anew_by_who_never_got_the_answer(tmp_path):
    async def run():
        async with Life(tmp_path / "data", acceptors=ACCEPTORS) as life:
            await life.queue()
            first = Peer(life)
            first.begin("s")
            second = Peer(life)
            # The broker may learn only later that the first connection is lost.
            second.begin("s")
            await until(lambda: second.answers(connections.CreateSessionResponse))
            first.lose()
            second.put(send(0))
            await until(lambda: life.bodies() == ["0"])
            second.begin("s")
            await until(lambda: second.answers(connections.ExceptionResponse))

    asyncio.run(run())

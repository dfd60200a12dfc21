"""A session that is taken up on a new connection: how far it came, as its client is told."""

import asyncio

from broker.model.xid import Xid
from broker.protocols.core import packet_connection as connections
from broker.protocols.core import packet_session as sessions
from broker.protocols.core import packet_xa as xa
from broker.protocols.core.packet_message import Send
from broker.protocols.core.packets import decode_packet
from broker.storage.context import Admission
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bench import message
from tests.broker.protocols.core.peer import VERSION, Peer
from tests.broker.test_recovery import BrokerRun

WINDOW = 100_000
ACCEPTORS = (AcceptorOptions(port=0),)


class Caller(Peer):
    """What a client does that takes its session up again."""

    def __init__(self, broker_run):
        super().__init__(broker_run.broker.acceptors[0])

    def begin(self, name, *, is_xa=False):
        super().begin(name, WINDOW, is_xa=is_xa)

    def reattach(self, name):
        self.send(connections.ReattachSession(name, -1), connections.SESSION_CHANNEL)

    def answers(self, kind=connections.ReattachSessionResponse):
        """Those of a kind."""
        packets = [decode_packet(found, body, VERSION) for found, body in self.take()]
        return [one for one in packets if isinstance(one, kind)]


def send(number):
    return Send(message(str(number)), requires_response=True, correlation_id=number)


async def until(is_so):
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 -- what is durable comes from a thread.
            await asyncio.sleep(0.001)


def test_what_is_not_durable_yet_counts_before_the_client_is_told(tmp_path):
    async def run():
        async with BrokerRun(tmp_path / "data", acceptors=ACCEPTORS) as broker_run:
            await broker_run.queue()
            storage = broker_run.broker.parts.storage
            first = Caller(broker_run)
            first.begin("s")
            admission = Admission()
            storage.new_context().after_admission(admission, lambda error: None)
            for number in range(3):
                first.send(send(number))
            first.lose()
            lost_again = Caller(broker_run)
            lost_again.reattach("s")
            lost_again.lose()
            second = Caller(broker_run)
            second.reattach("s")
            assert second.answers() == []

            admission.open(storage.completions.messages)
            storage.completions.run_due()
            found = []
            await until(lambda: found.extend(second.answers()) or found)
            assert found == [connections.ReattachSessionResponse(2, True)]
            assert lost_again.answers() == []
            assert broker_run.bodies() == ["0", "1", "2"]
            second.send(send(3))
            await until(lambda: len(broker_run.bodies()) == 4)

    asyncio.run(run())


def test_a_branch_that_is_not_durable_yet_counts_before_the_client_is_told(tmp_path):
    async def run():
        async with BrokerRun(tmp_path / "data", acceptors=ACCEPTORS) as broker_run:
            await broker_run.queue()
            storage = broker_run.broker.parts.storage
            first = Caller(broker_run)
            first.begin("s", is_xa=True)
            xid = Xid(1, b"branch", b"global")
            first.send(xa.XaStart(xid))
            first.send(send(0))
            first.send(xa.XaEnd(xid))
            await until(lambda: len(first.answers(xa.XaResponse)) == 2)
            admission = Admission()
            storage.new_context().after_admission(admission, lambda error: None)
            first.send(xa.XaPrepare(xid))
            first.lose()
            second = Caller(broker_run)
            second.reattach("s")
            assert second.answers() == []

            admission.open(storage.completions.messages)
            storage.completions.run_due()
            found = []
            await until(lambda: found.extend(second.answers()) or found)
            # Start, send, end, prepare: the client would prepare once more what is prepared.
            assert found == [connections.ReattachSessionResponse(3, True)]

    asyncio.run(run())


def test_what_was_refused_counts(tmp_path):
    async def run():
        async with BrokerRun(tmp_path / "data", acceptors=ACCEPTORS) as broker_run:
            await broker_run.queue()
            first = Caller(broker_run)
            first.begin("s")
            first.send(sessions.CreateConsumer(0, "missing"))
            first.send(send(0))
            await until(lambda: broker_run.bodies() == ["0"])
            first.lose()
            second = Caller(broker_run)
            second.reattach("s")
            found = []
            await until(lambda: found.extend(second.answers()) or found)
            assert found == [connections.ReattachSessionResponse(1, True)]

    asyncio.run(run())


def test_a_session_is_begun_anew_by_who_never_got_the_answer(tmp_path):
    async def run():
        async with BrokerRun(tmp_path / "data", acceptors=ACCEPTORS) as broker_run:
            await broker_run.queue()
            first = Caller(broker_run)
            first.begin("s")
            second = Caller(broker_run)
            # The broker may learn only later that the first connection is lost.
            second.begin("s")
            await until(lambda: second.answers(connections.CreateSessionResponse))
            first.lose()
            second.send(send(0))
            await until(lambda: broker_run.bodies() == ["0"])
            second.begin("s")
            await until(lambda: second.answers(connections.ExceptionResponse))

    asyncio.run(run())

"""Qpid Proton's blocking client in threads of its own, beside a broker on the event loop."""

import asyncio
import contextlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from proton import Delivery, Described, Message, Timeout, symbol, ulong
from proton.reactor import Filter, ReceiverOption, Selector, SenderOption
from proton.utils import BlockingConnection, SendException

from tests.broker.protocols.stomp.client import core, serving, until

__all__ = [
    "Capability",
    "Client",
    "Message",
    "Source",
    "core",
    "drained",
    "no_local",
    "selector",
    "serving",
    "until",
]

WAIT_S = 30
LINKS = itertools.count(1)


class Capability(SenderOption, ReceiverOption):
    """Capabilities of the node of a link."""

    def __init__(self, *names):
        self.names = names

    def apply(self, link):
        data = link.target.capabilities if link.is_sender else link.source.capabilities
        data.put_array(False, data.SYMBOL)
        data.enter()
        for name in self.names:
            data.put_symbol(symbol(name))
        data.exit()

    def test(self, link):
        return True


class Source(ReceiverOption):
    """Fields of a source."""

    def __init__(self, **fields):
        self.fields = fields

    def apply(self, link):
        for name, value in self.fields.items():
            setattr(link.source, name, value)

    def test(self, link):
        return True


def no_local():
    """The filter for what the connection itself sends."""
    return Filter({symbol("no-local"): Described(ulong(0x0000468C00000003), "NoLocalFilter{}")})


def selector(text):
    """A filter by properties."""
    return Selector(text)


def flush(connection):
    """Let the client write what it has to say."""
    with contextlib.suppress(Timeout):
        connection.wait(lambda: False, timeout=0.02)


class Client:
    """A blocking connection; every call waits in its thread: an engine of Proton's has only one."""

    def __init__(self, connection, thread):
        self.connection = connection
        self._thread = thread

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, broker, **options):
        """One that has opened."""
        port = broker if isinstance(broker, int) else broker.acceptors[0].port
        options.setdefault("timeout", WAIT_S)
        options.setdefault("allowed_mechs", "ANONYMOUS")
        with ThreadPoolExecutor(1) as thread:
            made = cls(None, thread)
            url = f"amqp://127.0.0.1:{port}"
            made.connection = await made.run(BlockingConnection, url, **options)
            try:
                yield made
            finally:
                with contextlib.suppress(Exception):
                    await made.run(made.connection.close)

    async def run(self, call, *arguments, **named):
        """Do something with it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(call, *arguments, **named))

    async def flush(self):
        """Let it write what it has to say, and see what has come."""
        await self.run(flush, self.connection)

    async def sender(self, address, *options, **named):
        """A link to send on."""
        named.setdefault("name", f"link-{next(LINKS)}")
        made = await self.run(
            self.connection.create_sender, address, options=list(options), **named
        )
        return Sender(made, self.run)

    async def receiver(self, address, *options, credit=10, **named):
        """A link to receive on."""
        named.setdefault("name", f"link-{next(LINKS)}")
        made = await self.run(
            self.connection.create_receiver, address, credit, options=list(options), **named
        )
        return Receiver(made, self.run)

    async def send(self, address, *bodies, capability="queue"):
        """Durable messages, each accepted."""
        sender = await self.sender(address, Capability(capability))
        for body in bodies:
            await sender.send(Message(body=body, durable=True))
        await sender.close()


class Sender:
    """A blocking sender."""

    def __init__(self, link, run):
        self.blocking, self.link = link, link.link
        self._run = run

    async def send(self, message, **named):
        """Send, and wait for what became of it."""
        return await self._run(self.blocking.send, message, **named)

    async def refused(self, message):
        """Send, and give the outcome, which is not that it was taken; nothing refers to it then.

        While anything refers to the last delivery of a link, a traceback or an event, Proton's
        engine takes it for one that is still to be sent, and forgets what drained() was to say.
        """
        outcome = await self._run(self._refused, message)
        # What the container has not handled yet refers to it as well: a round trip is behind that.
        round_trip = self.blocking.connection.create_sender
        other = await self._run(round_trip, None, name=f"link-{next(LINKS)}")
        await self._run(other.close)
        return outcome

    def _refused(self, message):
        try:
            self.blocking.send(message)
        except SendException as error:
            return error.state
        raise AssertionError("it was taken")

    async def close(self):
        await self._run(self.blocking.close)


class Receiver:
    """A blocking receiver."""

    def __init__(self, link, run):
        self.blocking, self.link = link, link.link
        self._run = run

    async def get(self, patience_s=WAIT_S):
        """The next message, not settled."""
        message = await self._run(self.blocking.receive, patience_s)
        if isinstance(message.body, memoryview):
            message.body = bytes(message.body)
        return message

    async def settle(self, state):
        await self._run(self.blocking.settle, state)
        await self._run(flush, self.blocking.connection)

    async def accept(self):
        await self.settle(Delivery.ACCEPTED)

    async def settle_and_flow(self):
        """Say that the delivery failed, and ask for it again."""
        self.blocking.fetcher.unsettled[-1].local.failed = True
        await self.settle(Delivery.MODIFIED)
        self.link.flow(1)

    async def bodies(self, count):
        """Of so many messages, each accepted."""
        found = []
        for _ in range(count):
            found.append((await self.get()).body)
            await self.accept()
        return found

    async def close(self):
        await self._run(self.blocking.close)


async def drained(client, receiver, credit):
    """What a receiver gets before its credit is gone."""
    blocking = receiver.blocking

    def run():
        link, found = blocking.link, []
        link.drain(credit)
        while True:
            client.connection.wait(
                lambda: blocking.fetcher.has_message or (not link.draining() and not link.queued)
            )
            if not blocking.fetcher.has_message:
                link.drained()
                link.drain_mode = False
                return found
            found.append(blocking.fetcher.pop().body)
            blocking.accept()

    return await asyncio.to_thread(run)

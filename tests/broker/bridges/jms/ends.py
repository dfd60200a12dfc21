"""Two brokers of ours in this process, and what a test does at either end of a bridge."""

import asyncio
import contextlib

from broker.bridges.jms import CoreConnectionFactory, Destination, JMSBridge
from broker.client import Client
from broker.embedded import EmbeddedBroker

WAIT_S = 30


class End:
    """A broker, with a client of it."""

    def __init__(self, embedded):
        self.embedded = embedded
        self.client = Client(f"tcp://127.0.0.1:{embedded.port}")

    @property
    def port(self):
        return self.embedded.port

    def factory(self):
        return CoreConnectionFactory("vm://", broker=self.embedded.broker)

    def tcp(self, port=None):
        return CoreConnectionFactory(f"tcp://127.0.0.1:{port or self.port}")

    def create(self, *queues):
        with self.client.session() as session:
            for queue in queues:
                session.create_queue(queue)

    def send(self, queue, *contents, **headers):
        with self.client.session() as session, session.producer(queue) as producer:
            for content in contents:
                producer.send(content, **headers)

    def take(self, queue, count, timeout_s=WAIT_S):
        """The next messages of a queue, in their order."""
        with self.client.session() as session, session.consumer(queue) as consumer:
            found = []
            while len(found) < count and (one := consumer.receive(timeout_s)) is not None:
                found.append(one)
            assert len(found) == count, f"{len(found)} messages of {count} in {queue}"
            return found

    def contents(self, queue, count, timeout_s=WAIT_S):
        return [one.content for one in self.take(queue, count, timeout_s)]

    def count(self, queue):
        with self.client.session() as session:
            return session.query_queue(queue).message_count


@contextlib.contextmanager
def an_end(folder=None, options=None):
    made = EmbeddedBroker(options) if folder is None else EmbeddedBroker.in_folder(folder)
    with made as embedded:
        end = End(embedded)
        with end.client:
            yield end


def bridge(source, target, name="q", to=None, **parameters):
    """One from a queue to the queue of the same name, or another."""
    return JMSBridge(
        source if callable(source) else source.factory,
        target if callable(target) else target.factory,
        lambda: Destination.queue(name),
        lambda: Destination.queue(to or name),
        **parameters,
    )


def wait_for(condition, timeout_s=WAIT_S):
    """Wait until a condition holds."""

    async def wait():
        async with asyncio.timeout(timeout_s):
            while not condition():  # noqa: ASYNC110 - what is asked has no event.
                await asyncio.sleep(0.01)

    asyncio.run(wait())

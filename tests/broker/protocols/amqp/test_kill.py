"""Kill -9 while AMQP clients send and receive; the history checker says whether it may be."""

import asyncio
import contextlib
import itertools
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from proton import Delivery, Described, ProtonException, Terminus, Timeout, symbol
from proton.reactor import SenderOption
from proton.utils import BlockingConnection

from tests.broker.protocols.amqp.client import Capability, Message
from tests.broker.protocols.killing import IN_FLIGHT, Clients, kill_and_check
from tests.interop.asynchronous import asynchronous

TRANSACTIONAL = 0x34
GONE = (ProtonException, OSError, AttributeError)


class Coordinator(SenderOption):
    def apply(self, link):
        link.target.type = Terminus.COORDINATOR
        link.target.address = None


class AmqpClients(Clients):
    """Each works in a thread of its own."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def noted(self, call, *arguments, **named):
        with self.lock:
            return getattr(self.history, call)(*arguments, **named)

    @contextlib.contextmanager
    def connected(self):
        """A connection."""
        connection = BlockingConnection(
            f"amqp://127.0.0.1:{self.port}", timeout=20, allowed_mechs="ANONYMOUS"
        )
        try:
            yield connection
        finally:
            with contextlib.suppress(*GONE):
                connection.close()

    def new_message(self, queue, producer, number, unit):
        with self.lock:
            message = super().new_message(queue, producer, number, unit)
        return Message(body=bytes(message.body), durable=True)

    def taken(self, unit, queue, message):
        body = bytes(message.body)
        copy = zlib.crc32(body)
        self.noted("take", unit, queue, copy, message.delivery_count + 1, self.run, body)


def produce(clients, queue):
    """Many in flight, each with its outcome."""
    flying, producer = [], clients.new_producer()
    with contextlib.suppress(*GONE), clients.connected() as connection:
        link = connection.create_sender(queue, options=[Capability("queue")]).link
        for number in itertools.count(1):
            connection.wait(lambda: link.credit > 0)
            unit = clients.noted("unit")
            message = clients.new_message(queue, producer, number, unit)
            clients.noted("tried", unit)
            flying.append((unit, link.send(message)))
            if len(flying) >= IN_FLIGHT:
                unit, delivery = flying.pop(0)
                connection.wait(lambda one=delivery: one.settled)
                assert delivery.remote_state == Delivery.ACCEPTED
                clients.noted("done", unit)


def transact(clients, queue):
    """Some messages a transaction, some of which are rolled back."""
    producer, numbers, unit = clients.new_producer(), itertools.count(1), None
    with contextlib.suppress(*GONE), clients.connected() as connection:
        link = connection.create_sender(queue, options=[Capability("queue")]).link
        coordinator = connection.create_sender(None, options=[Coordinator()]).link

        def settled(delivery):
            connection.wait(lambda: delivery.settled)
            return delivery

        def asked(kind, *fields):
            connection.wait(lambda: coordinator.credit > 0)
            body = Described(symbol(f"amqp:{kind}:list"), list(fields))
            return settled(coordinator.send(Message(body=body)))

        while True:
            unit = clients.noted("unit")
            id = asked("declare", None).remote.data[0]
            for _ in range(clients.seeded.randrange(1, 8)):
                message = clients.new_message(queue, producer, next(numbers), unit)
                connection.wait(lambda: link.credit > 0)
                delivery = link.delivery(link.delivery_tag())
                delivery.local.data = [id]
                delivery.update(TRANSACTIONAL)
                link.stream(message.encode())
                link.advance()
            if clients.seeded.random() < 0.2:
                assert asked("discharge", id, True).remote_state == Delivery.ACCEPTED
                clients.noted("undone", unit)
                continue
            clients.noted("tried", unit)
            assert asked("discharge", id, False).remote_state == Delivery.ACCEPTED
            clients.noted("done", unit)
    clients.give_up(unit)


def consume(clients, queue, *, patience_s=0.5, drains=False, credit=10, in_flight=1):
    """Each message by itself; so many wait at most for the broker to confirm it.

    With `drains` until the broker says that there is no more.
    """
    taken, flying = [], []
    with contextlib.suppress(*GONE), clients.connected() as connection:
        receiver = connection.create_receiver(queue, credit, options=[Capability("queue")])

        def confirm():
            unit, delivery = flying.pop(0)
            connection.wait(lambda: delivery.settled)
            clients.noted("done", unit)
            delivery.settle()

        def is_drained():
            link = receiver.link
            link.drain(0)
            connection.wait(lambda: not (link.draining() or link.queued))
            link.drained()
            link.drain_mode = False
            link.flow(credit - link.credit)
            return not receiver.fetcher.has_message

        while True:
            try:
                message = receiver.receive(timeout=patience_s)
            except Timeout:
                while flying:
                    confirm()
                if drains and is_drained():
                    break
                continue
            unit = clients.noted("unit")
            taken.append(unit)
            clients.taken(unit, queue, message)
            delivery = receiver.fetcher.unsettled.popleft()
            clients.noted("tried", unit)
            delivery.update(Delivery.ACCEPTED)
            flying.append((unit, delivery))
            while len(flying) >= in_flight:
                confirm()
            receiver.link.flow(1)
    clients.give_up(*taken)


@pytest.mark.slow
@pytest.mark.parametrize(
    "max_messages",
    [
        pytest.param(-1, id="in memory", marks=pytest.mark.soak),
        pytest.param(50, id="paging"),
    ],
)
@asynchronous
async def test_kill_9_loses_and_doubles_nothing(tmp_path, effort, max_messages):
    clients = AmqpClients()
    tasks = [
        (produce, "plain"),
        (produce, "single"),
        (transact, "plain"),
        (consume, "plain"),
        (consume, "plain"),
        (consume, "single"),
    ]
    loop = asyncio.get_running_loop()

    def drain(queue):
        return asyncio.to_thread(consume, clients, queue, drains=True, credit=200, in_flight=100)

    # The loop's own threads may be fewer than these.
    with ThreadPoolExecutor(len(tasks)) as threads:

        def working():
            return [loop.run_in_executor(threads, call, clients, queue) for call, queue in tasks]

        rounds = effort(20, least=2)
        await kill_and_check(clients, tmp_path, rounds, max_messages, working, drain, least_s=0.5)

"""Operators see, and take out, what lies in pages."""

import json

from broker.management import contents
from broker.model.encoding import BodyReader
from broker.model.message import Message
from broker.model.properties import PropertyType
from tests.broker.bench import done
from tests.broker.management.managed import text_body
from tests.broker.paging.runs import runs


class Manager:
    """Asks, and waits for the answers."""

    def __init__(self, run):
        self._run = run
        self._sink = run.consume("answers")

    async def __call__(self, resource, operation, *arguments):
        request = Message("activemq.management", text_body(json.dumps(arguments)), type=3)
        for name, value in (
            ("_AMQ_ResourceName", resource),
            ("_AMQ_OperationName", operation),
            ("JMSReplyTo", "queue://answers"),
        ):
            request.set(name, PropertyType.STRING, value)
        self._sink.session.send(request, done)
        await self._run.until(lambda: self._sink.got)
        answer = self._sink.got.pop()
        self._sink.session.acknowledge(0, answer.message_id, done)
        text = BodyReader(answer.body).read_nullable(BodyReader.read_simple_string)
        assert answer.get("_AMQ_OperationSucceeded"), text
        return None if text is None else json.loads(text)[0]


async def filled(run, count=300):
    await run.queue("answers", is_durable=False)
    await run.queue()
    for number in range(count):
        await run.send_numbers([number], n=number, half=f"{number % 2}")
    assert run.pages()
    return Manager(run)


def test_what_lies_in_pages_is_listed_and_counted(tmp_path):
    async def part(run):
        manage = await filled(run)

        assert await manage("address.q", "isPaging") is True
        assert await manage("address.q", "getNumberOfPages") == len(run.pages())
        assert await manage("queue.q", "countMessages", "n >= 0") == 300
        assert await manage("queue.q", "countMessages", "n > 289") == 10
        found = await manage("queue.q", "listMessages", "n > 289")
        assert [one["n"] for one in found] == list(range(290, 300))
        counts = await manage("queue.q", "countMessages", None, "half")
        assert json.loads(counts) == {"0": 150, "1": 150}
        assert await manage("queue.q", "getDurableMessageCount") == 300
        # Nothing was taken, and nothing is lost of the order.
        assert await run.drain(300) == list(range(300))

    runs(tmp_path, part)


def test_what_lies_in_pages_is_removed_and_moved_by_a_filter(tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "LOOK_COUNT", 7)

    async def part(run):
        manage = await filled(run)
        await run.queue("other")

        assert await manage("queue.q", "removeMessages", "half = '1'") == 150
        assert await manage("queue.q", "moveMessages", "n >= 200", "other") == 50
        assert await manage("queue.q", "getMessageCount") == 100

    async def after(run):
        assert await run.drain(100) == list(range(0, 200, 2))
        assert await run.drain(50, "other") == list(range(200, 300, 2))

    runs(tmp_path, part, after)


def test_all_that_lies_in_pages_is_removed(tmp_path):
    async def part(run):
        manage = await filled(run)

        assert await manage("queue.q", "removeAllMessages") == 300
        await run.until(lambda: run.queue_of().message_count == 0)
        await run.send_numbers([7])
        assert await run.drain(1) == [7]

    runs(tmp_path, part)


def test_all_that_lies_in_pages_is_moved(tmp_path):
    async def part(run):
        manage = await filled(run)
        await run.queue("other")

        assert await manage("queue.q", "moveMessages", "", "other") == 300
        assert await run.drain(300, "other") == list(range(300))

    runs(tmp_path, part)

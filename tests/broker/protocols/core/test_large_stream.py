"""A large body on its way: whole, or the connection is closed."""

import errno
from types import SimpleNamespace

import pytest

from broker.protocols.core.channel import Channel
from broker.protocols.core.large_stream import LargeStream
from broker.protocols.core.packets import decode_packet
from broker.protocols.core.versions import CURRENT
from journal.errors import JournalIOError

HEADER_SIZE = 13


class Peer:
    remote = "peer"
    is_open = True
    is_paused = False

    def __init__(self):
        self.frames = []
        self.is_aborted = False

    def write(self, data):
        self.frames.append(data)

    def abort(self):
        self.is_aborted = True


class Consumer(SimpleNamespace):
    consumer_id = 3
    can_stream = True
    is_ended = False

    def charge(self, size):
        pass

    def end_stream(self):
        self.stream = None
        self.is_ended = True


class Body:
    def __init__(self, data, size=None, broken_at=None):
        self.data = data
        self.size = len(data) if size is None else size
        self.broken_at = broken_at

    def is_ready(self, offset, size, callback):
        return True

    def hold(self):
        pass

    def release(self):
        pass

    def read(self, offset, size):
        if offset == self.broken_at:
            raise JournalIOError(errno.EIO, "cannot read", "1.msg")
        return self.data[offset : offset + size]


def streamed(body, window=-1):
    peer, consumer = Peer(), Consumer()
    channel = consumer.channel = Channel(peer, 10, CURRENT, window)
    consumer.stream = LargeStream(channel, consumer, body, 4)
    consumer.stream.go_on()
    parts = [
        decode_packet(frame[4], memoryview(frame)[HEADER_SIZE:], CURRENT)
        if frame[4] < 128
        else None
        for frame in peer.frames
    ]
    return peer, consumer, [(bytes(part.chunk), part.continues) for part in parts]


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"", [(b"", False)]),
        (b"abcd", [(b"abcd", False)]),
        (b"abcdef", [(b"abcd", True), (b"ef", False)]),
    ],
)
def test_a_body_in_parts(data, parts):
    peer, consumer, sent = streamed(Body(data))

    assert sent == parts
    assert consumer.is_ended
    assert not peer.is_aborted


@pytest.mark.parametrize(
    "body", [Body(b"abcdef", broken_at=4), Body(b"abcd", size=9)], ids=["unreadable", "cut"]
)
def test_a_body_that_breaks_off_has_no_last_part(body):
    peer, consumer, sent = streamed(body)

    assert sent == [(b"abcd", True)]
    assert peer.is_aborted
    assert not consumer.is_ended


def test_a_session_with_a_body_that_breaks_off_is_not_taken_up_again():
    """It would be sent the same body on every new connection."""
    peer, consumer, _ = streamed(Body(b"abcdef", broken_at=4), window=1024)

    assert peer.is_aborted
    assert not consumer.channel.counts

    _, consumer, _ = streamed(Body(b"abcdef"), window=1024)
    assert consumer.channel.counts

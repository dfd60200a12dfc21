import pytest

from broker.client.channel import Channel
from broker.client.errors import CallInterrupted, QueueMissing
from broker.model.message import Message
from broker.protocols.core.frames import FrameReader
from broker.protocols.core.packet_connection import (
    ExceptionResponse,
    NullResponse,
    PacketsConfirmed,
)
from broker.protocols.core.packet_message import Send
from broker.protocols.core.packet_queue import DeleteQueue, QueueQuery, QueueQueryResponse
from broker.protocols.core.packet_session import AddMetadata, Commit, Start
from broker.protocols.core.packets import decode_packet


class FakeLink:
    def __init__(self, version=136):
        self.version = version
        self.frames = []

    def write(self, frame):
        self.frames.append(frame)

    @property
    def packets(self):
        found = [FrameReader().feed(frame)[0] for frame in self.frames]
        return [decode_packet(kind, body, self.version) for kind, _, body in found]


@pytest.fixture
def link():
    return FakeLink()


def channel_on(link, window=-1, unasked=None):
    unasked = [] if unasked is None else unasked
    channel = Channel(10, lambda packet, size: unasked.append(packet), confirmation_window=window)
    channel.link = link
    return channel


def test_calls_without_a_correlation_go_one_at_a_time(link):
    channel = channel_on(link)

    first = channel.call(QueueQuery("a"), QueueQueryResponse)
    second = channel.call(DeleteQueue("b"))
    assert link.packets == [QueueQuery("a")]
    channel.receive(QueueQueryResponse(True), 50)

    assert first.result().exists
    assert link.packets == [QueueQuery("a"), DeleteQueue("b")]
    channel.receive(ExceptionResponse(100, "none", -1), 50)
    assert isinstance(second.error, QueueMissing)


def test_calls_ahead_of_earlier_answers_are_answered_in_their_order(link):
    channel = channel_on(link)

    first = channel.call(QueueQuery("a"), QueueQueryResponse, ahead=True)
    second = channel.call(DeleteQueue("b"), ahead=True)
    waiting = channel.call(DeleteQueue("c"))
    behind = channel.call(DeleteQueue("d"), ahead=True)
    assert link.packets == [QueueQuery("a"), DeleteQueue("b")]

    channel.receive(QueueQueryResponse(True), 50)
    channel.receive(ExceptionResponse(100, "none", -1), 50)
    assert (first.result().exists, type(second.error)) == (True, QueueMissing)
    # One that waits for those before it keeps those behind it, too.
    assert link.packets[2:] == [DeleteQueue("c")]
    channel.receive(NullResponse(), 20)
    assert link.packets[3:] == [DeleteQueue("d")]
    channel.receive(NullResponse(), 20)
    assert [waiting.error, behind.error] == [None, None]
    assert not channel.is_waiting


def test_calls_ahead_end_with_the_session(link):
    channel = channel_on(link)
    lost = [channel.call(DeleteQueue(name), ahead=True) for name in "ab"]

    channel.interrupt(CallInterrupted("lost"))
    after = channel.call(DeleteQueue("c"))
    channel.receive(NullResponse(), 20)

    assert [type(one.error) for one in lost] == [CallInterrupted] * 2
    assert after.is_done
    assert len(link.packets) == 3


def test_correlated_calls_overlap_and_are_answered_in_any_order(link):
    channel = channel_on(link)

    first = channel.call_correlated(Send(Message("a")))
    second = channel.call_correlated(Commit())
    first_id, second_id = (packet.correlation_id for packet in link.packets)
    channel.receive(NullResponse(second_id), 20)
    channel.receive(ExceptionResponse(100, "none", first_id), 20)

    assert (second.error, type(first.error)) == (None, QueueMissing)
    assert link.packets[0].requires_response


def test_with_an_older_broker_sends_go_one_at_a_time():
    link = FakeLink(version=129)
    channel = channel_on(link)

    replies = [channel.call_correlated(Send(Message("a"))) for _ in range(2)]
    assert len(link.frames) == 1
    channel.receive(NullResponse(), 20)
    channel.receive(NullResponse(), 20)

    assert [reply.is_done for reply in replies] == [True, True]


def test_an_answer_without_a_caller_is_not_taken_for_another(link):
    unasked = []
    channel = channel_on(link, unasked=unasked)
    waiting = channel.call(QueueQuery("a"), QueueQueryResponse)

    channel.receive(NullResponse(77), 20)
    channel.receive(ExceptionResponse(104, "later", 78), 20)

    assert not waiting.is_done
    assert unasked == [ExceptionResponse(104, "later", 78)]


def test_what_was_handled_is_confirmed_once_the_window_is_full(link):
    channel = channel_on(link, window=100)

    channel.receive(NullResponse(5), 60)
    assert link.frames == []
    channel.receive(PacketsConfirmed(3), 21)
    channel.receive(NullResponse(6), 60)
    assert link.packets == [PacketsConfirmed(1)]
    channel.receive(NullResponse(7), 60)
    channel.confirm()
    channel.confirm()

    assert link.packets == [PacketsConfirmed(1), PacketsConfirmed(2)]


def test_what_the_broker_has_not_handled_is_sent_again(link):
    channel = channel_on(link, window=1000)
    for name in "abcd":
        channel.post(DeleteQueue(name))
    channel.post(AddMetadata("not", "counted"))
    channel.receive(PacketsConfirmed(0), 17)

    channel.detach()
    channel.post(Start())
    other = FakeLink()
    channel.reattach(other, 1)

    assert other.packets == [DeleteQueue("c"), DeleteQueue("d"), Start()]


def test_a_confirmation_is_no_answer(link):
    channel = channel_on(link, window=1000)
    reply = channel.call_correlated(Send(Message("a")))

    channel.receive(PacketsConfirmed(0), 17)
    assert not reply.is_done
    channel.give_up_until(channel.last_correlation, CallInterrupted("lost"))

    assert isinstance(reply.error, CallInterrupted)


def test_without_a_window_nothing_is_kept(link):
    channel = channel_on(link)
    channel.post(Start())
    channel.detach()
    channel.post(Start())

    other = FakeLink()
    channel.reattach(other, -1)

    assert other.frames == []


def test_a_new_session_begins_to_count_anew(link):
    channel = channel_on(link, window=1000)
    waiting = [channel.call(DeleteQueue("a")), channel.call_correlated(Commit())]
    channel.receive(NullResponse(99), 20)

    channel.interrupt(CallInterrupted("lost"))

    assert [type(reply.error) for reply in waiting] == [CallInterrupted] * 2
    assert (channel.last_confirmed, channel.is_waiting) == (-1, False)
    other = FakeLink()
    channel.reattach(other, -1)
    assert other.frames == []

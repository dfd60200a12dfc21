"""A blocking Core client of a few lines, over the packets themselves, to be cut off by kills."""

import socket
from collections import defaultdict, deque

from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.protocols.core import packet_cluster as cluster
from broker.protocols.core import packet_connection as connections
from broker.protocols.core import packet_message as messages
from broker.protocols.core import packet_queue as queues
from broker.protocols.core import packet_session as sessions
from broker.protocols.core import versions
from broker.protocols.core.frames import MAGIC, FrameReader
from broker.protocols.core.packets import decode_packet

CHANNEL = 10
WAIT_S = 60


class Refused(Exception):
    """The broker answered with an error."""


class WireClient:
    """One connection with one session."""

    def __init__(self, port, name, *, is_transacted=False, window=-1):
        self._socket = socket.create_connection(("127.0.0.1", port), WAIT_S)
        self._frames = FrameReader()
        # By kind: unlimited credits bring a whole queue before the answer to a question.
        self._waiting = defaultdict(deque)
        try:
            self._begin(name, is_transacted, window)
        except BaseException:
            self.close()
            raise

    def _begin(self, name, is_transacted, window):
        self._socket.sendall(MAGIC)
        self.put(connections.Ping(60_000), 0)
        self.get(connections.Ping)
        self.put(cluster.SubscribeTopology(False, versions.CURRENT), 0)
        self.get(cluster.ClusterTopology)
        self.put(
            connections.CreateSession(
                name,
                CHANNEL,
                versions.CURRENT,
                None,
                None,
                102400,
                xa=False,
                auto_commit_sends=not is_transacted,
                auto_commit_acks=not is_transacted,
                window_size=window,
                pre_acknowledge=False,
                default_address=None,
            ),
            connections.SESSION_CHANNEL,
        )
        self.get(connections.CreateSessionResponse)

    def put(self, packet, channel=CHANNEL):
        """Send a packet."""
        self._socket.sendall(packet.frame(channel, versions.CURRENT))

    def get(self, kind):
        """The next packet of this kind; others wait until they are asked for."""
        waiting = self._waiting[kind]
        while not waiting:
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionError("the broker has closed the connection")
            for number, _, body in self._frames.feed(data):
                packet = decode_packet(number, body, versions.CURRENT)
                if isinstance(packet, connections.ExceptionResponse):
                    raise Refused(packet.message)
                self._waiting[type(packet)].append(packet)
        return waiting.popleft()

    def queue(self, name):
        """Make sure that there is an anycast queue."""
        self.put(queues.QueueQuery(name))
        if not self.get(queues.QueueQueryResponse).exists:
            self.put(queues.CreateQueue(name, name, routing_type=RoutingType.ANYCAST))
            self.get(connections.NullResponse)

    def send(self, queue, text, number):
        """Send a durable message; `confirmed()` gives its number."""
        sent = Message(queue, text.encode(), durable=True)
        self.put(messages.Send(sent, requires_response=True, correlation_id=number))

    def confirmed(self):
        """The number of the next message that is durable."""
        return self.get(connections.NullResponse).correlation_id

    def consume(self, queue):
        """Begin to consume without limit."""
        self.put(sessions.CreateConsumer(0, queue))
        self.get(queues.QueueQueryResponse)
        self.put(sessions.ConsumerCredits(0, -1))
        self.put(sessions.Start())

    def receive(self):
        """The next message: its text, its id, whether it was delivered before."""
        got = self.get(messages.ReceiveMessage)
        return bytes(got.message.body).decode(), got.message.message_id, got.delivery_count > 1

    def acknowledge(self, message_id):
        """Acknowledge up to a message, and wait until that is durable."""
        self.put(messages.Acknowledge(0, message_id, True))
        self.get(connections.NullResponse)

    def count(self, queue):
        """How many messages the queue holds."""
        self.put(queues.QueueQuery(queue))
        return self.get(queues.QueueQueryResponse).message_count

    def close(self):
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

"""A protocol of lines, to show what another protocol needs: this folder and an entry point.

TOY                     first: what it speaks
SEND address text       answered by SENT address, once the message is durable
TAKE queue credit       deliveries follow: GIVE id count text, each for one credit
MORE queue credit       more of them
OK|BACK|FAIL|NEVER|BAD queue id     accept, release, modify (delivery failed, undeliverable here),
                        reject; answered by DONE id, once durable, or by ERROR code text
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.errors import BrokerError
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.notifications import Origin
from broker.protocols.registry import PREFIXES, AcceptorParameter, Detection
from broker.sessions.prefixes import Prefixes
from broker.sessions.session import SessionOptions
from broker.settings.value_types import INT, at_least

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.peer import Peer, Sessions
    from broker.queues.consumer import Consumer
    from broker.sessions.session import Session


class ToyFactory:
    name = "TOY"
    preamble_size = detection_size = 4
    parameters: Mapping[str, AcceptorParameter] = {
        "lineMax": AcceptorParameter(at_least(INT, 16), 1000),
        **PREFIXES,
    }

    def detect(self, first: bytes) -> Detection:
        if first == b"TOY\n":
            return Detection.YES
        return Detection.MORE if b"TOY\n".startswith(first) else Detection.NO

    def manager(self, sessions: Sessions) -> ToyProtocol:
        return ToyProtocol(sessions)


TOY = ToyFactory()


class ToyProtocol:
    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def connect(self, peer: Peer, parameters: Mapping[str, Any]) -> ToyConnection:
        made = ToyConnection(self.sessions, peer, parameters)
        self.sessions.connected(made)
        return made

    def check(self) -> None:
        pass


class ToyConnection:
    def __init__(self, sessions: Sessions, peer: Peer, parameters: Mapping[str, Any]) -> None:
        self._sessions, self._peer = sessions, peer
        self._line_max, self._rest = parameters["lineMax"], b""
        place = (peer.connection_id, peer.remote, peer.local)
        self.origin = Origin(*place, None, "TOY", peer.created_ms)
        user = sessions.authenticate(None, None, peer.remote)
        prefixes = Prefixes(parameters["anycastPrefix"], parameters["multicastPrefix"])
        self._session = sessions.create_session(
            f"toy-{peer.connection_id}", user, SessionOptions(prefixes=prefixes), set(), self.origin
        )
        self._sender = self._session.create_sender(None, RoutingType.ANYCAST)
        self._session.start()
        settlement = self._session.settlement
        self._outcomes = {
            "OK": (settlement.accept, {}),
            "BACK": (settlement.release, {}),
            "FAIL": (settlement.modify, {"delivery_failed": True}),
            "NEVER": (settlement.modify, {"undeliverable_here": True}),
            "BAD": (settlement.reject, {}),
        }
        self._consumers: dict[str, int] = {}

    def receive(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > self._line_max:
            raise ValueError(f"a line of more than {self._line_max} bytes")
        for line in lines:
            try:
                self._do(*line.decode().split(" ", 2))
            except BrokerError as error:
                self._write(f"ERROR {int(error.code)} {error.text}")

    def _do(self, verb: str, name: str, value: str) -> None:
        if verb == "SEND":
            message = Message(name, value.encode(), durable=True)
            self._sender.send(message, self._done, f"SENT {name}")
        elif verb == "TAKE":
            number = self._consumers[name] = len(self._consumers)
            consumer = self._session.create_consumer(number, name, self, counts_messages=True)
            consumer.receive_credits(int(value))
        elif verb == "MORE":
            self._session.consumer(self._consumers[name]).receive_credits(int(value))
        else:
            settle, how = self._outcomes[verb]
            settle(self._consumers[name], [int(value)], self._done, f"DONE {value}", **how)

    def _done(self, error: Exception | None, line: str) -> None:
        self._write(line if error is None else f"ERROR 0 {error}")

    def _write(self, line: str) -> None:
        self._peer.write(f"{line}\n".encode())

    def deliver(self, consumer: Consumer, message: Message, delivery_count: int) -> int:
        self._write(f"GIVE {message.message_id} {delivery_count} {bytes(message.body).decode()}")
        return len(message.body)

    def disconnected(self, consumer: Consumer) -> None:
        self._session.disconnected(consumer)
        self._write(f"ERROR 0 {consumer.queue.name} is gone")

    def pause(self) -> None:
        for consumer in self._session.consumers.values():
            consumer.pause()

    def go_on(self) -> None:
        for consumer in list(self._session.consumers.values()):
            consumer.go_on()

    def lost(self, error: Exception | None) -> None:
        self._sessions.disconnected(self)
        self._sessions.close_session(self._session, has_failed=True)

    def check(self) -> None:
        pass

    def disconnect(self) -> None:
        self._write("ERROR 4 the broker stops")
        self._peer.close()

    def close_session(self, session: Session) -> None:
        self.disconnect()

    kill = close_session

    fail = disconnect

"""All MQTT connections of a broker, and the sessions of their clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.protocols.mqtt.handler import MqttConnection
from broker.protocols.mqtt.outgoing_message import OutgoingMessages
from broker.protocols.mqtt.session_states import SessionStates
from broker.protocols.mqtt.wills import send_will

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.protocols.mqtt.session_state import SessionState
    from broker.protocols.peer import Peer, Sessions

__all__ = ["LATE_MS", "MqttProtocol"]

# What another broker tells may be late: the client has come here from there since. The clocks of
# brokers agree so far; where they do not, a client that is disconnected connects again.
LATE_MS: Final = 5000


class MqttProtocol:
    """See the module's text.

    Args:
        sessions: the broker.

    Attributes:
        states: sessions of clients, connected or not.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self.states = SessionStates(sessions, self._send_will)
        self._messages = OutgoingMessages()

    def connect(self, peer: Peer, parameters: Mapping[str, Any]) -> MqttConnection:
        """Take a connection whose first bytes were MQTT's."""
        made = MqttConnection(self._sessions, self.states, self._messages, peer, parameters)
        self._sessions.connected(made)
        return made

    def check(self) -> None:
        """Send wills that are due."""
        self.states.send_due()

    def scan_sessions(self) -> None:
        """Let sessions expire, whether anybody connects or not; send wills that are due."""
        self.states.send_due()
        self.states.expire()

    def connected_elsewhere(self, client_id: str, at_ms: int) -> None:
        """The client has come to another broker of the cluster: its connection here ends.

        Its session stays, as long as it says.
        """
        owner = self.states.owner(client_id)
        if owner is not None and not 0 < owner.connected_ms - at_ms <= LATE_MS:
            owner.taken_over()

    def _send_will(self, state: SessionState) -> None:
        send_will(self._sessions, state, self.states.retained)

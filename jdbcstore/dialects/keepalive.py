"""How often the kernel asks whether the peer of a silent connection still knows it (keepalive).

A server that ended a session while the network was cut could not say so. A statement that waits for
its answer then would wait for jdbc-network-timeout; the first probe behind the cut learns of it.
A server that works on a long statement answers probes all the while: its kernel does.
"""

from __future__ import annotations

import socket
from typing import Final, NamedTuple

__all__ = ["Probes", "probes", "set_probes"]

PROBE_S: Final = 2
COUNT_MAX: Final = 127  # MAX_TCP_KEEPCNT, <net/tcp.h> of Linux.


class Probes(NamedTuple):
    """Probes of one connection.

    Attributes:
        interval_s: of silence before the first, and between two.
        unanswered: so many end the connection.
    """

    interval_s: int
    unanswered: int


def probes(network_timeout_ms: int) -> Probes:
    """Give probes that all take as long as the time-out: a peer that is gone is given up then.

    Args:
        network_timeout_ms: not negative.
    """
    seconds = max(1, -(-network_timeout_ms // 1000))
    interval_s = max(min(PROBE_S, seconds), -(-seconds // (COUNT_MAX + 1)))
    return Probes(interval_s, max(1, -(-seconds // interval_s) - 1))


def set_probes(connected: socket.socket, network_timeout_ms: int) -> None:
    """Have the kernel probe the peer of a TCP socket; of another kind of socket it does nothing."""
    if connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    interval_s, unanswered = probes(network_timeout_ms)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, interval_s)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, interval_s)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, unanswered)

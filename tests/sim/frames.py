"""Frames of the Core protocol between two hosts: counted, and their connection cut behind one."""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from tests.sim.network import Network
    from tests.sim.tcp import SimTransport

_LENGTH = struct.Struct(">i")
_MAGIC = b"ARTEMIS"


class Frames:
    """Counts the frames between two brokers, and cuts their connection behind one.

    Args:
        network: whose segments it sees.
        pair: the names of two hosts.
        cut_behind: the frame; None cuts nothing.
        counts: where they are counted.
    """

    def __init__(
        self, network: Network, pair: frozenset[str], cut_behind: int | None, counts: Counter[str]
    ) -> None:
        self._pair = pair
        self._name = "-".join(sorted(pair))
        self._cut_behind = cut_behind
        self._counts = counts
        self._send = network.send
        # Of each side: bytes of a frame that was begun.
        self._begun: dict[int, bytearray] = {}
        # What is sent over a connection that was cut goes nowhere.
        self._cut: list[SimTransport] = []
        network.send = self.send  # type: ignore[method-assign]

    def send(
        self, transport: SimTransport, size: int, call: Callable[..., object], *arguments: Any
    ) -> None:
        """As Network.send()."""
        if size and transport in self._cut:
            return
        if {transport.host.name, transport.peer_host.name} == self._pair and size:
            data: bytes = arguments[0]
            kept = self._kept(transport, data)
            if kept is not None:
                self._cut_behind = None
                self._cut = [transport, transport.peer]
                self._send(
                    transport, size, functools.partial(self._arrive_and_cut, transport, call), kept
                )
                return
        self._send(transport, size, call, *arguments)

    def _kept(self, transport: SimTransport, data: bytes) -> bytes | None:
        """Count the frames that end in these bytes; what of them still arrives, None for all."""
        begun = self._begun.setdefault(id(transport), bytearray())
        before = len(begun)
        begun += data
        at = 0
        while True:
            if self._counts[self._name] == self._cut_behind:
                return bytes(begun[before:at]) if at > before else b""
            if begun.startswith(_MAGIC, at):
                at += len(_MAGIC)
                continue
            if len(begun) - at < _LENGTH.size:
                break
            end = at + _LENGTH.size + _LENGTH.unpack_from(begun, at)[0]
            if end > len(begun):
                break
            at = end
            self._counts[self._name] += 1
        del begun[:at]
        return None

    @staticmethod
    def _arrive_and_cut(
        transport: SimTransport, call: Callable[[bytes], object], data: bytes
    ) -> None:
        if data:
            call(data)
        transport.cut_off()

"""Frames of the Core protocol between two hosts: counted, and a fault at one of them.

cut       the connection is cut behind it; behind 0 before the first
late      it, and all that follows it on its connection that way, comes later
repeat    it comes twice
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from tests.sim.network import Network
    from tests.sim.tcp import SimTransport

_LENGTH = struct.Struct(">i")
_MAGIC = b"ARTEMIS"
# A NullResponse with the number of the request that it answers: length, type, channel, number.
_ANSWER = struct.Struct(">ibqq")
_NULL_RESPONSE = 21
_NO_NUMBER = -1


class FrameFault(NamedTuple):
    """What becomes of a frame.

    Attributes:
        kind: cut, late or repeat.
        number: of the frame.
        seconds: of `late`.
        begun: called with the name of the host that has sent it.
    """

    kind: str
    number: int
    seconds: float
    begun: Callable[[str], object]


class _Frame(NamedTuple):
    """One that ends in a segment; begin and end are bytes of that, and it may begin before it."""

    number: int
    begin: int
    end: int
    is_answer: bool


class Frames:
    """Counts the frames between two hosts; see the module's text.

    Args:
        network: whose segments it sees.
        pair: the names of both.
        fault: None is none.
        counts: where they are counted.
        answers: where those are noted that answer a request by its number.

    Attributes:
        repeats: these come twice now.
    """

    def __init__(
        self,
        network: Network,
        pair: str,
        fault: FrameFault | None,
        counts: Counter[str],
        answers: dict[str, list[int]],
    ) -> None:
        self._network = network
        self._name = pair
        self._hosts = set(pair.split("-"))
        self._fault = fault
        self.repeats = False
        self._counts = counts
        self._answers = answers.setdefault(pair, [])
        self._send = network.send
        # Of each side of a connection: bytes of a frame that was begun.
        self._begun: dict[tuple[int, bool], bytearray] = {}
        # What is sent over a connection that was cut goes nowhere.
        self._cut: list[SimTransport] = []
        network.send = self.send  # type: ignore[method-assign]

    def send(
        self, transport: SimTransport, size: int, call: Callable[..., object], *arguments: Any
    ) -> None:
        """As Network.send()."""
        if size and transport in self._cut:
            return
        if not size or {transport.host.name, transport.peer_host.name} != self._hosts:
            self._send(transport, size, call, *arguments)
            return
        data: bytes = arguments[0]
        frames = self._frames(transport, data)
        if self.repeats:
            data = self._repeated(data, frames)
            self._send(transport, len(data), call, data)
            return
        fault = self._fault
        if fault is None:
            self._send(transport, size, call, data)
            return
        found = next((one for one in frames if one.number == fault.number), None)
        if found is None and fault.number:
            self._send(transport, size, call, data)
            return
        self._fault = None
        # Without a frame: before the first one.
        begin, end = (0, 0) if found is None else (max(0, found.begin), found.end)
        if fault.kind == "cut":
            self._cut = [transport, transport.peer]
            cut = functools.partial(self._arrive_and_cut, transport, call)
            self._send(transport, size, cut, data[:end])
        elif fault.kind == "late":
            if begin:
                self._send(transport, begin, call, data[:begin])
            self._network.delay(transport, fault.seconds)
            self._send(transport, size - begin, call, data[begin:])
        else:
            again = self._repeated(data, [] if found is None else [found])
            self._send(transport, len(again), call, again)
        fault.begun(transport.host.name)

    @staticmethod
    def _repeated(data: bytes, frames: list[_Frame]) -> bytes:
        """Give the bytes with the answers among their frames twice."""
        for one in reversed(frames):
            if one.is_answer:
                data = data[: one.end] + data[one.begin : one.end] + data[one.end :]
        return data

    def _frames(self, transport: SimTransport, data: bytes) -> list[_Frame]:
        """Count the frames that end in these bytes."""
        begun = self._begun.setdefault((transport.number, transport.is_near), bytearray())
        before = len(begun)
        begun += data
        found: list[_Frame] = []
        at = 0
        while True:
            if begun.startswith(_MAGIC, at):
                at += len(_MAGIC)
                continue
            if len(begun) - at < _LENGTH.size:
                break
            end = at + _LENGTH.size + _LENGTH.unpack_from(begun, at)[0]
            if end > len(begun):
                break
            self._counts[self._name] += 1
            number = self._counts[self._name]
            # Of one that began before these bytes the rest alone could be repeated.
            is_answer = at >= before and self._is_answer(begun, at, end)
            if is_answer:
                self._answers.append(number)
            found.append(_Frame(number, at - before, end - before, is_answer))
            at = end
        del begun[:at]
        return found

    @staticmethod
    def _is_answer(data: bytearray, at: int, end: int) -> bool:
        if end - at != _ANSWER.size:
            return False
        _, kind, _, number = _ANSWER.unpack_from(data, at)
        return bool(kind == _NULL_RESPONSE and number != _NO_NUMBER)

    @staticmethod
    def _arrive_and_cut(
        transport: SimTransport, call: Callable[[bytes], object], data: bytes
    ) -> None:
        if data:
            call(data)
        transport.cut_off()

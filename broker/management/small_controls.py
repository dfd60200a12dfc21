"""Diverts and acceptors, looked at: `divert.NAME`, `acceptor.NAME`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from broker.management.invocation import Control

if TYPE_CHECKING:
    from broker.divert import Divert
    from broker.management.invocation import Getters
    from broker.transport.acceptor import Acceptor

__all__ = ["AcceptorControl", "DivertControl"]


class DivertControl(Control):
    """A divert (DivertControl)."""

    getters: ClassVar[Getters] = {
        "getUniqueName": lambda self: self.divert.unique_name,
        "getAddress": lambda self: self.divert.record.address,
        "getForwardingAddress": lambda self: self.divert.record.forwarding_address,
        "getRoutingName": lambda self: self.divert.record.routing_name,
        "getRoutingType": lambda self: self.divert.record.routing_type.name,
        "getFilter": lambda self: self.divert.record.filter,
        "isExclusive": lambda self: self.divert.is_exclusive,
        "isRetroactiveResource": lambda self: False,
    }

    def __init__(self, divert: Divert) -> None:
        self.divert = divert


class AcceptorControl(Control):
    """An acceptor (AcceptorControl)."""

    getters: ClassVar[Getters] = {
        "getName": lambda self: self.acceptor.options.name,
        "getParameters": lambda self: {
            "host": self.acceptor.options.host,
            "port": self.acceptor.port,
        },
        "isStarted": lambda self: True,
        "getConnectionCount": lambda self: len(self.acceptor.connections),
    }

    def __init__(self, acceptor: Acceptor) -> None:
        self.acceptor = acceptor

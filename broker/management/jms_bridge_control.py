"""A JMS bridge of this broker: `jmsbridge.NAME` (JMSBridgeControl, and the counters beside it)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from broker.bridges.jms.errors import BridgeError
from broker.management.errors import ManagementError
from broker.management.invocation import Control, operation
from broker.management.waiting import awaited

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from broker.bridges.jms.control import JMSBridgeControl
    from broker.management.invocation import Getters

__all__ = ["JMSBridgeResource"]

# Operation: the attribute that it reads.
_ATTRIBUTES: Final = {
    "getSourceUsername": "sourceUsername",
    "getTargetUsername": "targetUsername",
    "getSelector": "selector",
    "getFailureRetryInterval": "failureRetryInterval",
    "getMaxRetries": "maxRetries",
    "getQualityOfServiceMode": "qualityOfServiceMode",
    "getMaxBatchSize": "maxBatchSize",
    "getMaxBatchTime": "maxBatchTime",
    "getSubscriptionName": "subscriptionName",
    "getClientID": "clientID",
    "isAddMessageIDInHeader": "addMessageIDInHeader",
    "isStarted": "started",
    "isPaused": "paused",
    "isFailed": "failed",
    "getMessageCount": "messageCount",
    "getAbortedMessageCount": "abortedMessageCount",
    "getRetriedMessageCount": "retriedMessageCount",
    "getInDoubtCount": "inDoubtCount",
    "getLag": "lag",
    "getState": "state",
    "getWhy": "why",
    "getMode": "mode",
}


def _getter(attribute: str) -> Callable[[JMSBridgeResource], object]:
    return lambda resource: resource.control.attributes()[attribute]


class JMSBridgeResource(Control):
    """See the module's text. Operations wait in a thread: a bridge may take failover_timeout.

    Args:
        control: of the bridge.

    Attributes:
        control: as given.
    """

    getters: ClassVar[Getters] = {name: _getter(one) for name, one in _ATTRIBUTES.items()}

    def __init__(self, control: JMSBridgeControl) -> None:
        self.control = control

    @operation("start")
    def start(self) -> Generator[float, None, None]:
        """Start it; returns at once."""
        yield from self._done(self.control.start)

    @operation("stop")
    def stop(self) -> Generator[float, None, None]:
        """Stop it; a batch on its way is waited for."""
        yield from self._done(self.control.stop)

    @operation("pause")
    def pause(self) -> Generator[float, None, None]:
        """Move nothing until it is resumed."""
        yield from self._done(self.control.pause)

    @operation("resume")
    def resume(self) -> Generator[float, None, None]:
        """Move messages again."""
        yield from self._done(self.control.resume)

    def _done(self, work: Callable[[], None]) -> Generator[float, None, None]:
        try:
            yield from awaited(asyncio.to_thread(work))
        except BridgeError as error:
            raise ManagementError(str(error)) from None

"""What an acceptor's URI says of OpenWire, by Artemis's names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from broker.protocols.registry import AcceptorParameter
from broker.settings.value_types import (
    BOOLEAN,
    INT,
    LONG,
    TEXT,
    TEXTS,
    at_least,
    between,
    power_of_two,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FRAME_SIZE_MAX", "PARAMETERS"]

FRAME_SIZE_MAX: Final = 128 * 1024 * 1024
_INT_MAX: Final = 2**31 - 1
_FILTER: Final = re.compile(r".+;\d{1,4}(;selectorAware=(true|false))?", re.ASCII)
_FILTERS: Final = TEXTS.within(
    lambda texts: all(_FILTER.fullmatch(unquote(one)) for one in texts),
    "a filter and a number of words, as in Consumer.*.>;2",
)
PARAMETERS: Final[Mapping[str, AcceptorParameter]] = {
    # Tell clients of connections and of destinations that are made and removed.
    "supportAdvisory": AcceptorParameter(BOOLEAN, True),
    # Taken for Artemis's sake: advisories are kept in no address here.
    "suppressInternalManagementObjects": AcceptorParameter(BOOLEAN, True),
    # ms of silence that end a connection, the client's if that is less; 0 is for ever.
    "maxInactivityDuration": AcceptorParameter(at_least(LONG, 0), 30_000),
    # ms before silence counts. The name is Artemis's.
    "maxInactivityDurationInitalDelay": AcceptorParameter(at_least(LONG, 0), 10_000),
    # Send KeepAliveInfo where nothing else was sent; without it silence is for ever.
    "useKeepAlive": AcceptorParameter(BOOLEAN, True),
    # Of `failover:` clients: a message id is a duplicate id.
    "openwireUseDuplicateDetectionOnFailover": AcceptorParameter(BOOLEAN, True),
    # Queues whose names begin with a filter's words are those of an address: `Consumer.*.>;2`.
    "virtualTopicConsumerWildcards": AcceptorParameter(_FILTERS, ()),
    "virtualTopicConsumerLruCacheMax": AcceptorParameter(at_least(INT, 0), 10_000),
    # In BrokerInfo, advisories and errors.
    "brokerName": AcceptorParameter(TEXT, "localhost"),
    # Bytes of a frame, of a client that has logged in: ours, by the name of Classic's option.
    "maxFrameSize": AcceptorParameter(between(INT, 1024, _INT_MAX), FRAME_SIZE_MAX),
    # Of Artemis's threads and buffers; taken, and without a meaning here.
    "openwireMaxPacketChunkSize": AcceptorParameter(INT, 102_400),
    "openWireDestinationCacheSize": AcceptorParameter(power_of_two(INT), 16),
    "actorThresholdBytes": AcceptorParameter(INT, -1),
    "rebalanceClusterClients": AcceptorParameter(BOOLEAN, False),
    "updateClusterClients": AcceptorParameter(BOOLEAN, False),
    "updateClusterClientsOnRemove": AcceptorParameter(BOOLEAN, False),
}

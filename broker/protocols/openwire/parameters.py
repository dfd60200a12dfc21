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
_UNUSED: Final = "Taken for Artemis's sake, without a meaning here."
PARAMETERS: Final[Mapping[str, AcceptorParameter]] = {
    "supportAdvisory": AcceptorParameter(
        BOOLEAN,
        True,
        "Tell consumers of ActiveMQ.Advisory topics of connections, of destinations that are made "
        "and removed, and of slow consumers.",
    ),
    "suppressInternalManagementObjects": AcceptorParameter(BOOLEAN, True, _UNUSED),
    "maxInactivityDuration": AcceptorParameter(
        at_least(LONG, 0),
        30_000,
        "Milliseconds of silence that end a connection; the client's number if that is less. 0 "
        "for ever.",
    ),
    # The name is Artemis's.
    "maxInactivityDurationInitalDelay": AcceptorParameter(
        at_least(LONG, 0), 10_000, "Milliseconds before silence counts."
    ),
    "useKeepAlive": AcceptorParameter(
        BOOLEAN,
        True,
        "Send KeepAliveInfo where nothing else was sent; without it silence is for ever.",
    ),
    "openwireUseDuplicateDetectionOnFailover": AcceptorParameter(
        BOOLEAN, True, "The message id of a client with failover is a duplicate id."
    ),
    "virtualTopicConsumerWildcards": AcceptorParameter(
        _FILTERS,
        (),
        "Filters and numbers, by commas, such as Consumer.*.%3E%3B2: queues of these names are "
        "those of the address behind so many words. With %3BselectorAware=true behind the number "
        "a selector is the queue's.",
    ),
    "virtualTopicConsumerLruCacheMax": AcceptorParameter(at_least(INT, 0), 10_000, _UNUSED),
    "brokerName": AcceptorParameter(TEXT, "localhost", "What clients are told."),
    "maxFrameSize": AcceptorParameter(
        between(INT, 1024, _INT_MAX),
        FRAME_SIZE_MAX,
        "Bytes of a frame from a client that has logged in. Artemis has no such limit.",
    ),
    "openwireMaxPacketChunkSize": AcceptorParameter(INT, 102_400, _UNUSED),
    "openWireDestinationCacheSize": AcceptorParameter(power_of_two(INT), 16, _UNUSED),
    "actorThresholdBytes": AcceptorParameter(INT, -1, _UNUSED),
    "rebalanceClusterClients": AcceptorParameter(
        BOOLEAN,
        False,
        "With updateClusterClients: clients that are told of a change connect to another one.",
    ),
    "updateClusterClients": AcceptorParameter(
        BOOLEAN, False, "Tell clients of the cluster's brokers, at the login and at each change."
    ),
    "updateClusterClientsOnRemove": AcceptorParameter(BOOLEAN, False, _UNUSED),
}

"""How many messages a bridge may have on their way at once.

The target recognizes a message that it was sent before as long as its id is in the cache of the
address, which keeps the newest `id-cache-size`. So from the oldest message that may be sent again
up to the newest one there must never be more than that: a message may be sent again until its
acknowledgement is durable here.

    oldest that may be sent again … newest      at most the window, and the window ≤ id-cache-size

Ids that others send to the address do not count: of each node the newest stay
(broker/routing/duplicates.py). At a target of Artemis they do.

The bridge asks the target for its `id-cache-size` (management: `IDCacheSize` of the broker, and
`idCacheSize` of the settings of the address). Bridges of one name share it (`concurrency`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Final

from broker.client.errors import BrokerRefused, CallTimeout
from broker.routing.duplicates import SENDER_WINDOW

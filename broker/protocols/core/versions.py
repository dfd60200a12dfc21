"""Versions of the Core protocol, and what each of them changed on the wire.

A connection writes for the version of its peer; 0 is a peer that has not told it yet. The numbers
are those of Artemis's `activemq-version.properties` and `PacketImpl`.
"""

from __future__ import annotations

from typing import Final

CURRENT: Final = 136

# What a client tries, best first, while the broker answers INCOMPATIBLE_CLIENT_SERVER_VERSIONS.
CLIENT_VERSIONS: Final = tuple(range(CURRENT, 121, -1))
# What Artemis's broker accepts. Below `ADDRESSING` messages are framed in another way.
COMPATIBLE_VERSIONS: Final = range(121, CURRENT + 1)

TOPOLOGY_V2: Final = 122
DISCONNECT_CONSUMER: Final = 124
TOPOLOGY_V3: Final = 125
DISCONNECT_V2: Final = 125
QUERY_RESPONSE_V2: Final = 126
BINDING_QUERY_RESPONSE_V3: Final = 127
ADDRESSING: Final = 129
ASYNC_RESPONSE: Final = 130
CLIENT_ID: Final = 131
COMMIT_CORRELATION: Final = 132
PRODUCER_ID: Final = 134
BINDING_QUERY_RESPONSE_V5: Final = 135

"""What can go wrong with a JMS bridge.

BridgeError
├── BridgeConfigError     a parameter is wrong: the bridge does not start
│   └── QualityOfServiceError   what source and target can do does not give the quality of service
├── ProviderError         a source or target failed: the bridge tries again
│   ├── ProviderTimeout   it did not answer within failover_timeout
│   └── ConnectionLost    its connection ended
├── InDoubtError          a decided transaction has not ended on every side yet: it will be
└── XaError               a side refused a request of a transaction; `code` is that of the standard
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "XAER_NOTA",
    "XA_RBBASE",
    "XA_RBEND",
    "BridgeConfigError",
    "BridgeError",
    "ConnectionLost",
    "InDoubtError",
    "ProviderError",
    "ProviderTimeout",
    "QualityOfServiceError",
    "XaError",
]

XAER_NOTA: Final = -4  # The XA standard: the resource does not know the transaction.
# The first and last of those that say: it is rolled back already.
XA_RBBASE: Final = 100
XA_RBEND: Final = 107


class BridgeError(Exception):
    """Base of all errors of a JMS bridge."""


class BridgeConfigError(BridgeError, ValueError):
    """A parameter is wrong, or parameters do not go together; retrying does not help."""


class QualityOfServiceError(BridgeConfigError):
    """Source and target cannot give the quality of service that is asked for."""


class ProviderError(BridgeError):
    """The source or the target failed; the bridge connects again."""


class ProviderTimeout(ProviderError, TimeoutError):
    """The source or the target did not answer within `failover_timeout`."""


class ConnectionLost(ProviderError, ConnectionError):
    """The connection to the source or the target ended."""


class InDoubtError(BridgeError):
    """A transaction is decided and one side has not heard of it yet; recovery tells it."""


class XaError(BridgeError):
    """A side refused a request of a distributed transaction.

    Attributes:
        code: of the XA standard, such as XAER_NOTA, -4.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

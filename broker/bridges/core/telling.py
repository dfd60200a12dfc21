"""What a core bridge says of its target: in the log once it is connected, and why it is refused."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.bridges.core.window import ASSUMED
from broker.client.errors import BrokerRefused, SecurityRefused
from broker.errors import ErrorCode
from broker.security.cluster_user import is_default_pair

if TYPE_CHECKING:
    from broker.client.errors import ClientError
    from broker.config.cluster import BridgeConfig

__all__ = ["is_starting", "said", "tell_connected", "tell_forgetful"]

log = logging.getLogger("broker.bridge")


def tell_connected(
    name: str, config: BridgeConfig, where: str, cache_size: int | None, window: int
) -> None:
    """Log where a bridge is connected to, and how many messages may be on their way.

    Args:
        name: of the bridge.
        config: of it.
        where: host and port of the target.
        cache_size: duplicate ids that the target remembers; None where it does not tell.
        window: messages on their way at most.
    """
    log.info("AMQ221027: Bridge %s is connected to %s", name, where)
    if not config.use_duplicate_detection:
        log.info("bridge %s sends one message at a time: use-duplicate-detection is false", name)
    elif cache_size is None:
        log.warning(
            "bridge %s: target %s does not tell its id-cache-size to user %s; at most %d "
            "messages are on their way, which may double if it is smaller than %d",
            *(name, where, config.user, window, ASSUMED),
        )
    elif cache_size < config.concurrency:
        log.warning(
            "bridge %s: target %s remembers %d duplicate ids (id-cache-size): messages may "
            "double after a failure",
            *(name, where, cache_size),
        )
    else:
        log.info(
            "bridge %s: at most %d messages are on their way, id-cache-size of target %s is %d",
            *(name, window, where, cache_size),
        )


def tell_forgetful(name: str, where: str) -> None:
    """Log that a target forgets ids.

    Args:
        name: of the bridge.
        where: host and port of the target.
    """
    log.warning(
        "bridge %s: target %s keeps duplicate ids in memory alone (persist-id-cache is false): "
        "messages may double if it restarts",
        *(name, where),
    )


def said(error: Exception, config: BridgeConfig) -> str:
    """Give the reason of a failure in an operator's words.

    Args:
        error: why a bridge is not connected, or its message refused.
        config: of the bridge.
    """
    if not isinstance(error, BrokerRefused):
        return str(error)
    if isinstance(error, SecurityRefused) and is_default_pair(config.user, config.password):
        return (
            f"the target refuses the default cluster user, which everybody knows: {error}; "
            "give the bridge a <user> and a <password> of the target"
        )
    return f"the target refuses: {error}"


def is_starting(error: ClientError) -> bool:
    """Whether a target takes no session yet; such an attempt does not count.

    Args:
        error: of the attempt.
    """
    return isinstance(error, BrokerRefused) and error.code == ErrorCode.SESSION_CREATION_REJECTED

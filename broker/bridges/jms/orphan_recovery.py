"""What a bridge that is gone has left prepared: found by its definition, and ended if wanted."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.blocking.own_thread import call_in_own_thread
from broker.bridges.jms.blocking.providers import adapted
from broker.bridges.jms.decision_log import DecisionLog
from broker.bridges.jms.errors import BridgeConfigError, BridgeError
from broker.bridges.jms.options import JMSBridgeOptions
from broker.bridges.jms.orphans import find_orphans, resolve
from broker.bridges.jms.provider_types import connection_factory_factory
from broker.bridges.jms.providers import Credentials, SessionKind, TwoPhaseSession
from broker.bridges.jms.transactions import Role
from broker.environment import Environment
from broker.security.masking import Masking
from broker.storage.open import transaction_log_store
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from broker.bridges.jms.definition import BridgeDefinition, SideDefinition
    from broker.bridges.jms.orphans import Orphan
    from broker.bridges.jms.providers import Connection

__all__ = ["recovered"]

_CLOSE_S: Final = 5.0


async def recovered(
    definition: BridgeDefinition,
    *,
    ends: bool,
    are_restarted: bool = False,
    vm_url: str | None = None,
) -> list[Orphan]:
    """Give the transactions that a bridge has left prepared, in the order of their ids.

    Args:
        definition: of the bridge, which must not run.
        ends: end them, too, but for those in doubt.
        are_restarted: both brokers were restarted since the bridge ran.
        vm_url: of the broker that vm:// leads to; None where no side has that.

    Raises:
        BridgeError: a side cannot be reached, or refuses; the log is in use or damaged.
    """
    async with AsyncExitStack() as stack:
        decisions = None
        if definition.transaction_log is not None and definition.transaction_log.is_dir():
            decisions = DecisionLog(
                transaction_log_store(definition.transaction_log), Environment().ids
            )
            try:
                decisions.open()
            except JournalError as error:
                raise BridgeError(f"transaction log: {error}") from error
            stack.callback(decisions.close)
        sessions = {}
        timeout_s = JMSBridgeOptions(**definition.parameters).failover_timeout_s
        for role, side in ((Role.TARGET, definition.target), (Role.SOURCE, definition.source)):
            sessions[role] = await _session(stack, _reachable(side, vm_url), timeout_s)
        orphans = await find_orphans(
            sessions, definition.name, decisions, are_restarted=are_restarted
        )
        if ends:
            for orphan in orphans:
                await resolve(sessions, orphan, decisions)
        return orphans


def _reachable(side: SideDefinition, vm_url: str | None) -> SideDefinition:
    """Give a side as another process reaches it."""
    url = side.settings.get("url")
    if side.provider != "core" or not isinstance(url, str) or not url.startswith("vm://"):
        return side
    if vm_url is None:
        raise BridgeConfigError(
            f"{side.role}: vm:// leads to the broker that runs the bridge: give its URL (--vm-url)"
        )
    return dataclasses.replace(side, settings={**side.settings, "url": vm_url})


async def _session(
    stack: AsyncExitStack, side: SideDefinition, timeout_s: float
) -> TwoPhaseSession:
    password = side.password
    if password is not None:
        password = Masking.configured(None, mask_password=None).unmask(password)
    credentials = Credentials(side.user_name, password)
    try:
        async with asyncio.timeout(timeout_s):
            made = await call_in_own_thread(connection_factory_factory(side, None))
            connection = await adapted(made, side.role).connect(credentials)
            stack.push_async_callback(_closed, connection)
            if not connection.capabilities.two_phase:
                raise BridgeConfigError("it cannot prepare transactions, so it has none")
            session = await connection.session(SessionKind.TWO_PHASE)
    except Exception as error:
        # Whatever a provider raises.
        raise BridgeError(f"{side.role}: {str(error) or type(error).__name__}") from error
    assert isinstance(session, TwoPhaseSession), "its capabilities say so"
    return session


async def _closed(connection: Connection) -> None:
    closing: Awaitable[None] = connection.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_S):
            await closing

"""From the side of a definition to its factories: the provider types, by name.

core     `url`, or vm:// in a running broker                    broker/bridges/jms/core
jms      `jars`, `connection-factory`, `[side.jndi]`            broker/bridges/jms/jndi
stomp    `url`, by stomp.py                                     broker/bridges/jms/stomp
amqp     `url`, by python-qpid-proton                           broker/bridges/jms/amqp
a.b:c    a callable of the operator's, given the settings of the side
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from broker.bridges.jms.blocking.bridge import JMSBridge
from broker.bridges.jms.core.factory import CoreConnectionFactory
from broker.bridges.jms.errors import BridgeConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.bridges.jms.control import ManagementServer
    from broker.bridges.jms.core.in_process import InProcessBroker
    from broker.bridges.jms.definition import BridgeDefinition, SideDefinition

__all__ = ["connection_factory_factory", "make_bridge"]

# Provider type: its module, and the function there that takes a side's settings.
_TYPES: Final = {
    "jms": ("broker.bridges.jms.jndi.factory", "jndi_factory"),
    "stomp": ("broker.bridges.jms.stomp.factory", "stomp_factory"),
    "amqp": ("broker.bridges.jms.amqp.factory", "amqp_factory"),
}


def connection_factory_factory(
    side: SideDefinition, broker: InProcessBroker | None
) -> Callable[[], object]:
    """Give what makes a side's connection factory.

    Args:
        side: of a definition.
        broker: that vm:// leads to; None if no broker runs the bridge.

    Raises:
        BridgeConfigError: a setting is missing, not known or not valid; a package is missing.
    """
    try:
        if side.provider == "core":
            return _core(dict(side.settings), broker)
        return _other(side)
    except BridgeConfigError as error:
        raise BridgeConfigError(f"[{side.role}]: {error}") from None


def _core(settings: dict[str, Any], broker: InProcessBroker | None) -> Callable[[], object]:
    url = settings.pop("url", None)
    if not isinstance(url, str):
        raise BridgeConfigError("url is missing, such as tcp://localhost:61616")
    if settings:
        raise BridgeConfigError(f"provider core has no setting {min(settings)!r}")
    if url.startswith("vm://") and broker is None:
        raise BridgeConfigError("vm:// is for bridges that a broker runs; use tcp:// here")
    factory = CoreConnectionFactory(url, broker if url.startswith("vm://") else None)
    return lambda: factory


def _other(side: SideDefinition) -> Callable[[], object]:
    module, _, function = side.provider.partition(":")
    if not function:
        if side.provider not in _TYPES:
            raise BridgeConfigError(
                f"no provider {side.provider!r}; there are core, {', '.join(_TYPES)}, and any "
                "module:callable"
            )
        module, function = _TYPES[side.provider]
    try:
        make = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise BridgeConfigError(f"provider {side.provider!r}: {error}") from error
    found = make(dict(side.settings))
    if not callable(found):
        raise BridgeConfigError(
            f"provider {side.provider!r} gave {found!r}; it must be callable, and give a "
            "connection factory"
        )
    return found  # type: ignore[no-any-return] # any callable.


def make_bridge(
    definition: BridgeDefinition,
    *,
    broker: InProcessBroker | None = None,
    mbean_server: ManagementServer | None = None,
) -> JMSBridge:
    """Make a bridge of its definition; not started.

    Args:
        definition: as read.
        broker: that vm:// leads to; None if no broker runs the bridge.
        mbean_server: where it is managed; None is nowhere.

    Raises:
        BridgeConfigError: a setting cannot be, or object-name has no management.
    """
    if definition.object_name is not None and mbean_server is None:
        raise BridgeConfigError(
            f"{definition.path}: object-name is for bridges that a broker runs: no management here"
        )
    object_name = definition.object_name or definition.name
    try:
        return JMSBridge(
            connection_factory_factory(definition.source, broker),
            connection_factory_factory(definition.target, broker),
            lambda: definition.source.destination,
            lambda: definition.target.destination,
            transaction_log=definition.transaction_log,
            mbean_server=mbean_server,
            object_name=None if mbean_server is None else object_name,
            **definition.parameters,
        )
    except BridgeConfigError as error:
        raise BridgeConfigError(f"{definition.path}: {error}") from None

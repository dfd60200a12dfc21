"""Makes the addresses, queues and diverts that a configuration names, at a start and a reload.

    config-delete-*: FORCE ─▶ what the configuration no longer names is deleted
    addresses, queues, diverts of it ─▶ made, or changed

As Artemis does (ActiveMQServerImpl.deployReloadableConfigFromConfiguration), but in an order in
which a queue can go to another address. A configured divert is recorded like one that an operator
made: without FORCE it stays when the configuration no longer names it.

What a full disk has no room for waits: what is there already can be served, which makes room.

Threads: the event loop's alone.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker.errors import BrokerError, ErrorCode
from broker.notifications import NotificationType
from broker.routing.divert import DivertBinding
from broker.settings.policies import DeletionPolicy
from journal.errors import JournalError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Sequence

    from broker.model.routing_type import RoutingType
    from broker.notifications import Notifications
    from broker.ports import Settings
    from broker.queues.filter import Filter
    from broker.records.binding_records import Divert
    from broker.routing.address import Address
    from broker.routing.addresses import Addresses
    from broker.routing.administration import Administration
    from broker.routing.retroactive import Retroactive
    from broker.settings.queue_defaults import QueueRequest
    from broker.storage.manager import StorageManager

__all__ = ["Deployment"]

log = logging.getLogger("broker")

_ROOM_LOOK_S: Final = 1.0

# Attributes of a queue that a changed configuration changes.
_CONFIGURABLE: Final = (
    *("filter", "max_consumers", "purge_on_no_consumers", "exclusive", "non_destructive"),
    *("consumers_before_dispatch", "delay_before_dispatch", "group_rebalance", "group_buckets"),
    *("group_first_key", "ring_size", "enabled", "group_rebalance_pause_dispatch"),
    *("auto_delete", "auto_delete_delay", "auto_delete_message_count", "configuration_managed"),
    "routing_type",
)


class Deployment:
    """See the module's text.

    Args:
        administration: makes queues and their addresses.
        addresses: all there are.
        settings: of addresses.
        storage: where records go.
        notifications: who tells of diverts.
        retroactive: whose addresses, queues and diverts stay.
        parse_filter: a selector's text to a Filter.
        loop: whose turns it takes to look for room.
        on_failure: told of an error of the storage meanwhile.
        kept: addresses of the broker's own, which no configuration deletes.
        deletes: whether config-delete-* is obeyed; tools that open an instance delete nothing.
    """

    def __init__(
        self,
        administration: Administration,
        kept: Iterable[str],
        *,
        addresses: Addresses,
        settings: Settings,
        storage: StorageManager,
        notifications: Notifications,
        retroactive: Retroactive,
        parse_filter: Callable[[str], Filter | None],
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[Exception], object],
        deletes: bool = True,
    ) -> None:
        self._addresses = addresses
        self._settings = settings
        self._storage = storage
        self._notifications = notifications
        self._retroactive = retroactive
        self._parse_filter = parse_filter
        self._deletes = deletes
        self._administration = administration
        self._kept = frozenset(kept)
        self._loop = loop
        self._on_failure = on_failure
        # What the disk had no room for.
        self._waiting: list[Callable[[], object]] = []
        self._timer: asyncio.TimerHandle | None = None

    def apply(
        self,
        addresses: Sequence[tuple[str, tuple[RoutingType, ...]]],
        queues: Sequence[QueueRequest],
        diverts: Sequence[Divert],
    ) -> list[BrokerError]:
        """Bring it about; what could not be done, everything else is.

        What the disk has no room for is told in the log, and made once there is room.

        Args:
            addresses: with their routing types.
            queues: a queue's durability stays as it is.
            diverts: a name once.

        Raises:
            JournalError: the storage has failed.
        """
        if self._deletes:
            self._remove_diverts({record.name for record in diverts})
            self._undeploy(
                {name for name, _ in addresses}, {(one.name, one.address) for one in queues}
            )
        self.close()
        errors = self._make(partial(self._deploy_address, *one) for one in addresses)
        errors += self._make(partial(self._deploy_queue, request) for request in queues)
        self._narrow(addresses)
        errors += self._make(partial(self._deploy_divert, record) for record in diverts)
        if self._waiting:
            log.error(
                "no room for %d addresses, queues or diverts of the configuration: "
                "they are made once there is some",
                len(self._waiting),
            )
            self._look_later()
        return errors

    def close(self) -> None:
        """Make nothing any more that waits for room. Idempotent."""
        self._waiting = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _make(self, works: Iterable[Callable[[], object]]) -> list[BrokerError]:
        """Do each; the errors, but for those of a full disk."""
        errors = []
        for work in works:
            try:
                work()
            except BrokerError as error:
                if error.code is ErrorCode.ADDRESS_FULL:
                    self._waiting.append(work)
                else:
                    errors.append(error)
        return errors

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(_ROOM_LOOK_S, self._look_for_room)

    def _look_for_room(self) -> None:
        """Make what waits for it."""
        works, self._waiting = self._waiting, []
        try:
            errors = self._make(works)
        except JournalError as error:
            self._on_failure(error)
            return
        for refused in errors:
            log.warning("AMQ222274: %s", refused)
        if self._waiting:
            self._look_later()
        else:
            log.info("there is room again: the configuration is applied")

    def _deploy_address(self, name: str, routing_types: tuple[RoutingType, ...]) -> None:
        self._administration.ensure_address(name, routing_types, is_auto_created=False)

    def _deploy_queue(self, request: QueueRequest) -> None:
        found = self._addresses.queues.get(request.name)
        if found is None:
            self._administration.create_queue(request)
            return
        if found.binding.address != request.address:
            log.warning(
                "queue %s is on address %s: not made on %s, as it is configured",
                *(request.name, found.binding.address, request.address),
            )
            return
        wanted = request.binding(self._settings.match(request.address))
        changes: dict[str, Any] = {
            name: getattr(wanted, name)
            for name in _CONFIGURABLE
            if getattr(wanted, name) != getattr(found.binding, name)
        }
        if not changes:
            return
        if "routing_type" in changes:
            self._administration.ensure_address(
                request.address, [wanted.routing_type], is_auto_created=False
            )
        self._addresses.update_queue(request.name, **changes)

    def _narrow(self, addresses: Iterable[tuple[str, tuple[RoutingType, ...]]]) -> None:
        """Take away routing types that the configuration does not name, where no queue has them."""
        for name, routing_types in addresses:
            if name not in self._addresses.by_name:
                continue
            try:
                self._addresses.update(name, routing_types)
            except BrokerError as error:
                log.warning("address %s keeps its routing types: %s", name, error)

    # --- what is no longer configured ---------------------------------------------------------

    def _undeploy(self, addresses: set[str], queues: set[tuple[str, str]]) -> None:
        for address in list(self._addresses.by_name.values()):
            if address.is_temporary or address.is_internal or self._is_kept(address.name):
                continue
            settings = self._settings.match(address.name)
            if (
                address.name not in addresses
                and not address.is_auto_created
                and settings.config_delete_addresses is DeletionPolicy.FORCE
            ):
                self._undeploy_address(address)
            elif settings.config_delete_queues is DeletionPolicy.FORCE:
                for queue in list(address.queues.values()):
                    managed = queue.binding.configuration_managed
                    if managed and (queue.name, address.name) not in queues:
                        self._undeploy_queue(queue.name)

    def _is_kept(self, name: str) -> bool:
        return name in self._kept or self._retroactive.is_resource(name)

    def _undeploy_address(self, address: Address) -> None:
        for name in list(address.queues):
            self._undeploy_queue(name)
        try:
            self._addresses.delete(address.name)
        except BrokerError as error:
            log.warning("AMQ224102: Unable to undeploy address %s: %s", address.name, error)
        else:
            log.info("AMQ224076: Undeploying address %s", address.name)

    def _undeploy_queue(self, name: str) -> None:
        log.info("AMQ224077: Undeploying queue %s", name)
        self._addresses.delete_queue(name)

    # --- diverts ------------------------------------------------------------------------------

    def _remove_diverts(self, wanted: set[str | None]) -> None:
        for address in list(self._addresses.by_name.values()):
            settings = self._settings.match(address.name)
            if settings.config_delete_diverts is not DeletionPolicy.FORCE:
                continue
            for name, divert in list(address.diverts.items()):
                if divert.record.name not in wanted and not self._is_kept(name):
                    self._addresses.delete_divert(divert)

    def _deploy_divert(self, record: Divert) -> None:
        if record.address is None:
            return
        divert = DivertBinding(record, parse_filter=self._parse_filter)
        found = self._addresses.find_divert(divert.unique_name)
        if found is not None:
            if _without_routing_name(found.record) == _without_routing_name(record):
                self._record(found)
                return
            if found.address == record.address:
                # In its place: the order of diverts counts.
                divert.binding_id = found.binding_id
                self._record(divert, is_changed=True)
                self._addresses.bind(divert)
                return
            self._addresses.delete_divert(found)
        self._record(divert)
        self._ensure_source(record.address)
        self._addresses.bind(divert)
        self._notifications.binding(NotificationType.BINDING_ADDED, divert)

    def _record(self, divert: DivertBinding, *, is_changed: bool = False) -> None:
        storage = self._storage
        if not divert.binding_id:
            divert.binding_id = storage.add_setting(divert.record)
        elif is_changed:
            divert.binding_id = storage.replace_setting(divert.binding_id, divert.record)

    def _ensure_source(self, name: str) -> None:
        if name not in self._addresses.by_name:
            kind = self._settings.match(name).default_address_routing_type
            self._addresses.create(name, [kind], is_auto_created=True)


def _without_routing_name(record: Divert) -> Divert:
    """What can change: a routing name is chosen anew at each reading where none is configured."""
    return replace(record, routing_name=None)

"""The configuration written into a file, as broker properties of Artemis."""

from __future__ import annotations

from typing import Final

from broker.config.properties import configuration_properties
from broker.management.broker_part import BrokerPart
from broker.management.errors import ManagementError
from broker.management.invocation import operation
from broker.security.users import write_private

__all__ = ["EXPORTED", "BrokerExport"]

# In tmp/ of the instance.
EXPORTED: Final = "broker_config_as_properties.txt"


class BrokerExport(BrokerPart):
    """See the module's text."""

    @operation("exportConfigAsProperties")
    def export(self) -> None:
        """Write tmp/broker_config_as_properties.txt of the instance, for its owner alone."""
        config = self._broker.options.configuration
        if config.file is None:
            raise ManagementError("this broker has no configuration file, so it has no instance")
        path = config.instance / "tmp" / EXPORTED
        try:
            path.parent.mkdir(exist_ok=True)
            write_private(path, "".join(f"{one}\n" for one in configuration_properties(config)))
        except OSError as error:
            raise ManagementError(f"{path}: {error.strerror or error}") from error

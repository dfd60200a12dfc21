"""broker.xml as frozen dataclasses; `load` reads it, `BrokerConfig` is all of it."""

from __future__ import annotations

from broker.config.errors import ConfigError
from broker.config.load import BrokerConfig, load

__all__ = ["BrokerConfig", "ConfigError", "load"]

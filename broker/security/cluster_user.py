"""The default user by which brokers of a cluster know each other.

The pair is public: since 2.54 Artemis refuses it, and so does this broker.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DEFAULT_CLUSTER_PASSWORD", "DEFAULT_CLUSTER_USER", "is_default_pair"]

DEFAULT_CLUSTER_USER: Final = "ACTIVEMQ.CLUSTER.ADMIN.USER"
DEFAULT_CLUSTER_PASSWORD: Final = "CHANGE ME!!"


def is_default_pair(user: str | None, password: str | None) -> bool:
    """Whether both are the defaults (ActiveMQDefaultConfiguration)."""
    return user == DEFAULT_CLUSTER_USER and password == DEFAULT_CLUSTER_PASSWORD

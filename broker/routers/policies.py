"""Policies: which of the ready targets a key is for. No I/O.

A policy is a function of the targets, the key and its own turn. CONSISTENT_HASH_MODULO selects
none: it makes another key of the key, for `local-target-filter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from broker.config.connection_routers import PolicyConfig, PolicyName

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Candidate", "Policy", "hash_of"]

_FNV_INIT: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
_INT_MAX: Final = 2**31 - 1
_INT_RANGE: Final = 2**32


class Candidate(Protocol):
    """A target, as a policy sees it."""

    @property
    def node_id(self) -> str | None:
        """Of the broker."""

    @property
    def connection_count(self) -> int | None:
        """Connections that it had at its last check; None where it has not told."""


T = TypeVar("T", bound=Candidate)


def hash_of(text: str) -> int:
    """Give the hash of Artemis, so that both select the same target: FNV-1a of the UTF-16 units.

    >>> hash_of(""), hash_of("a"), hash_of("foobar")
    (-2128831035, -468965076, -1080231576)
    """
    found = _FNV_INIT
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        found = (found ^ int.from_bytes(units[at : at + 2])) * _FNV_PRIME % _INT_RANGE
    # As an int of Java has it: hashes are compared with their sign.
    return found - _INT_RANGE if found > _INT_MAX else found


class Policy:
    """See the module's text.

    Args:
        config: which one.
        first_turn: of ROUND_ROBIN, by chance: not all brokers begin with the same target.
    """

    def __init__(self, config: PolicyConfig, first_turn: int = 0) -> None:
        self.config = config
        self._turn = first_turn

    @property
    def counts_connections(self) -> bool:
        """Whether it wants to know how many connections each target has."""
        return self.config.name is PolicyName.LEAST_CONNECTIONS

    def transformed(self, key: str) -> str:
        """Give the key that a filter is applied to, and a target is selected by."""
        if self.config.name is PolicyName.CONSISTENT_HASH_MODULO:
            return str((hash_of(key) & _INT_MAX) % self.config.modulo)
        return key

    def select(self, targets: Sequence[T], key: str) -> T | None:
        """Give one of the targets; None where it selects none.

        Args:
            targets: that are ready, in their order.
            key: of the client.
        """
        if not targets:
            return None
        name = self.config.name
        if name is PolicyName.FIRST_ELEMENT:
            return targets[0]
        if name is PolicyName.ROUND_ROBIN:
            return self._next(targets)
        if name is PolicyName.CONSISTENT_HASH:
            return _nearest(targets, key)
        if name is PolicyName.LEAST_CONNECTIONS:
            return self._emptiest(targets)
        return None

    def _next(self, targets: Sequence[T]) -> T:
        found = targets[self._turn % len(targets)]
        self._turn = (self._turn + 1) % len(targets)
        return found

    def _emptiest(self, targets: Sequence[T]) -> T:
        counts = [self._count(one) for one in targets]
        least = min(counts)
        return self._next(
            [one for one, count in zip(targets, counts, strict=True) if count == least]
        )

    def _count(self, target: Candidate) -> int:
        count = target.connection_count
        if count is None:
            return _INT_MAX
        return 0 if count < self.config.connection_count_threshold else count


def _nearest(targets: Sequence[T], key: str) -> T:
    """Give the target with the largest hash that is not above that of the key."""
    by_hash = {hash_of(one.node_id or ""): one for one in targets}
    wanted = hash_of(key)
    # Below the lowest target it is the lowest one again, as in Artemis.
    return by_hash[max((one for one in by_hash if one <= wanted), default=min(by_hash))]

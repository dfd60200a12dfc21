"""Logins and permissions, with what was found out kept for a while.

The first setting that matches an address decides alone: settings do not merge. A fully qualified
name is looked up exactly first, then its address. The cluster's own user passes everything. Nothing
that matches permits nothing.

Answers, also the refusing ones, are kept for security-invalidation-interval: a password that was
changed holds as long, as in Artemis. The cache of logins has a keyed hash of the password as
key, never the password; its key lives in this process alone.
"""

from __future__ import annotations

import hmac
import logging
import math
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from broker.errors import BrokerError, broker_error
from broker.model.address import DEFAULT_WILDCARDS, WildcardConfiguration, split_fqqn
from broker.rare_lines import RareLines
from broker.security.cluster_user import is_default_pair
from broker.security.counts import SecurityCounts
from broker.security.permission import Permission, RoleTable
from broker.settings.hierarchical_repository import HierarchicalRepository

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

__all__ = ["Authenticator", "CertificateAuthenticator", "SecurityManager", "Subject"]

log = logging.getLogger("broker")

V = TypeVar("V")


class Authenticator(Protocol):
    """Who knows passwords; `broker.security.users.Users` does."""

    def authenticate(self, name: str, password: str) -> frozenset[str] | None:
        """The roles of a user, None if this is not his password."""


class CertificateAuthenticator(Protocol):
    """Who knows certificates; `broker.security.certificate_users.CertificateUsers` does."""

    def authenticate(self, principal: str) -> tuple[str, frozenset[str]] | None:
        """The user that a certificate is for, with his roles; None if no user has it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Somebody who logged in.

    Attributes:
        name: of the user; None without one.
        roles: that he has.
        is_cluster: another node of the cluster, which may do anything.
    """

    name: str | None
    roles: frozenset[str]
    is_cluster: bool = False


ANONYMOUS: Final = Subject(None, frozenset())


class SecurityManager:
    """Says who may do what. Not safe for threads: the event loop's.

    Args:
        users: who knows passwords; None refuses everybody but the cluster.
        permissions: roles by match.
        enabled: security-enabled; without it everybody may do everything.
        cluster_user: name of the cluster's user.
        cluster_password: his password.
        guest: who somebody is that gives no name; None refuses him.
        certificates: who knows certificates; None refuses all of them.
        invalidation_interval_ms: how long an answer holds; 0 keeps none.
        authentication_cache_size: logins kept at most; 0 keeps none.
        authorization_cache_size: permissions kept at most; 0 keeps none.
        wildcards: the characters of matches.
        literal_markers: literal-match-markers.
        uuid_namespace: uuid-namespace.
        clock: seconds, for tests.

    Attributes:
        counts: of answers.
        users: who knows passwords.
    """

    def __init__(
        self,
        users: Authenticator | None,
        permissions: Iterable[tuple[str, RoleTable]] = (),
        *,
        enabled: bool = True,
        cluster_user: str | None = None,
        cluster_password: str = "",
        guest: Subject | None = None,
        certificates: CertificateAuthenticator | None = None,
        invalidation_interval_ms: int = 10_000,
        authentication_cache_size: int = 1000,
        authorization_cache_size: int = 1000,
        wildcards: WildcardConfiguration = DEFAULT_WILDCARDS,
        literal_markers: str | None = None,
        uuid_namespace: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.enabled = enabled
        self.permissions: HierarchicalRepository[RoleTable] = HierarchicalRepository(
            wildcards, literal_markers, uuid_namespace
        )
        for match, table in permissions:
            self.permissions.add(match, table)
        self.permissions.on_change(self.invalidate)
        self.counts = SecurityCounts()
        self.users = users
        self._cluster_user = cluster_user
        self._cluster_password = cluster_password
        self._guest = guest
        self._certificates = certificates
        self._key = secrets.token_bytes(32)
        interval_s = invalidation_interval_ms / 1000
        self._logins: _Cache[Subject | None] = _Cache(authentication_cache_size, interval_s, clock)
        self._answers: _Cache[bool] = _Cache(authorization_cache_size, interval_s, clock)
        self._lines = RareLines(clock)

    def authenticate(
        self, name: str | None, password: str | None, principal: str | None = None
    ) -> Subject:
        """Who this is: by the password, else by the certificate; the guest, who has no name.

        Args:
            name: as the client says; None without one.
            password: likewise.
            principal: of a certificate that TLS has verified; None without one.

        Raises:
            BrokerError: SECURITY_EXCEPTION, wrong name or password; the text does not say which.
        """
        try:
            subject = self._authenticate(name, password, principal)
        except BrokerError:
            self.counts.unauthenticated += 1
            raise
        self.counts.authenticated += 1
        return subject

    def authenticate_principal(self, principal: str) -> Subject:
        """Who a verified certificate is for. No answer is kept: it is one look-up.

        Raises:
            BrokerError: SECURITY_EXCEPTION, it is of no user.
        """
        if not self.enabled:
            return Subject(principal, frozenset())
        found = self._of_certificate(principal)
        if found is None:
            self.counts.unauthenticated += 1
            raise _unknown(principal)
        self.counts.authenticated += 1
        return found

    def _of_certificate(self, principal: str | None) -> Subject | None:
        found = None
        if principal is not None and self._certificates is not None:
            try:
                found = self._certificates.authenticate(principal)
            except (OSError, ValueError) as error:
                log.error("no client can log in by a certificate: %s", error)
        return None if found is None else Subject(*found)

    def _authenticate(
        self, name: str | None, password: str | None, principal: str | None
    ) -> Subject:
        if self.enabled and is_default_pair(name, password):
            # Also if it is the configured one: everybody knows it.
            raise _unknown(name)
        if name is not None and name == self._cluster_user:
            given, wanted = (password or "").encode(), self._cluster_password.encode()
            if hmac.compare_digest(given, wanted):
                return Subject(name, frozenset(), is_cluster=True)
            if self.enabled:
                raise _unknown(name)
        if not self.enabled:
            return ANONYMOUS if name is None else Subject(name, frozenset())
        if name is None:
            subject = self._of_certificate(principal) or self._guest
        else:
            subject = self._by_password(name, password or "") or self._of_certificate(principal)
        if subject is None:
            raise _unknown(name)
        return subject

    def _by_password(self, name: str, password: str) -> Subject | None:
        key = (name, hmac.digest(self._key, password.encode(), "sha256"))
        is_kept, subject = self._logins.get(key)
        if is_kept:
            return subject
        roles = None
        if self.users is not None:
            try:
                roles = self.users.authenticate(name, password)
            except OSError as error:
                # Asked again at the next login: the file may be back by then.
                log.error("no client can log in by a password: %s", error)
                return None
        subject = None if roles is None else Subject(name, roles)
        self._logins.put(key, subject)
        return subject

    def is_allowed(self, subject: Subject, permission: Permission, name: str) -> bool:
        """Whether somebody may do this at an address or a fully qualified name."""
        answer = self._is_allowed(subject, permission, name)
        if answer:
            self.counts.authorized += 1
        else:
            self.counts.unauthorized += 1
        return answer

    def _is_allowed(self, subject: Subject, permission: Permission, name: str) -> bool:
        if not self.enabled or subject.is_cluster:
            return True
        key = (subject.roles, permission, name)
        is_kept, answer = self._answers.get(key)
        if is_kept:
            return bool(answer)
        answer = self._look_up(subject, permission, name)
        self._answers.put(key, answer)
        return answer

    def check(self, subject: Subject, permission: Permission, name: str) -> float | None:
        """Refuse what is not allowed.

        Args:
            subject: who.
            permission: what.
            name: the address, or `address::queue` where a queue is named.

        Returns:
            Until when the answer holds, on the clock; None where it is not kept.

        Raises:
            BrokerError: SECURITY_EXCEPTION.
        """
        if not self.is_allowed(subject, permission, name):
            error = broker_error(
                "no_permission",
                f"User: {subject.name} does not have permission='{permission.name}' on "
                f"{_place(name)}",
            )
            self._lines.warn((subject.name, permission, name), "refused: %s", error.text)
            raise error
        if not self.enabled or subject.is_cluster:
            return math.inf
        return self._answers.until((subject.roles, permission, name))

    def cached(self) -> tuple[int, int]:
        """How many logins and how many permissions are kept."""
        return len(self._logins), len(self._answers)

    def invalidate(self) -> None:
        """Forget every answer: users or permissions have changed."""
        self._logins.clear()
        self._answers.clear()

    def _look_up(self, subject: Subject, permission: Permission, name: str) -> bool:
        address, queue = split_fqqn(name)
        if queue is not None:
            table = self.permissions.exact(name)
            if table is not None:
                return table.allows(permission, subject.roles)
        candidates = self.permissions.candidates(address)
        if candidates and candidates[0].allows(permission, subject.roles):
            return True
        if permission is Permission.CONSUME and queue is not None:
            # Deprecated in Artemis, and still there: a match `address.queue`.
            table = self.permissions.exact(f"{address}.{queue}")
            return table is not None and table.allows(permission, subject.roles)
        return False


class _Cache(Generic[V]):
    """Answers that hold for a while; the one not used for longest goes when it is full."""

    def __init__(self, size_max: int, interval_s: float, clock: Callable[[], float]) -> None:
        self._size_max = size_max
        self._interval_s = interval_s
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def get(self, key: Hashable) -> tuple[bool, V | None]:
        """Whether there is an answer, and it."""
        found = self._kept.get(key)
        if found is None:
            return False, None
        until, value = found
        if until <= self._clock():
            del self._kept[key]
            return False, None
        self._kept.move_to_end(key)
        return True, value

    def until(self, key: Hashable) -> float | None:
        """Until when an answer holds; None where there is none."""
        found = self._kept.get(key)
        return None if found is None else found[0]

    def put(self, key: Hashable, value: V) -> None:
        if self._size_max <= 0 or self._interval_s <= 0:
            return
        self._kept[key] = (self._clock() + self._interval_s, value)
        self._kept.move_to_end(key)
        if len(self._kept) > self._size_max:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)


def _place(name: str) -> str:
    address, queue = split_fqqn(name)
    return f"address {address}" if queue is None else f"queue {queue} on address {address}"


def _unknown(name: str | None) -> BrokerError:
    return broker_error("unable_to_validate_user", f"Unable to validate user: {name}")

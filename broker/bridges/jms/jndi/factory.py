"""Connects to any JMS provider, which the extra `jms` does by JPype.

    [source]
    provider = "jms"
    jars = ["lib/artemis-jms-client-all.jar"]     jars, or folders of jars
    connection-factory = "ConnectionFactory"       JNDI name
    queue = "queues/orders"                        JNDI name
    keeps-duplicate-ids = false                    whether it drops a second _AMQ_DUPL_ID

    [source.jndi]                                  properties of the InitialContext
    "java.naming.factory.initial" = "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory"
    "connectionFactory.ConnectionFactory" = "tcp://localhost:61616"
    "queue.queues/orders" = "orders"

Both generations of the API are used: javax.jms and jakarta.jms.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from broker.bridges.jms.errors import BridgeConfigError, ConnectionLost, ProviderError, XaError
from broker.bridges.jms.jndi.conversion import Conversion
from broker.bridges.jms.jndi.jvm import class_loader, running_jvm
from broker.bridges.jms.providers import Capabilities, DestinationKind, SessionKind
from broker.model.xid import Xid

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import Credentials, Destination, Subscription

__all__ = ["JndiConnectionFactory", "jndi_factory"]

_SETTINGS: Final = {
    "jars": list,
    "connection-factory": str,
    "jndi": dict,
    "keeps-duplicate-ids": bool,
}
_PACKAGES: Final = ("jakarta.jms", "javax.jms")
# Constants of the interfaces, which are the same in both packages.
_AUTO, _TRANSACTED = 1, 0
_DELIVERY_MODES: Final = {False: 1, True: 2}
_TM_SUCCESS, _TM_FAIL = 0x4000000, 0x20000000
_TM_WHOLE_SCAN: Final = 0x1000000 | 0x800000


def jndi_factory(settings: dict[str, Any]) -> Callable[[], object]:
    """Give the connection factory factory of a side whose provider is `jms`.

    Args:
        settings: of the side; see the module's text.

    Raises:
        BridgeConfigError: a setting is missing, not known or not valid; JPype, Java or a jar is
            missing.
    """
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise BridgeConfigError(f"provider jms has no setting {name!r}")
        if not isinstance(value, _SETTINGS[name]):
            raise BridgeConfigError(f"{name} is {value!r}; it must be {_SETTINGS[name].__name__}")
    for name in ("jars", "connection-factory"):
        if name not in settings:
            raise BridgeConfigError(f"{name} is missing")
    jars = tuple(str(jar) for jar in settings["jars"])
    class_loader(jars)
    properties = {str(name): str(value) for name, value in settings.get("jndi", {}).items()}
    # The look-up may block: it is done before each connection, in a thread of its own.
    return lambda: JndiConnectionFactory(
        jars,
        settings["connection-factory"],
        tuple(sorted(properties.items())),
        keeps_duplicate_ids=settings.get("keeps-duplicate-ids", False),
    )


@dataclass(frozen=True, slots=True)
class JndiConnectionFactory:
    """See the module's text. A `BlockingConnectionFactory`; two that are equal are one provider.

    Attributes:
        jars: of the provider.
        name: of the connection factory in JNDI.
        properties: of the InitialContext.
        keeps_duplicate_ids: whether it drops a second message with the same _AMQ_DUPL_ID.
    """

    jars: tuple[str, ...]
    name: str
    properties: tuple[tuple[str, str], ...] = ()
    keeps_duplicate_ids: bool = field(default=False, kw_only=True)

    def connect(self, credentials: Credentials) -> JndiConnection:
        """Connect; see `ConnectionFactory`."""
        return JndiConnection(self, credentials)


class JndiConnection:
    """A connection; see `Connection`. Used by one thread; Java's own tell of its loss.

    Args:
        factory: that made it.
        credentials: who the bridge is.
    """

    def __init__(self, factory: JndiConnectionFactory, credentials: Credentials) -> None:
        self._jpype = jpype = running_jvm()
        self._loader = class_loader(factory.jars)
        self._credentials = credentials
        self.lost: Exception | None = None
        # JNDI and the provider find their classes by it.
        jpype.JClass("java.lang.Thread").currentThread().setContextClassLoader(self._loader)
        self._context = self._initial_context(factory.properties)
        self._factory = self._looked_up(factory.name)
        self.conversion = Conversion(jpype, self._api())
        self._connections: list[Any] = []
        self._xa_has_client_id = False
        self._connection = self._connected(self._factory.createConnection, credentials.client_id)
        self.capabilities = Capabilities(
            keeps_duplicate_ids=factory.keeps_duplicate_ids,
            two_phase=hasattr(self._factory, "createXAConnection"),
        )

    def _initial_context(self, properties: tuple[tuple[str, str], ...]) -> Any:
        table = self._jpype.JClass("java.util.Hashtable")()
        for name, value in properties:
            table.put(name, value)
        return self._java("JNDI", lambda: self._jpype.JClass("javax.naming.InitialContext")(table))

    def _looked_up(self, name: str) -> Any:
        return self._java(f"JNDI name {name!r}", lambda: self._context.lookup(name))

    def _java(self, what: str, call: Callable[[], Any]) -> Any:
        """Call Java; its exceptions name what failed."""
        try:
            return call()
        except self._jpype.JException as error:
            raise ProviderError(f"{what}: {error.toString()}") from error

    def _api(self) -> Callable[[str], Any]:
        """Give what loads a class of the JMS API that the connection factory implements."""
        for package in _PACKAGES:
            try:
                found = self._loader.loadClass(f"{package}.ConnectionFactory")
            except self._jpype.JException:
                continue
            if found.isInstance(self._factory):
                return lambda name: self._jpype.JClass(self._loader.loadClass(f"{package}.{name}"))
        raise BridgeConfigError(
            f"{self._factory.getClass().getName()} does not implement a connection factory of JMS"
        )

    def _connected(self, create: Any, client_id: str | None) -> Any:
        user = self._credentials.user_name
        made = self._java(
            "connecting",
            lambda: create() if user is None else create(user, self._credentials.password),
        )
        self._connections.append(made)
        try:
            listener = self._jpype.JProxy(
                self._api()("ExceptionListener"), dict={"onException": self._failed}
            )
            made.setExceptionListener(listener)
            if client_id is not None:
                self._java(f"client id {client_id!r}", lambda: made.setClientID(client_id))
            self._java("starting", made.start)
        except BaseException:
            made.close()
            raise
        return made

    def _failed(self, error: Any) -> None:
        self.lost = ConnectionLost(str(error.toString()))

    def session(self, kind: SessionKind) -> JndiSession:
        """Give a session; see `Connection`.

        Of what JMS has, a commit alone returns once the provider has done its work. Clients of both
        Artemis and ActiveMQ Classic write an acknowledgement, or a non-durable message, and do not
        wait for an answer. So these sessions are transacted. Where duplicate ids are kept, sends
        are not: there a known id would undo what else is in the transaction.
        """
        if kind is SessionKind.TWO_PHASE:
            connection = self._xa_connection()
            xa = self._java("a session", connection.createXASession)
            return JndiSession(self, connection, xa, xa.getXAResource())
        is_auto = kind is SessionKind.AUTO
        is_transacted = not (is_auto and self.capabilities.keeps_duplicate_ids)
        mode = _TRANSACTED if is_transacted else _AUTO
        made = self._java("a session", lambda: self._connection.createSession(is_transacted, mode))
        return JndiSession(
            self, self._connection, made, None, commits_sends=is_auto and is_transacted
        )

    def _xa_connection(self) -> Any:
        """Give a connection for two-phase commit.

        One connection alone may have the client id of a durable subscription: the first of these,
        and the one there was before is of no use then.
        """
        client_id = None if self._xa_has_client_id else self._credentials.client_id
        if client_id is not None:
            self._xa_has_client_id = True
            self._connections.remove(self._connection)
            self._java("closing", self._connection.close)
        return self._connected(self._factory.createXAConnection, client_id)

    def destination(self, destination: Destination) -> Any:
        """Look a destination up."""
        return self._looked_up(destination.name)

    def call(self, what: str, work: Callable[[], Any]) -> Any:
        """Call Java for a session; see `_java`."""
        return self._java(what, work)

    @property
    def jpype(self) -> Any:
        """The module, its JVM running."""
        return self._jpype

    def duplicate_ids_max(self, destination: Destination) -> int | None:
        """Not known by JMS; see `Connection`."""
        return None

    def close(self) -> None:
        """Close all connections, also where one of them fails.

        Raises:
            ProviderError: one has failed.
        """
        with ExitStack() as closing:
            for one in reversed(self._connections):
                closing.callback(self._java, "closing", one.close)


class JndiSession:
    """A session; see `TwoPhaseSession`.

    Args:
        connection: that it belongs to.
        java_connection: of Java.
        session: of Java.
        resource: XAResource; None without.
        commits_sends: a transaction of the session makes sends sure, and the bridge has none.
    """

    def __init__(
        self,
        connection: JndiConnection,
        java_connection: Any,
        session: Any,
        resource: Any,
        *,
        commits_sends: bool = False,
    ) -> None:
        self._connection = connection
        self._java_connection = java_connection
        self._session = session
        self._resource = resource
        self._commits_sends = commits_sends

    def receiver(
        self, destination: Destination, selector: str | None, subscription: Subscription | None
    ) -> JndiReceiver:
        """Begin to receive."""
        session, call = self._session, self._connection.call
        java = self._connection.destination(destination)
        # Without a selector there is none among the arguments: ActiveMQ Classic's session has a
        # method of its own that may take a null in its place.
        if subscription is not None and destination.kind is DestinationKind.TOPIC:
            more: tuple[object, ...] = () if selector is None else (selector, False)
            consumer = call(
                f"subscription {subscription.name!r}",
                lambda: session.createDurableSubscriber(java, subscription.name, *more),
            )
        else:
            more = () if selector is None else (selector,)
            consumer = call(
                f"consumer of {destination}", lambda: session.createConsumer(java, *more)
            )
        return JndiReceiver(self._connection, consumer)

    def sender(self, destination: Destination) -> JndiSender:
        """Give what sends there."""
        java = self._connection.destination(destination)
        producer = self._connection.call(
            f"producer for {destination}", lambda: self._session.createProducer(java)
        )
        commit = self.commit if self._commits_sends else None
        return JndiSender(self._connection, self._session, producer, commit)

    def stop(self) -> None:
        """Let no further message be delivered."""
        self._connection.call("stopping", self._java_connection.stop)

    def start(self) -> None:
        """Let messages be delivered again."""
        self._connection.call("starting", self._java_connection.start)

    def acknowledge(self) -> None:
        """Acknowledge all that was received."""
        self.commit()

    def commit(self) -> None:
        """Commit."""
        self._connection.call("commit", self._session.commit)

    def close(self) -> None:
        """Close it."""
        self._connection.call("closing", self._session.close)

    # --- two phases ---------------------------------------------------------------------------

    def _xa(self, work: Callable[[], Any]) -> Any:
        jpype = self._connection.jpype
        try:
            return work()
        except jpype.JClass("javax.transaction.xa.XAException") as error:
            raise XaError(int(error.errorCode), str(error.toString())) from error
        except jpype.JException as error:
            raise ProviderError(str(error.toString())) from error

    def _java_xid(self, xid: Xid) -> Any:
        jpype = self._connection.jpype
        array = jpype.JArray(jpype.JByte)
        return jpype.JProxy(
            jpype.JClass("javax.transaction.xa.Xid"),
            dict={
                "getFormatId": lambda: xid.format_id,
                "getGlobalTransactionId": lambda: array(xid.gtx),
                "getBranchQualifier": lambda: array(xid.bq),
            },
        )

    def xa_start(self, xid: Xid) -> None:
        """Begin a branch."""
        self._xa(lambda: self._resource.start(self._java_xid(xid), 0))

    def xa_end(self, xid: Xid, *, failed: bool = False) -> None:
        """Do no more work in the branch."""
        flag = _TM_FAIL if failed else _TM_SUCCESS
        self._xa(lambda: self._resource.end(self._java_xid(xid), flag))

    def xa_prepare(self, xid: Xid) -> None:
        """Prepare; a branch without work is over, and its commit finds none."""
        self._xa(lambda: self._resource.prepare(self._java_xid(xid)))

    def xa_commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """Commit the branch."""
        self._xa(lambda: self._resource.commit(self._java_xid(xid), one_phase))

    def xa_rollback(self, xid: Xid) -> None:
        """Roll the branch back."""
        self._xa(lambda: self._resource.rollback(self._java_xid(xid)))

    def xa_forget(self, xid: Xid) -> None:
        """Forget a branch that an operator has ended."""
        self._xa(lambda: self._resource.forget(self._java_xid(xid)))

    def xa_recover(self) -> tuple[Xid, ...]:
        """Give the branches that are prepared."""
        found = self._xa(lambda: self._resource.recover(_TM_WHOLE_SCAN))
        return tuple(
            Xid(
                int(one.getFormatId()),
                bytes(one.getBranchQualifier()),
                bytes(one.getGlobalTransactionId()),
            )
            for one in found or ()
        )


class JndiReceiver:
    """Receives from one destination.

    Args:
        connection: that it belongs to.
        consumer: of Java.
    """

    def __init__(self, connection: JndiConnection, consumer: Any) -> None:
        self._connection = connection
        self._consumer = consumer

    def receive(self, timeout_s: float) -> JMSMessage | None:
        """Give the next message."""
        # 0 would wait for ever.
        wait_ms = max(1, round(timeout_s * 1000))
        message = self._connection.call("receiving", lambda: self._consumer.receive(wait_ms))
        return None if message is None else self._connection.conversion.received(message)


class JndiSender:
    """Sends to one destination.

    Args:
        connection: that it belongs to.
        session: of Java.
        producer: of Java.
        commit: makes what was sent sure; None if the bridge commits, or each send is by itself.
    """

    def __init__(
        self,
        connection: JndiConnection,
        session: Any,
        producer: Any,
        commit: Callable[[], None] | None,
    ) -> None:
        self._connection = connection
        self._session = session
        self._producer = producer
        self._commit = commit

    def send(self, message: JMSMessage) -> None:
        """Send; outside of a transaction a durable one is stored when this returns."""
        java = self._connection.conversion.sent(message, self._session)
        ttl_ms = 0
        if message.expiration_ms:
            now_ms = int(self._connection.jpype.JClass("java.lang.System").currentTimeMillis())
            ttl_ms = max(1, message.expiration_ms - now_ms)
        mode = _DELIVERY_MODES[message.durable]
        self._connection.call(
            "sending", lambda: self._producer.send(java, mode, message.priority, ttl_ms)
        )

    def confirmed(self) -> None:
        """Commit, where that confirms."""
        if self._commit is not None:
            self._commit()

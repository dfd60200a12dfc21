"""A broker on the bench that is managed by messages, as a client would."""

import json

from broker.cluster.cluster_manager import ClusterManager
from broker.environment import Environment
from broker.errors import BrokerError, ErrorCode
from broker.management.message_counters import MessageCounters
from broker.management.notifications import NotificationMessages
from broker.management.registry import Resources
from broker.management.service import Management
from broker.model.encoding import BodyReader, BodyWriter
from broker.model.message import Message
from broker.model.properties import PropertyType
from broker.options import BrokerOptions
from broker.recovery.replay import Replay
from broker.server.bridging import Bridging
from broker.server.clients import Clients
from broker.server.lifecycle import Lifecycle
from broker.server.server import Broker
from broker.server.stored_connectors import StoredConnectors
from broker.server.stored_permissions import StoredPermissions
from broker.server.stored_settings import StoredSettings
from broker.storage.null_storage import NullStorage
from tests.broker.bench import Bench, FakeLoop, done

ANSWERS = "answers"


class Failed(Exception):
    """The answer says so."""


class ManagedBench(Bench):
    """Is what management sees of a broker, too."""

    def __init__(self, storage=None, loop=None, options=None):
        storage, loop = storage or NullStorage(), loop or FakeLoop()
        given = options or BrokerOptions(name="bench")
        self.node_id = "node"
        self.lifecycle = Lifecycle()
        self.ownership = None
        # What a broker has in objects of their own.
        self.clients = self.parts = self.managing = self
        notifications = NotificationMessages(
            storage,
            lambda: self.now_ms,
            self.node_id,
            given.notifications,
            lambda: self.lifecycle.is_active,
        )
        self.ids = Environment().ids
        super().__init__(
            storage,
            loop,
            notifications=notifications,
            management_address=given.management.address,
        )
        notifications.postoffice = self.postoffice
        self.options = options or BrokerOptions(name="bench", settings=self.settings)
        self.replay = Replay(
            history=None,
            postoffice=self.postoffice,
            storage=self.storage,
            large=None,
            clock_ms=self.clock_ms,
            parse_filter=self.parse_filter,
        )
        self.started_ms = self.now_ms
        self.connection_count_total = self.session_count_total = 0
        self.routers = None
        self.connections, self.sessions, self.acceptors, self.web = {}, {}, [], []
        self.stored_settings = StoredSettings(self.storage, self.settings)
        self.stored_permissions = StoredPermissions(self.storage, self.security.permissions)
        self.stored_connectors = StoredConnectors(
            self.storage, self.options.configuration.cluster.connectors
        )
        self.bridges = Bridging(self.options, self, self, self.node_id, Environment(), ())
        self.jms_bridges = {}
        self.cluster = ClusterManager(
            self.options.configuration.cluster,
            connectors=self.stored_connectors.by_name,
            node_id=self.node_id,
            environment=Environment(),
            notifications=notifications,
            has_default_credentials=False,
        )
        self.message_counters = MessageCounters(
            queues=self.addresses.queues,
            timers=self.loop,
            clock_ms=self.clock_ms,
            is_enabled=False,
            sample_period_ms=10_000,
            day_count_max=10,
        )
        self.management = Management(
            postoffice=self.postoffice,
            security=self._security,
            storage=self.storage,
            timers=self.loop,
            options=self.options.management,
            resource=Resources(self).find,
        )
        self.lifecycle.activated()
        self.manager = self.session()
        self.queue(ANSWERS, is_durable=False)
        self.answers = self.consume(ANSWERS, session=self.manager)

    authenticate = Clients.authenticate
    reload_configuration = Broker.reload_configuration
    # It has no file.
    _configuration = None

    def give_place(self):
        """There is no other one that could take it."""

    def scale_down(self, connector=None, *, is_forced=False):
        """There is no other node."""
        raise BrokerError(ErrorCode.ILLEGAL_STATE, "scale-down needs a cluster-connection")

    def session(self, **options):
        made = super().session(**options)
        self.sessions[made.name] = made
        return made

    def request(self, resource, operation=None, arguments=None, attribute=None, **properties):
        """Send a request."""
        message = Message("activemq.management", type=3)
        if arguments is not None:
            message.body = text_body(json.dumps(arguments))
        for name, value in {
            "_AMQ_ResourceName": resource,
            "_AMQ_OperationName": operation,
            "_AMQ_Attribute": attribute,
            "JMSReplyTo": f"queue://{ANSWERS}",
            **properties,
        }.items():
            if value is not None:
                message.set(name, PropertyType.STRING, value)
        self.manager.send(message, done)
        return message

    def call(self, resource, operation, *arguments):
        """Do an operation; its result.

        Raises:
            Failed: the answer says so.
        """
        self.request(resource, operation, list(arguments))
        return self.result()

    def get(self, resource, attribute):
        """Read an attribute."""
        self.request(resource, attribute=attribute)
        return self.result()

    def result(self):
        self.loop.run_turns()
        (answer,) = self.answers.got
        self.answers.got.clear()
        self.answers.session.acknowledge(0, answer.message_id, done)
        text = BodyReader(answer.body).read_nullable(BodyReader.read_simple_string)
        found = None if text is None else json.loads(text)[0]
        if not answer.get("_AMQ_OperationSucceeded"):
            raise Failed(found)
        return found


def text_body(text):
    """The body of a text message."""
    writer = BodyWriter()
    writer.write_nullable(BodyWriter.write_simple_string, text)
    return writer.getvalue()

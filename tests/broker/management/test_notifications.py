"""Notifications: which are told, with which properties."""

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.model.routing_type import RoutingType
from broker.notifications import NotificationType, Origin
from broker.options import BrokerOptions, NotificationOptions
from broker.sessions.session_options import SessionOptions
from tests.broker.bench import done, message
from tests.broker.management.managed import Failed, ManagedBench
from tests.broker.remote_queue_binding import RemoteQueueBinding

ORIGIN = Origin("0a1b2c3d", "1.2.3.4:5", "0.0.0.0:61616", "me", "CORE", 7)
COMMON = {"_AMQ_NotifType", "_AMQ_NotifTimestamp"}


class Heard(ManagedBench):
    def __init__(self, **options):
        notifications = NotificationOptions(**options)
        super().__init__(options=BrokerOptions(notifications=notifications))
        self.queue("told", "activemq.notifications", RoutingType.MULTICAST, filter=None)
        self.seen = len(list(self.addresses.queues["told"].references()))

    @property
    def told(self):
        """What was told since the last look: type and properties."""
        found = [one.message for one in self.addresses.queues["told"].references()][self.seen :]
        self.seen += len(found)
        return [
            (
                one.get("_AMQ_NotifType"),
                {name: one.get(name) for name in one.properties if name not in COMMON},
            )
            for one in found
        ]


def test_queues_that_come_change_and_go():
    bench = Heard()
    queue = bench.queue("q", "a", RoutingType.MULTICAST, filter="x = 1")
    bench.addresses.update_queue("q", max_consumers=3)
    bench.addresses.delete_queue("q")

    common = {
        "_AMQ_Address": "a",
        "_AMQ_ClusterName": "qnode",
        "_AMQ_RoutingName": "q",
        "_AMQ_Binding_ID": queue.queue_id,
        "_AMQ_Distance": 0,
        "_AMQ_FilterString": "x = 1",
    }
    assert bench.told == [
        ("BINDING_ADDED", {**common, "_AMQ_Binding_Type": 0}),
        ("BINDING_UPDATED", common),
        ("BINDING_REMOVED", common),
    ]


def test_diverts_that_come_and_go():
    bench = Heard()
    bench.queue("a")
    bench.call("broker", "createDivert", "d", "r", "a", "q", False, "x = 1", None)
    divert = bench.addresses.find_divert("d")
    bench.call("broker", "destroyDivert", "d")

    common = {
        "_AMQ_Address": "a",
        "_AMQ_ClusterName": "dnode",
        "_AMQ_RoutingName": "r",
        "_AMQ_Binding_ID": divert.binding_id,
        "_AMQ_Distance": 0,
        "_AMQ_FilterString": "x = 1",
    }
    told = [one for one in bench.told if one[1].get("_AMQ_RoutingName") == "r"]
    assert told == [
        ("BINDING_ADDED", {**common, "_AMQ_Binding_Type": 2}),
        ("BINDING_REMOVED", common),
    ]
    assert bench.addresses.find_divert("d") is None


def test_a_queue_of_another_broker_is_told_of_like_a_queue_of_this_one():
    bench = Heard()
    outgoing = bench.queue("sf", "a")
    wanted = bench.parse_filter("x = 1")
    remote = RemoteQueueBinding("q", "a", outgoing, 7, distance=2, filter=wanted)
    assert len(bench.told) == 1
    bench.notifications.binding(NotificationType.BINDING_ADDED, remote)

    properties = {
        "_AMQ_Address": "a",
        "_AMQ_ClusterName": "q@2node",
        "_AMQ_RoutingName": "a",
        "_AMQ_Binding_ID": 7,
        "_AMQ_Distance": 2,
        "_AMQ_FilterString": "x = 1",
        "_AMQ_Binding_Type": 1,
        "_QUIVER_QueueRoutingType": 1,
    }
    assert bench.told == [("BINDING_ADDED", properties)]


def test_consumers_and_sessions_that_come_and_go():
    bench = Heard()
    bench.queue("q")
    session = bench.session()
    session.user, session.origin = "ann", ORIGIN
    assert [kind for kind, _ in bench.told] == ["BINDING_ADDED"]

    bench.notifications.session(NotificationType.SESSION_CREATED, session)
    bench.consume("q", session, filter_text="n = 1")
    bench.consume("q", session, consumer_id=1, is_browser=True)
    session.close_consumer(0)

    (first, created, closed) = bench.told
    assert first == (
        "SESSION_CREATED",
        {
            "_AMQ_ConnectionName": "0a1b2c3d",
            "_AMQ_User": "ann",
            "_AMQ_SessionName": session.name,
            "_AMQ_Client_ID": "me",
            "_AMQ_RemoteAddress": "1.2.3.4:5",
            "_AMQ_Protocol_Name": "CORE",
            "_AMQ_Address": "activemq.notifications",
            "_AMQ_Distance": 0,
        },
    )
    common = {
        "_AMQ_Address": "q",
        "_AMQ_ClusterName": "qnode",
        "_AMQ_RoutingName": "q",
        "_AMQ_Distance": 0,
        "_AMQ_ConsumerCount": 1,
        "_AMQ_User": "ann",
        "_AMQ_RemoteAddress": "1.2.3.4:5",
        "_AMQ_SessionName": session.name,
        "_AMQ_FilterString": "n = 1",
        "_AMQ_Client_ID": "me",
        "_AMQ_ConsumerName": 0,
    }
    validated = {"_AMQ_ValidatedUser": "ann", "_AMQ_CertSubjectDN": None}
    # The browser causes no notification, and counts.
    assert created == ("CONSUMER_CREATED", {**common, **validated})
    assert closed == ("CONSUMER_CLOSED", common)


def test_a_deleted_queue_closes_its_consumers_and_says_so():
    bench = Heard()
    bench.queue("q")
    sink = bench.consume("q")
    sink.disconnected = sink.session.disconnected
    assert len(bench.told) == 2

    bench.addresses.delete_queue("q")

    assert [kind for kind, _ in bench.told] == ["CONSUMER_CLOSED", "BINDING_REMOVED"]


def test_what_somebody_may_not():
    bench = Heard()

    class Closed:
        def check(self, user, permission, address, queue):
            raise BrokerError(ErrorCode.SECURITY_EXCEPTION, "no")

    bench.security = Closed()
    session = bench.new_session("s", "eve", SessionOptions(), set())
    with pytest.raises(BrokerError):
        session.administration.create_address("a", [RoutingType.ANYCAST], is_auto_created=False)
    bench.notifications.wrong_login("eve", "1.2.3.4:5")

    forbidden = {"_AMQ_Address": "a", "_AMQ_CheckType": "CREATE_ADDRESS", "_AMQ_User": "eve"}
    login = {
        "_AMQ_User": "eve",
        "_AMQ_CertSubjectDN": None,
        "_AMQ_RemoteAddress": "1.2.3.4:5",
    }
    assert bench.told == [
        ("SECURITY_PERMISSION_VIOLATION", forbidden),
        ("SECURITY_AUTHENTICATION_VIOLATION", login),
    ]


def test_a_wrong_password_of_an_operators_message_is_told():
    bench = Heard()
    bench.queue("q")
    assert len(bench.told) == 1

    class Closed:
        def authenticate(self, user, password, principal=None):
            raise BrokerError(ErrorCode.SECURITY_EXCEPTION, "no")

        def check(self, user, permission, address, queue):
            pass

    bench.security = Closed()
    with pytest.raises(Failed, match="no"):
        bench.call("queue.q", "sendMessage", {}, 3, "text", False, "eve", "guess")

    ((kind, properties),) = bench.told
    assert kind == "SECURITY_AUTHENTICATION_VIOLATION"
    assert (properties["_AMQ_User"], properties["_AMQ_RemoteAddress"]) == ("eve", "management")


def events(bench):
    """Everything that a plugin asks for happens."""
    bench.queue("q")
    session = bench.session()
    session.send(message("1"), done)
    session.send(message("2", expiration=bench.now_ms + 5), done)
    bench.notifications.connection(NotificationType.CONNECTION_CREATED, ORIGIN)
    bench.notifications.session(NotificationType.SESSION_CREATED, session)
    sink = bench.consume("q", credits=0)
    sink.consumer.receive_credits(1)
    bench.loop.pass_time(1)
    sink.consumer.receive_credits(200)
    bench.addresses.delete("q", force=True)
    return [kind for kind, _ in bench.told]


def test_what_the_plugin_tells_is_told_only_where_it_is_asked_to():
    always = ["BINDING_ADDED", "SESSION_CREATED", "CONSUMER_CREATED", "BINDING_REMOVED"]
    assert events(Heard()) == always
    assert events(Heard(sessions=False)) == [one for one in always if "SESSION" not in one]
    everything = Heard(connections=True, addresses=True, deliveries=True, expiries=True)
    assert events(everything) == [
        *("ADDRESS_ADDED", "BINDING_ADDED", "CONNECTION_CREATED", "SESSION_CREATED"),
        *("CONSUMER_CREATED", "MESSAGE_DELIVERED", "MESSAGE_EXPIRED", "BINDING_REMOVED"),
        "ADDRESS_REMOVED",
    ]


def test_no_notification_before_the_broker_serves_or_without_a_listener():
    bench = Heard()
    bench.lifecycle.deactivated()
    bench.queue("q")
    assert bench.told == []
    bench.lifecycle.activated()
    bench.addresses.delete_queue("told")

    bench.queue("another")

    assert bench.counters.unrouted == 0


def test_groups_of_discovery_that_start_and_stop():
    bench = Heard()
    for kind in ("BROADCAST_GROUP_STARTED", "DISCOVERY_GROUP_STOPPED"):
        bench.notifications.discovery(NotificationType[kind], "g")

    assert bench.told == [
        ("BROADCAST_GROUP_STARTED", {"name": "g"}),
        ("DISCOVERY_GROUP_STOPPED", {"name": "g"}),
    ]

"""broker.xml read again by a running broker: what changes at once, and what does not."""

import asyncio
import contextlib

import pytest

from broker.errors import BrokerError
from broker.model.message import Message
from broker.model.routing_type import RoutingType
from broker.options import BrokerOptions
from broker.options.file import ConfigurationFile
from broker.options.from_config import broker_options, security_of
from broker.security.permission import Permission
from broker.server.server import Broker
from broker.sessions.session import SessionOptions
from broker.settings.queue_defaults import QueueRequest
from broker.settings.settings import AddressSettings

ANYCAST, MULTICAST = RoutingType.ANYCAST, RoutingType.MULTICAST


class Instance:
    """A folder with a broker.xml, and brokers on it."""

    def __init__(self, folder):
        self.path = folder / "etc" / "broker.xml"
        self.path.parent.mkdir()

    def write(self, core, head="<security-enabled>false</security-enabled>"):
        self.path.write_text(
            f"<core><journal-type>NIO</journal-type><journal-file-size>100K</journal-file-size>"
            f"{head}{core}</core>"
        )

    @contextlib.asynccontextmanager
    async def serving(self):
        file = ConfigurationFile(self.path)
        config = file.load()
        broker = Broker(broker_options(config), security=security_of(config), configuration=file)
        await broker.start()
        try:
            yield broker
        finally:
            await broker.stop()


@pytest.fixture
def instance(tmp_path):
    return Instance(tmp_path)


def settings(text, match="#"):
    return (
        f'<address-settings><address-setting match="{match}">{text}</address-setting>'
        "</address-settings>"
    )


def addresses(**queues):
    """`name={"queue": attributes}`, all anycast."""
    made = "".join(
        f'<address name="{name}"><anycast>'
        + "".join(f'<queue name="{queue}" {attributes}/>' for queue, attributes in found.items())
        + "</anycast></address>"
        for name, found in queues.items()
    )
    return f"<addresses>{made}</addresses>"


def divert(name, source, target, more=""):
    return (
        f'<divert name="{name}"><address>{source}</address>'
        f"<forwarding-address>{target}</forwarding-address>{more}</divert>"
    )


def diverts(*found):
    return f"<diverts>{''.join(found)}</diverts>"


def names(broker):
    return {name for name in broker.parts.postoffice.addresses.queues if "activemq" not in name}


def run(instance, before, after, look):
    """Start with `before`, reload `after`: what `look(broker)` gives, which a restart gives too."""

    async def serve():
        instance.write(before)
        async with instance.serving() as broker:
            instance.write(after)
            broker.reload_configuration()
            found = look(broker)
        async with instance.serving() as broker:
            assert look(broker) == found
        return found

    return asyncio.run(serve())


def test_new_addresses_and_queues_are_there(instance):
    found = run(instance, "", addresses(a={"q": ""}), names)

    assert found == {"q"}


def test_changed_attributes_of_a_queue_hold(instance):
    def look(broker):
        binding = broker.parts.postoffice.addresses.queues["q"].binding
        return binding.max_consumers, binding.filter, binding.routing_type

    after = (
        '<addresses><address name="a"><multicast><queue name="q" max-consumers="3">'
        "<filter string=\"x = 'y'\"/></queue></multicast></address></addresses>"
    )

    found = run(instance, addresses(a={"q": 'max-consumers="9"'}), after, look)

    assert found == (3, "x = 'y'", MULTICAST)


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ("<config-delete-queues>FORCE</config-delete-queues>", {"kept"}),
        ("<config-delete-queues>OFF</config-delete-queues>", {"kept", "gone", "other"}),
        ("<config-delete-addresses>FORCE</config-delete-addresses>", {"kept", "gone"}),
        ("", {"kept", "gone", "other"}),
    ],
)
def test_what_is_no_longer_configured_goes_as_the_settings_say(instance, policy, left):
    before = settings(policy) + addresses(a={"kept": "", "gone": ""}, b={"other": ""})

    assert run(instance, before, settings(policy) + addresses(a={"kept": ""}), names) == left


def test_force_spares_queues_and_addresses_that_clients_made(instance):
    force = settings(
        "<config-delete-queues>FORCE</config-delete-queues>"
        "<config-delete-addresses>FORCE</config-delete-addresses>"
    )
    instance.write(force + addresses(a={}))

    async def serve():
        async with instance.serving() as broker:
            made = broker.clients.create_session("s", None, SessionOptions(), set())
            made.administration.create_queue(_request("mine", "a"))
            made.administration.create_queue(_request("auto", "b", is_auto_created=True))
            broker.reload_configuration()
            has_own = "activemq.notifications" in broker.parts.postoffice.addresses.by_name
            return names(broker), has_own

    assert asyncio.run(serve()) == ({"mine", "auto"}, True)


def _request(name, address, **options):
    return QueueRequest(
        name=name, address=address, routing_type=ANYCAST, auto_create_address=True, **options
    )


def test_a_queue_goes_to_another_address(instance):
    force = settings("<config-delete-queues>FORCE</config-delete-queues>")

    def look(broker):
        return broker.parts.postoffice.addresses.queues["q"].binding.address

    found = run(instance, force + addresses(a={"q": ""}), force + addresses(b={"q": ""}), look)

    assert found == "b"


def test_address_settings_change_and_those_of_operators_stay(instance):
    instance.write(settings("<max-delivery-attempts>3</max-delivery-attempts>"))

    def look(broker):
        match = broker.settings.match
        return match("a").max_delivery_attempts, match("mine").max_delivery_attempts

    async def serve():
        async with instance.serving() as broker:
            broker.parts.stored_settings.add("mine", AddressSettings(max_delivery_attempts=5))
            instance.write(settings("<max-delivery-attempts>4</max-delivery-attempts>"))
            broker.reload_configuration()
            return look(broker)

    assert asyncio.run(serve()) == (4, 5)


def test_security_settings_change_for_those_who_are_connected(instance):
    def core(roles):
        return (
            '<security-settings><security-setting match="#">'
            f'<permission type="send" roles="{roles}"/>'
            '<permission type="createAddress" roles="r"/></security-setting></security-settings>'
        )

    instance.write(core("r"), head="")
    (instance.path.parent / "artemis-users.properties").write_text("u = p\n")
    (instance.path.parent / "artemis-roles.properties").write_text("r = u\n")

    async def serve():
        async with instance.serving() as broker:
            user = broker.clients.authenticate("u", "p", "here")
            session = broker.clients.create_session("s", user, SessionOptions(), set())
            session.send(Message("a"), lambda error: None)
            instance.write(core("other"), head="")
            broker.reload_configuration()
            with pytest.raises(BrokerError, match="does not have permission='SEND'"):
                session.send(Message("a"), lambda error: None)
            # What operators set stays in force over the file.
            broker.parts.stored_permissions.add(
                "#", {Permission.SEND: "r", Permission.CREATE_ADDRESS: "r"}
            )
            broker.reload_configuration()
            session.send(Message("a"), lambda error: None)

    asyncio.run(serve())


def look_at_diverts(broker):
    return {
        one.record.name: (address.name, one.record.forwarding_address, one.is_exclusive)
        for address in broker.parts.postoffice.addresses.by_name.values()
        for one in address.diverts.values()
    }


def test_diverts_are_made_changed_and_moved(instance):
    before = diverts(
        divert("same", "a", "t"), divert("changed", "a", "t"), divert("moved", "a", "t")
    )
    after = diverts(
        divert("same", "a", "t"),
        divert("changed", "a", "u", "<exclusive>true</exclusive>"),
        divert("moved", "b", "t"),
        divert("new", "a", "t"),
    )

    assert run(instance, before, after, look_at_diverts) == {
        "same": ("a", "t", False),
        "changed": ("a", "u", True),
        "moved": ("b", "t", False),
        "new": ("a", "t", False),
    }


@pytest.mark.parametrize(("policy", "left"), [("FORCE", set()), ("OFF", {"d"})])
def test_a_divert_that_is_no_longer_configured(instance, policy, left):
    head = settings(f"<config-delete-diverts>{policy}</config-delete-diverts>")

    found = run(instance, head + diverts(divert("d", "a", "t")), head, look_at_diverts)

    assert set(found) == left


@pytest.mark.parametrize(
    "wrong",
    [
        "<core><addresses><address",
        "<core><naem>x</naem></core>",
        (
            '<core><security-enabled>false</security-enabled><addresses><address name="new">'
            "<anycast/></address></addresses><acceptors>"
            '<acceptor name="a">tcp://h:1?sslEnabld=true</acceptor>'
            "</acceptors></core>"
        ),
        "",
    ],
)
def test_a_bad_file_changes_nothing(instance, wrong):
    before = settings("<max-delivery-attempts>3</max-delivery-attempts>") + addresses(a={"q": ""})
    instance.write(before)

    async def serve():
        async with instance.serving() as broker:
            instance.path.write_text(wrong)
            with pytest.raises(BrokerError) as caught:
                broker.reload_configuration()
            assert "\n" not in str(caught.value)
            assert "broker.xml" in str(caught.value)
            assert "new" not in broker.parts.postoffice.addresses.by_name
            return names(broker), broker.settings.match("a").max_delivery_attempts

    assert asyncio.run(serve()) == ({"q"}, 3)


def test_a_queue_that_cannot_be_changed_holds_up_nothing_else(instance, caplog):
    instance.write(addresses(a={"q": ""}))

    async def serve():
        async with instance.serving() as broker:
            session = broker.clients.create_session("s", None, SessionOptions(), set())
            session.create_consumer(1, "q", _Sink())
            instance.write(addresses(a={"q": 'max-consumers="0"', "new": ""}))
            broker.reload_configuration()
            return names(broker)

    assert asyncio.run(serve()) == {"q", "new"}
    assert "maxConsumers: 0. Current consumers are 1" in caplog.text


class _Sink:
    def deliver(self, *_):
        return True

    def closed(self, *_):
        pass


def test_a_broker_without_a_file_says_so():
    async def serve():
        broker = Broker(BrokerOptions(acceptors=()))
        await broker.start()
        try:
            with pytest.raises(BrokerError, match="has no configuration file"):
                broker.reload_configuration()
        finally:
            await broker.stop()

    asyncio.run(serve())


def test_permissions_that_an_operator_gave_stay(instance):
    def of(role):
        return (
            '<security-settings><security-setting match="a"><permission type="send" '
            f'roles="{role}"/></security-setting></security-settings>'
        )

    async def broker_run():
        instance.write(of("configured"), head="")
        async with instance.serving() as broker:
            broker.parts.stored_permissions.add("a", {Permission.SEND: "given"})
            instance.write(of("other"), head="")
            broker.reload_configuration()
            found = dict(broker.parts.security.permissions.items())
            assert found["a"].roles == {Permission.SEND: frozenset({"given"})}

    asyncio.run(broker_run())

"""Core bridges of brokers with security: at their own broker, and at the target."""

import asyncio

import pytest

from broker.client.errors import SecurityRefused
from broker.protocols.peer import Sessions
from broker.security.cluster_user import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from broker.security.facade import SecurityFacade
from broker.security.manager import SecurityManager, Subject
from broker.security.permission import Permission, RoleTable
from tests.broker.bridges.two_brokers import (
    bridge,
    count_of,
    options,
    port_of,
    running,
    send,
    session_of,
    take,
    until,
)


class Passwords:
    def authenticate(self, name, password):
        return frozenset({"may"}) if (name, password) == ("mover", "secret") else None


def secured(*permissions):
    """Security with the default cluster user, where clients without a name may do so much."""
    guest = Subject("guest", frozenset({"guests"}))
    table = {one: {"may"} | ({"guests"} if one in permissions else set()) for one in Permission}
    manager = SecurityManager(
        Passwords(),
        [("#", RoleTable({one: frozenset(roles) for one, roles in table.items()}))],
        cluster_user=DEFAULT_CLUSTER_USER,
        cluster_password=DEFAULT_CLUSTER_PASSWORD,
        guest=guest,
    )
    return SecurityFacade(manager)


def test_a_source_with_security_lets_its_bridge_take_what_clients_may_not():
    async def main():
        async with running(options("t", queue="to")) as target:
            made = options("s", queue="from", bridges=(bridge(),), target_port=port_of(target))
            async with running(made, security=secured(Permission.SEND)) as source:
                await send(source, "from", "one")
                assert await take(target, "to", 1) == ["one"]
                await until(lambda: count_of(source, "from") == 0)
                async with session_of(source) as session:
                    with pytest.raises(SecurityRefused):
                        await session.consumer("from")

    asyncio.run(main())


def test_nobody_else_gets_a_session_of_the_broker_itself():
    async def main():
        async with running(options("s", queue="from"), security=secured()) as source:
            with pytest.raises(SecurityRefused):
                async with session_of(
                    source, user=DEFAULT_CLUSTER_USER, password=DEFAULT_CLUSTER_PASSWORD
                ):
                    pass

    asyncio.run(main())
    # Protocols make sessions by this interface alone.
    assert not hasattr(Sessions, "internal_session")


def test_a_target_with_security_refuses_the_default_pair_and_the_bridge_says_what_to_do():
    async def main():
        security = secured(Permission.CONSUME)
        async with running(options("t", queue="to"), security=security) as target:
            refused = bridge("refused", user=DEFAULT_CLUSTER_USER)
            told = bridge("told", queue="other", user="mover", password="secret")
            wrong = bridge("wrong", user="mover", password="no")
            made = options(
                "s",
                queue="other",
                bridges=(refused, told, wrong),
                target_port=port_of(target),
            )
            async with running(made) as source:
                await send(source, "other", "one")
                assert await take(target, "to", 1) == ["one"]
                async with session_of(source) as session:
                    await session.create_queue("from", "from")
                by_name = source.bridges.by_name
                await until(lambda: "give the bridge a <user>" in by_name["refused"].status.reason)
                await until(lambda: "the target refuses:" in by_name["wrong"].status.reason)
                assert "<user>" not in by_name["wrong"].status.reason

    asyncio.run(main())

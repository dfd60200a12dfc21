"""Connection routers, managed."""

import json

import pytest

from broker.management.errors import ManagementError
from broker.management.registry import Resources
from tests.broker.routers.brokers import router, serving, static_pool
from tests.interop.asynchronous import asynchronous


def control(broker):
    return Resources(broker).find("connectionrouter.r")


@asynchronous
async def test_an_operator_asks_for_the_target_of_a_key(tmp_path):
    content = router(
        f'<policy name="FIRST_ELEMENT"/>{static_pool(["to1"])}'
        "<local-target-filter>mine.*</local-target-filter><key-filter>^[^.]*</key-filter>"
    )
    async with serving(tmp_path) as brokers:
        await brokers.start(1)
        broker = await brokers.start(0, content)
        await brokers.ready(0, 1)
        managed = control(broker)
        place = f"127.0.0.1:{brokers.ports[1]}"
        other = {"nodeID": brokers.node_id(1), "local": False, "connector": place}
        own = {"nodeID": broker.node_id, "local": True, "connector": None}
        assert json.loads(managed.invoke("getTargetAsJSON", ["any"])) == other
        assert json.loads(managed.invoke("getTargetAsJSON", ["mine"])) == own
        assert json.loads(managed.invoke("getTargetsAsJSON", [])) == [other | {"ready": True}]
        assert managed.invoke("getLocalTargetFilter", []) == "mine.*"
        assert managed.invoke("getTargetKeyFilter", []) == "^[^.]*"

        managed.invoke("setLocalTargetFilter", ["any"])
        assert json.loads(managed.invoke("getTargetAsJSON", ["any"])) == own
        managed.invoke("setLocalTargetFilter", [None])
        managed.invoke("setTargetKeyFilter", [""])
        assert json.loads(managed.invoke("getTargetAsJSON", ["mine"])) == other
        assert managed.invoke("getTargetKeyFilter", []) is None
        with pytest.raises(ManagementError, match="not a valid regular expression"):
            managed.invoke("setTargetKeyFilter", ["("])


@asynchronous
async def test_there_may_be_no_target_and_no_router(tmp_path):
    content = router(f'<policy name="FIRST_ELEMENT"/>{static_pool(["to1"])}')
    async with serving(tmp_path) as brokers:
        managed = control(await brokers.start(0, content))
        assert managed.invoke("getTargetAsJSON", ["any"]) is None
        (target,) = json.loads(managed.invoke("getTargetsAsJSON", []))
        assert target["ready"] is False
        assert control(await brokers.start(1)) is None

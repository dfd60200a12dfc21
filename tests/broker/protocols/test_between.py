"""Both tables of the manual's page on messages between protocols, every cell of them."""

import pytest

from tests.broker.protocols.between import Login, bodies, headers, rows_of
from tests.broker.protocols.stomp.client import serving
from tests.interop.asynchronous import asynchronous
from tests.pages import ROOT

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs/guide/between-protocols.md"


@asynchronous
async def test_bodies():
    async with serving() as broker:
        found = await bodies(Login(broker.acceptors[0].port))

    assert found == rows_of(PAGE, "sends")


@asynchronous
async def test_headers():
    async with serving() as broker:
        found = await headers(Login(broker.acceptors[0].port))

    assert found == rows_of(PAGE, "header")

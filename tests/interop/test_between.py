"""Messages between protocols on Artemis: as on ours, but for what the manual's page lists."""

import pytest

from tests.broker.protocols.between import PROTOCOLS, Login, bodies, headers, rows_of
from tests.broker.protocols.test_between import PAGE
from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.asynchronous import asynchronous

# Of these Artemis gives bytes that are others from run to run.
UNSTEADY = [("AMQP", "number"), ("AMQP", "real"), ("AMQP", "truth")]


def differing(ours, theirs):
    """Cells that are not the same: what Artemis has in them."""
    assert ours.keys() == theirs.keys()
    return {
        (sender, what, receiver): cell
        for (sender, what), cells in theirs.items()
        for receiver, own, cell in zip(PROTOCOLS, ours[sender, what], cells, strict=True)
        if own != cell
    }


def listed(kinds):
    """The page's differences in cells of these kinds."""
    found = {}
    for (sender, what), (receivers, cell) in rows_of(PAGE, "what").items():
        if (sender, what) in kinds:
            found |= {(sender, what, one): cell for one in receivers.split(", ")}
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("read", "second"), [(bodies, "sends"), (headers, "header")])
@asynchronous
async def test_artemis_differs_as_listed(distributed_broker, read, second):
    ours = rows_of(PAGE, second)
    theirs = await read(Login(distributed_broker.port, ArtemisBroker.USER, ArtemisBroker.PASSWORD))
    for one in UNSTEADY if read is bodies else ():
        del ours[one], theirs[one]

    assert differing(ours, theirs) == listed(ours.keys())

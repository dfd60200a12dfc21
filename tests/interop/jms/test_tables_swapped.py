"""One instance in PostgreSQL, two brokers in turn: Artemis's and ours, on the same tables."""

import shutil
import signal

import pytest

from tests.interop.artemis import PeerUnavailableError, jars
from tests.interop.artemis_broker import VERSIONS, ArtemisBroker
from tests.interop.jms.client import JmsClient
from tests.interop.jms.test_data_swapped import OursOnIt
from tests.interop.jms.test_paging_swapped import SMALL_PAGES, check, fill

pytestmark = [pytest.mark.interop, pytest.mark.slow]

# The lease of a broker that was killed ends by itself; the next one waits for it.
SHORT_LEASE = (
    ("<jdbc-lock-expiration>20000<", "<jdbc-lock-expiration>3000<"),
    ("<jdbc-lock-renew-period>4000<", "<jdbc-lock-renew-period>1000<"),
)


@pytest.fixture(params=VERSIONS)
def artemis(request, tmp_path, new_database):
    database = new_database("postgresql")
    options = ("--no-autotune", "--jdbc", "--jdbc-driver-class-name", "org.postgresql.Driver")
    options += ("--jdbc-connection-url", database.jdbc_url)
    try:
        made = ArtemisBroker(tmp_path, options, version=request.param)
        for driver in jars().glob("postgresql-*.jar"):
            shutil.copy(driver, tmp_path / "broker" / "lib")
    except PeerUnavailableError as missing:
        pytest.skip(str(missing))
    made.change_configuration(*SHORT_LEASE)
    yield made
    made.stop()


def test_ours_goes_on_with_pages_of_artemis(artemis, tmp_path):
    artemis.change_configuration(*SMALL_PAGES)
    artemis.start()
    fill(artemis)
    artemis.kill()

    ours = OursOnIt(tmp_path / "broker", tmp_path / "ours.log")
    check(artemis, "commit")
    assert ours.end(signal.SIGTERM) == 0


def test_artemis_goes_on_with_pages_of_ours(artemis, tmp_path):
    artemis.change_configuration(*SMALL_PAGES)
    ours = OursOnIt(tmp_path / "broker", tmp_path / "ours.log")
    fill(artemis)
    assert ours.end(signal.SIGKILL) == -signal.SIGKILL

    artemis.start()
    check(artemis, "rollback")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_what_one_leaves_in_tables_the_other_delivers(artemis, tmp_path, how):
    client = JmsClient(artemis.port, artemis.USER, artemis.PASSWORD)
    artemis.start()
    client.run("send", "plain", 20, "r")
    client.run("send", "xa", 2, "x")
    assert client.run("xaPrepare", "xa") == "x0"
    client.run("sendLarge", "big", 400_000)
    assert client.run("duplicates", "dup") == "duplicate [once]"
    artemis._end(how)

    ours = OursOnIt(tmp_path / "broker", tmp_path / "ours.log")
    assert client.run("receive", "plain").split() == [f"r{number}" for number in range(20)]
    assert client.run("xaRecover", "commit") == "1"
    assert client.run("receive", "xa").replace("!", "").split() == ["x1", "new"]
    assert client.run("receiveLarge", "big") == "400000"
    assert client.run("duplicates", "dup") == "duplicate []"
    client.run("send", "plain", 20, "o")
    client.run("send", "xa", 2, "y")
    assert client.run("xaPrepare", "xa") == "y0"
    client.run("sendLarge", "big", 500_000)
    assert ours.end(how) == (0 if how == signal.SIGTERM else -how)

    artemis.start()
    assert client.run("receive", "plain").split() == [f"o{number}" for number in range(20)]
    assert client.run("xaRecover", "rollback") == "1"
    assert sorted(client.run("receive", "xa").replace("!", "").split()) == ["y0", "y1"]
    assert client.run("receiveLarge", "big") == "500000"
    assert client.run("duplicates", "dup") == "duplicate []"
    client.close()

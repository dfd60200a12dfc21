"""One instance in PostgreSQL, two brokers in turn: Artemis's and ours, on the same tables."""

import shutil
import signal

import pytest

from tests.interop.jms.client import JmsClient
from tests.interop.jms.test_data_swapped import OursOnIt
from tests.interop.jms.test_paging_swapped import SMALL_PAGES, check, fill
from tests.interop.reference import ReferenceUnavailableError, jars
from tests.interop.reference_broker import VERSIONS, ReferenceBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow]

# The lease of a broker that was killed ends by itself; the next one waits for it.
SHORT_LEASE = (
    ("<jdbc-lock-expiration>20000<", "<jdbc-lock-expiration>3000<"),
    ("<jdbc-lock-renew-period>4000<", "<jdbc-lock-renew-period>1000<"),
)


@pytest.fixture(params=VERSIONS)
def reference(request, tmp_path, new_database):
    database = new_database("postgresql")
    options = ("--no-autotune", "--jdbc", "--jdbc-driver-class-name", "org.postgresql.Driver")
    options += ("--jdbc-connection-url", database.jdbc_url)
    try:
        made = ReferenceBroker(tmp_path, options, version=request.param)
        for driver in jars().glob("postgresql-*.jar"):
            shutil.copy(driver, tmp_path / "broker" / "lib")
    except ReferenceUnavailableError as missing:
        pytest.skip(str(missing))
    made.change_configuration(*SHORT_LEASE)
    yield made
    made.stop()


def test_ours_goes_on_with_pages_of_the_reference(reference, tmp_path):
    reference.change_configuration(*SMALL_PAGES)
    reference.start()
    fill(reference)
    reference.kill()

    ours = OursOnIt(tmp_path / "broker", tmp_path / "ours.log")
    check(reference, "commit")
    assert ours.end(signal.SIGTERM) == 0


def test_the_reference_goes_on_with_pages_of_ours(reference, tmp_path):
    reference.change_configuration(*SMALL_PAGES)
    ours = OursOnIt(tmp_path / "broker", tmp_path / "ours.log")
    fill(reference)
    assert ours.end(signal.SIGKILL) == -signal.SIGKILL

    reference.start()
    check(reference, "rollback")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_what_one_leaves_in_tables_the_other_delivers(reference, tmp_path, how):
    client = JmsClient(reference.port, reference.USER, reference.PASSWORD)
    reference.start()
    client.run("send", "plain", 20, "r")
    client.run("send", "xa", 2, "x")
    assert client.run("xaPrepare", "xa") == "x0"
    client.run("sendLarge", "big", 400_000)
    assert client.run("duplicates", "dup") == "duplicate [once]"
    reference._end(how)

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

    reference.start()
    assert client.run("receive", "plain").split() == [f"o{number}" for number in range(20)]
    assert client.run("xaRecover", "rollback") == "1"
    assert sorted(client.run("receive", "xa").replace("!", "").split()) == ["y0", "y1"]
    assert client.run("receiveLarge", "big") == "500000"
    assert client.run("duplicates", "dup") == "duplicate []"
    client.close()

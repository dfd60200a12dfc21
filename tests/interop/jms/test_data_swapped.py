"""One instance, two brokers in turn: Artemis's and ours, on Artemis's broker.xml."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.artemis import PeerUnavailableError
from tests.interop.artemis_broker import VERSIONS, ArtemisBroker
from tests.interop.jms.client import JmsClient

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
END_S = 120


class OursOnIt:
    """Our broker on an instance of Artemis: its acceptor names protocols that are not here yet."""

    def __init__(self, instance, log):
        with log.open("ab") as target:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "broker.cli.main", "run", "--lenient", str(instance)],
                cwd=instance,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=target,
                stderr=subprocess.PIPE,
                text=True,
            )
        said = []
        for line in self._process.stderr:
            said.append(line)
            if line.startswith("serving at"):
                return
        raise AssertionError("".join(said))

    def end(self, how):
        self._process.send_signal(how)
        self._process.communicate(timeout=END_S)
        return self._process.returncode


@pytest.fixture(params=VERSIONS)
def artemis(request, tmp_path):
    try:
        made = ArtemisBroker(tmp_path, version=request.param)
    except PeerUnavailableError as missing:
        pytest.skip(str(missing))
    yield made
    made.stop()


@pytest.fixture
def client(artemis):
    try:
        made = JmsClient(artemis.port, artemis.USER, artemis.PASSWORD)
    except PeerUnavailableError as missing:
        pytest.skip(str(missing))
    yield made
    made.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_what_one_leaves_the_other_delivers(artemis, client, tmp_path, how):
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
    # Its id is known here too: neither the message nor the transaction gets in.
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

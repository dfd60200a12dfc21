"""The functional tests of MQTT's client in Go, paho.mqtt.golang, on ours beside Artemis.

They want a broker at port 1883: the sources of the module get an address with a port, user and
password of its own. They become one program, which runs once a broker.
"""

import os
import re
import subprocess

import pytest

from tests.interop.artemis_broker import ArtemisBroker
from tests.interop.fetched import PeerUnavailableError, cache_root, into, tool

LIBRARY, VERSION = "github.com/eclipse/paho.mqtt.golang", "1.5.1"
# Some of them wait for ten seconds.
RUN_TIMEOUT_S = 240
PROGRAM, NAMES = "functional.test", "names"
STEPS = f"""
cd {{}}
go mod init tried
go get {LIBRARY}@v{VERSION}
cp -r "$(go env GOMODCACHE)/{LIBRARY}@v{VERSION}" sources
chmod -R u+w sources
cd sources
sed -i 's/":1883"/""/' fvt_test.go
sed -n 's/^func \\(Test_[A-Za-z0-9_]*\\)(.*/\\1/p' fvt_client_test.go >../{NAMES}
go test -c -o ../{PROGRAM} .
"""


@pytest.fixture(scope="module")
def suite():
    """The folder that the program is in."""
    try:
        tool("go")
        return into(cache_root() / f"paho-go-{VERSION}", "go test -c", ["sh", "-ec", STEPS])
    except PeerUnavailableError as error:
        pytest.skip(f"{LIBRARY} cannot be had: {error}")


def passed(suite, port):
    """The names of the tests that pass on a broker."""
    names = "|".join((suite / NAMES).read_text().split())
    user = f"{ArtemisBroker.USER}:{ArtemisBroker.PASSWORD}"
    done = subprocess.run(
        [
            *(str(suite / PROGRAM), "-test.v", f"-test.run=^({names})$"),
            f"-test.timeout={RUN_TIMEOUT_S}s",
        ],
        cwd=suite / "sources",
        env={**os.environ, "TEST_FVT_ADDR": f"{user}@127.0.0.1:{port}"},
        capture_output=True,
        text=True,
        timeout=2 * RUN_TIMEOUT_S,
    )
    return re.findall(r"^--- PASS: (\w+)", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_what_passes_on_artemis_passes_on_ours(suite, distributed_broker, our_broker):
    ours = passed(suite, our_broker.port)
    theirs = passed(suite, distributed_broker.port)

    print(f"paho.mqtt.golang: {len(ours)} pass here, {len(theirs)} on Artemis")
    assert theirs
    assert [one for one in theirs if one not in ours] == []

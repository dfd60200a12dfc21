"""Joram's JMS 1.1 suite, the work of others, over one JMS client and against one broker."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.interop.fetched import cache_folder, compiled, jars_of, tool

JAVA = Path(__file__).parent / "java"
SOURCES = [JAVA / "JoramSuite.java", JAVA / "JoramAdmin.java"]
TIMEOUT_S = 600


class JmsProvider(NamedTuple):
    """A client that the suite can be run over.

    Attributes:
        name: of the folder with its pom.
        factory: its class, made of a URL.
        url: with `{port}`, `{user}` and `{password}`.
    """

    name: str
    factory: str
    url: str


PROVIDERS = (
    JmsProvider(
        "core",
        "org.apache.activemq.artemis.jms.client.ActiveMQJMSConnectionFactory",
        "tcp://127.0.0.1:{port}?user={user}&password={password}",
    ),
    JmsProvider(
        "qpid",
        "org.apache.qpid.jms.JmsConnectionFactory",
        "amqp://127.0.0.1:{port}?jms.username={user}&jms.password={password}",
    ),
    JmsProvider(
        "openwire",
        "org.apache.activemq.ActiveMQConnectionFactory",
        # What a client of Classic does unless it is told not to is not JMS 1.1.
        "tcp://127.0.0.1:{port}?jms.userName={user}&jms.password={password}"
        "&jms.trustAllPackages=true&jms.nestedMapAndListEnabled=false",
    ),
)


def class_path(provider: JmsProvider) -> str:
    """The suite over a client.

    Raises:
        PeerUnavailableError: no Java or Maven, or Maven Central cannot be reached.
    """
    pom = JAVA / provider.name / "pom.xml"
    folder = cache_folder(f"joram-{provider.name}", [pom, *SOURCES])
    jars = f"{jars_of(pom, folder / 'jars')}/*"
    return f"{compiled(SOURCES, jars, folder / 'classes')}:{JAVA}:{jars}"


def results(provider: JmsProvider, port: int, user: str, password: str) -> dict[str, str]:
    """What the suite finds on a broker.

    Args:
        provider: the client.
        port: of the broker, on this machine.
        user: who the client is.
        password: of that user.

    Returns:
        Why each test failed; empty for one that passed.

    Raises:
        PeerUnavailableError: as of class_path().
    """
    command = [
        *(tool("java"), "-cp", class_path(provider), f"-Djoram.factory={provider.factory}"),
        f"-Djoram.url={provider.url.format(port=port, user=user, password=password)}",
        "JoramSuite",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    lines = done.stdout.splitlines()
    assert lines[-1:] == ["end"], (done.stdout + done.stderr)[-2000:]
    found = {}
    for line in lines[:-1]:
        status, test, *why = line.split(" ", 2)
        found[test] = "" if status == "ok" else " ".join(why) or "failed"
    return found

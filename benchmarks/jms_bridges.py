"""JMS bridges in processes of their own, driven by lines: ours, and Artemis's.

    python -m benchmarks.jms_bridges FOLDER USER PASSWORD

runs ours. `start SOURCE TARGET QUEUE QUALITY EXACTLY-ONCE BATCH-SIZE BATCH-TIME IN-FLIGHT` bridges
a queue to that of the same name, `stop` ends it; each line is answered by `ok`. IN-FLIGHT is
max-in-flight. Artemis's is driven by peers/java/bridge/RunBridge.java.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.peers.brokers import PASSWORD, USER
from broker.bridges.jms import (
    CoreConnectionFactory,
    Destination,
    ExactlyOnce,
    JMSBridge,
    QualityOfService,
)
from tests.interop.artemis_broker import distribution
from tests.interop.fetched import cache_folder, compiled, jars_of, tool
from tests.interop.jms.client import ScenarioProcess

JAVA = Path(__file__).parent / "peers" / "java" / "bridge"


def our_process(folder: Path) -> ScenarioProcess:
    """Start a process for our bridges.

    Args:
        folder: for the log of their transactions.
    """
    command = [sys.executable, "-m", "benchmarks.jms_bridges", str(folder), USER, PASSWORD]
    return ScenarioProcess(command)


def artemis_process(folder: Path) -> ScenarioProcess:
    """Start a JVM for Artemis's bridges.

    Args:
        folder: for the log of their transactions.

    Raises:
        PeerUnavailableError: no Java or Maven, or Maven Central cannot be reached.
    """
    pom, source = JAVA / "pom.xml", JAVA / "RunBridge.java"
    kept = cache_folder("bridge", [pom, source])
    jars = f"{distribution() / 'lib'}/*:{jars_of(pom, kept / 'jars')}/*"
    classes = compiled([source], jars, kept / "classes")
    log = f"-DObjectStoreEnvironmentBean.objectStoreDir={folder}"
    # What its broker has beside it too: a JVM with less runs its collector more often.
    options = ["-Xmx2048m", log, "-cp", f"{classes}:{jars}"]
    return ScenarioProcess([tool("java"), *options, "RunBridge", USER, PASSWORD])


def _bridge(folder: Path, user: str, password: str, words: list[str]) -> JMSBridge:
    source, target, queue, quality, exactly_once, batch_size, batch_time_ms, many = words
    return JMSBridge(
        lambda: CoreConnectionFactory(source),
        lambda: CoreConnectionFactory(target),
        lambda: Destination.queue(queue),
        lambda: Destination.queue(queue),
        source_user_name=user,
        source_password=password,
        target_user_name=user,
        target_password=password,
        quality_of_service=QualityOfService(quality),
        exactly_once=ExactlyOnce(exactly_once),
        max_batch_size=int(batch_size),
        max_batch_time=int(batch_time_ms),
        max_in_flight=int(many),
        transaction_log=folder / "transactions",
    )


def main(folder: str, user: str, password: str) -> None:
    """Obey lines until there are no more."""
    bridge: JMSBridge | None = None
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "start":
            bridge = _bridge(Path(folder), user, password, words)
            bridge.start()
        elif bridge is not None:
            bridge.stop()
        print("ok", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Our broker beside others by a wire protocol, in one run: the same client drives all, in turn.

    python -m benchmarks.bench_protocols --protocol stomp|mqtt|amqp|openwire
        [--only TITLE] [--brokers artemis,rabbitmq] [--rounds 3] [--warm 5] [--seconds 4]
        [--folder DIR]

Pairs of a producer and a consumer have a queue or topic each; bodies are of 1 KiB. One process has
all pairs. By STOMP each SEND asks for a receipt and consumers acknowledge by themselves
(peers/stomp_load.py). By MQTT producers publish at QoS 1. Consumers are at QoS 1 with a session
that stays, and at QoS 0 where it is not durable (peers/mqtt_load.py). A fan-out is at QoS 0, with
bodies of 100 bytes. It is held back so that no broker drops a message (peers/mqtt_fan_out.py).
By AMQP 1.0 the client is Qpid JMS, by OpenWire that of ActiveMQ Classic (peers/jms_loads.py): a JVM
for each figure, so let it warm up for 10 seconds.

Shown are messages a second that were confirmed, and received, and the 99th percentile of the time
to a confirmation, and what the broker had of the processors for each message that was received
(processor.py), medians of the rounds; then the ratios within each round, ours over theirs. A
fan-out compares what was received; confirmed are messages that all consumers have. At a given rate
all have the same load, and what counts is the tail.

Artemis journals by ASYNCIO with the timer that its own calibration finds; RabbitMQ is the system's,
with its plugin. Mosquitto and NATS confirm before anything is synced, and Mosquitto before anything
is written. ActiveMQ Classic is 6.3 on KahaDB, which syncs. Who is started how is in
peers/protocols.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from pathlib import Path

from benchmarks.peers.brokers import Unavailable
from benchmarks.peers.load import raise_file_limit
from benchmarks.peers.protocols import OURS, PROTOCOLS, Case, Protocol
from benchmarks.processor import watched


def run(
    protocol: Protocol, name: str, case: Case, arguments: argparse.Namespace
) -> dict[str, float]:
    """Give a broker's figures of a case, on a broker of its own: nothing is left of one before."""
    peer = protocol.peers[name]
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    try:
        broker = peer.start(folder)
        try:
            command = protocol.command(peer, broker.port, case)
            command += [str(arguments.warm), str(arguments.seconds)]
            done, processors = watched(command, arguments.seconds)
        finally:
            broker.stop()
    finally:
        shutil.rmtree(folder)
    if done.returncode:
        raise SystemExit(f"{name}: {case.title}: {done.stderr[-500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    found["cost_us"] = 1e6 * processors / max(found["received_per_s"], 1.0)
    return found


def measure(
    protocol: Protocol, case: Case, names: list[str], arguments: argparse.Namespace
) -> None:
    """Print a case's lines: ours, and how it compares to each of the others."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in list(names):
            try:
                found[name].append(run(protocol, name, case, arguments))
            except Unavailable as reason:
                print(f"  {name:10}is left out: {reason}")
                names.remove(name)
                del found[name]
    print(case.title)
    for name, figures in found.items():
        middle = {key: statistics.median(one[key] for one in figures) for key in figures[0]}
        line = (
            f"  {name:10}{middle['confirmed_per_s']:>12,.0f}{middle['received_per_s']:>12,.0f}"
            f"{middle['p99_us']:>12,.0f}{middle['cost_us']:>10,.0f}"
        )
        if name != OURS:
            line += compared(found[OURS], figures, case, case.targets.get(name))
        print(line, flush=True)


def compared(
    mine: list[dict[str, float]], theirs: list[dict[str, float]], case: Case, target: float | None
) -> str:
    """Give ratios of each round, ours over theirs: less is better for the tail."""
    pairs = list(zip(mine, theirs, strict=True))
    rates = [one[case.counted] / other[case.counted] for one, other in pairs]
    tail = statistics.median(one["p99_us"] / other["p99_us"] for one, other in pairs)
    rate = statistics.median(rates)
    text = f"{rate:>8.2f} ({min(rates):.2f}..{max(rates):.2f}"
    asked = "" if target is None else f", target {target}"
    text += f")  of p99 {tail:.2f}{asked}" if case.rate else f"{asked})  of p99 {tail:.2f}"
    is_missed = target is not None and (tail >= target if case.rate else rate < target)
    return f"{text}  MISSED" if is_missed else text


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--protocol", choices=PROTOCOLS, required=True)
    parser.add_argument("--only", default="", help="cases with this in their title")
    parser.add_argument("--brokers", help="their names, by commas; all that speak it if left out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=float, default=5.0, help="seconds before the clock runs")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    arguments = parser.parse_args()
    protocol = PROTOCOLS[arguments.protocol]
    names = list(protocol.peers)
    if arguments.brokers is not None:
        names = [OURS, *(one for one in arguments.brokers.split(",") if one)]
    unknown = set(names) - set(protocol.peers)
    if unknown:
        parser.error(f"{arguments.protocol} is not measured with {', '.join(sorted(unknown))}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    raise_file_limit()
    heads = f"{'':12}{'confirmed/s':>12}{'received/s':>12}{'p99, us':>12}{'cost, us':>10}"
    print(f"{heads}   ours over it")
    for case in protocol.cases:
        if arguments.only in case.title:
            measure(protocol, case, names, arguments)


if __name__ == "__main__":
    main()

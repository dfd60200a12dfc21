"""What docs/guide/mqtt.md shows and lists is so; with paho-mqtt, a client that we did not write."""

import re
import time
from pathlib import Path

import pytest

from broker.embedded import EmbeddedBroker
from broker.protocols.mqtt.factory import MQTT
from broker.protocols.registry import PREFIXES

GUIDE = (Path(__file__).resolve().parents[4] / "docs/guide/mqtt.md").read_text()
WAIT_S = 30


def wait_for(is_so):
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_its_program_receives_the_message(capsys):
    pytest.importorskip("paho.mqtt.client")
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    with EmbeddedBroker() as broker:
        exec(program.replace("61616", str(broker.port)), {})

    assert "connected: Success\nb'21.5'\n" in capsys.readouterr().out


def test_it_lists_all_parameters():
    (found,) = re.findall(r"^\| Parameter \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE, re.MULTILINE)
    listed = {
        cells[1].strip(): cells[2].strip()
        for cells in (line.split("|") for line in found.splitlines())
    }

    assert listed == {
        name: str(one.default).lower() if isinstance(one.default, bool) else str(one.default)
        for name, one in MQTT.parameters.items()
        if one.default != ()
    } | {", ".join(PREFIXES): "none"}


@pytest.mark.parametrize("version", [3, 4, 5])
def test_paho_publishes_and_receives_with_every_qos(version):
    mqtt = pytest.importorskip("paho.mqtt.client")
    received = []
    with EmbeddedBroker() as broker:
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "paho", protocol=version)
        client.on_message = lambda client, data, one: received.append((one.payload, one.qos))
        client.connect("127.0.0.1", broker.port)
        client.loop_start()
        try:
            client.subscribe("t/#", qos=2)
            sent = [(b"%d" % number + b"x" * number * 700, number % 3) for number in range(60)]
            for payload, qos in sent:
                client.publish("t/a", payload, qos).wait_for_publish(WAIT_S)
            wait_for(lambda: len(received) == len(sent))
        finally:
            client.disconnect()
            client.loop_stop()

    assert sorted(received) == sorted(sent)

"""The commands of docs/guide/discovery.md and cluster.md run, and their elements are read."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from broker.config.load import load
from tests.broker.cluster.groups import GROUP, free_udp_port
from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "guide" / "discovery.md").read_text()
RUN_S = 120


def blocks(language, guide=GUIDE):
    return re.findall(rf"^```{language}\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)


def has_multicast_by_default():
    """Whether a datagram to a group comes back where no interface is named."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sent,
    ):
        heard.settimeout(1)
        membership = socket.inet_aton(GROUP) + socket.inet_aton("0.0.0.0")
        try:
            heard.bind((GROUP, 0))
            heard.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            sent.sendto(b"?", (GROUP, heard.getsockname()[1]))
            return heard.recv(1) == b"?"
        except OSError:
            return False


@pytest.mark.skipif(
    not has_multicast_by_default(), reason="this machine has no multicast on its own interface"
)
@pytest.mark.slow
def test_the_commands_run_as_written(tmp_path):
    (script,) = blocks("sh")
    run(tmp_path, script.replace("9876", str(free_udp_port())))


@pytest.mark.slow
def test_the_commands_of_the_cluster_guide_run_as_written(tmp_path):
    (script,) = blocks("sh", (ROOT / "docs" / "guide" / "cluster.md").read_text())

    done = run(tmp_path, script)

    assert "1 other node\n" in done.stdout


@pytest.mark.slow
def test_the_commands_of_the_guide_on_waiting_messages_run_as_written(tmp_path):
    (script,) = blocks("sh", (ROOT / "docs" / "guide" / "why.md").read_text())

    done = run(tmp_path, script)

    assert "[no-consumer]" in done.stdout


def run(tmp_path, script):
    """Run the commands of a guide, on free ports."""
    for written in ("61617", "61618"):
        script = script.replace(written, str(free_port()))
    command = tmp_path / "broker"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m broker.cli.main "$@"\n')
    command.chmod(0o755)

    done = subprocess.run(
        ["sh", "-e", "-c", script + "wait"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=RUN_S,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 messages" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_the_elements_are_read(tmp_path):
    path = tmp_path / "broker.xml"
    broadcasts, discovery, endpoints = blocks("xml")
    path.write_text(
        '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><connectors>'
        '<connector name="netty-connector">tcp://h:61616</connector></connectors>'
        + broadcasts
        + discovery.replace(
            "</discovery-groups>", endpoints.partition("\n")[2].replace("</discovery-groups>", "")
        )
        + "</discovery-groups></core></configuration>"
    )

    cluster = load(path).cluster

    assert cluster.broadcast_groups[0].local_bind_port == 5432
    assert [one.name for one in cluster.discovery_groups] == [
        "my-discovery-group",
        "by-folder",
        "by-name",
    ]

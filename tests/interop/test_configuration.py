"""Configurations go both ways: Artemis's own instance here, one of ours there."""

import shutil
import subprocess
import urllib.request

import pytest

from broker.cli.exit_status import run
from broker.cli.main import broker
from broker.config import ConfigError, load
from broker.config.unsupported import without_effect
from broker.options.from_config import broker_options, security_of
from broker.security import Users
from broker.security.masking import mask_text
from tests.interop.artemis import PeerUnavailableError
from tests.interop.artemis_broker import (
    START_TIMEOUT_S,
    VERSIONS,
    ArtemisBroker,
    distribution,
)

CLUSTER = ("--clustered", "--cluster-user", "cu", "--cluster-password", "cp", "--host", "127.0.0.1")


def artemis(*words):
    """What Artemis's command line prints."""
    done = subprocess.run(
        [distribution() / "bin/artemis", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def available():
    try:
        distribution()
    except (PeerUnavailableError, urllib.request.URLError) as error:
        pytest.skip(f"Artemis cannot be run here: {error}")


def create(folder, *options):
    artemis("create", folder, "--silent", "--user", "me", "--password", "pw", *options)
    # Artemis adds its instance's own properties to broker.xml by ${…}.
    # It has acceptors for protocols that are not there yet, which are left out.
    return read(folder, lenient=True)


def read(folder, **options):
    properties = {"artemis.instance": str(folder)}
    return load(folder / "etc/broker.xml", properties=properties, **options)


def test_an_instance_of_artemis_is_read_whole(tmp_path, caplog):
    config = create(tmp_path / "i", "--require-login", "--no-web", *CLUSTER)

    # Nothing else of it is unknown.
    assert caplog.messages
    assert all("protocol" in line for line in caplog.messages)
    options = broker_options(config)
    assert options.store.messages.directory == tmp_path / "i/data/journal"
    # Its acceptors for Core, AMQP, STOMP (5445 is for HORNETQ beside it) and MQTT.
    assert [acceptor.port for acceptor in options.acceptors] == [61616, 5672, 61613, 5445, 1883]
    assert options.settings.match("x").dead_letter_address == "DLQ"
    assert (config.security.cluster_user, config.security.cluster_password) == ("cu", "cp")
    assert without_effect(config) == []
    door = security_of(config)
    assert door.authenticate("me", "pw") == "me"
    door.check("me", "createDurableQueue", "orders", "q")


def test_protocols_that_are_not_there_are_refused_by_name(tmp_path):
    create(tmp_path / "i", "--require-login", "--no-web")

    words = r"is for protocol (OPENWIRE|HORNETQ), which this version"
    with pytest.raises(ConfigError, match=words):
        read(tmp_path / "i")


def test_who_comes_without_a_name_is_artemis_guest(tmp_path):
    door = security_of(create(tmp_path / "i", "--allow-anonymous", "--no-web"))

    assert door.authenticate(None, None)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_instance_of_ours_runs_in_artemis(version, tmp_path):
    theirs = ArtemisBroker(tmp_path, version=version)
    ours = tmp_path / "ours"
    words = ["create", ours, "--host", "127.0.0.1", "--port", theirs.port, "--user", "me"]
    words += ["--password", "pw", "--queues", "orders", "--addresses", "news", "--no-fsync"]
    assert run(broker, "broker", [*map(str, words), "--journal-type", "NIO"]) == 0
    for name in ("broker.xml", "artemis-users.properties", "artemis-roles.properties"):
        shutil.copy(ours / "etc" / name, tmp_path / "broker/etc" / name)
    shutil.copy(ours / "etc/login.config", tmp_path / "broker/etc/login.config")

    theirs.start()
    try:
        shown = artemis(*("queue", "stat", "--url", theirs.uri, "--user", "me", "--password", "pw"))
    finally:
        theirs.stop()

    assert all(name in shown for name in ("orders", "DLQ", "ExpiryQueue"))
    # What its schema says of an element that it does not know.
    assert "cvc-" not in theirs.log()


def test_masks_and_hashes_go_both_ways(tmp_path):
    assert mask_text("swordfish") in artemis("mask", "swordfish")
    hashed = artemis("mask", "--hash", "swordfish").split("result: ")[1].strip()
    (tmp_path / "u").write_text(f"me = ENC({hashed})\n")
    (tmp_path / "r").write_text("")

    assert Users(tmp_path / "u", tmp_path / "r").authenticate("me", "swordfish") is not None

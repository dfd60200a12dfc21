"""What is wrong at either end is one clear error, and tried again where it may be right later."""

import os
import re
import subprocess
import sys
import zipfile

import pytest

from broker.bridges.jms import BridgeState, CoreConnectionFactory
from broker.bridges.jms.amqp.factory import amqp_factory
from broker.bridges.jms.stomp.factory import stomp_factory
from broker.embedded import EmbeddedBroker
from broker.options import BrokerOptions
from broker.settings.policies import AddressFullPolicy
from broker.settings.settings import AddressSettings
from broker.settings.settings_repository import SettingsRepository
from broker.transport.acceptor import AcceptorOptions
from tests.broker.bridges.jms.ends import WAIT_S, an_end, bridge, wait_for
from tests.broker.bridges.jms.faults import MAY_LOSE, WAYS
from tests.broker.bridges.test_security import secured
from tests.servers import skip_without_jvm

BY_IDS = "ONCE_AND_ONLY_ONCE by duplicate ids"
END_S = 60


def options(match="q", **settings):
    """Of a broker with such an address."""
    repository = SettingsRepository()
    repository.add(match, AddressSettings(**settings))
    return BrokerOptions(
        acceptors=(AcceptorOptions(host="127.0.0.1", port=0),), settings=repository
    )


def by(provider, port):
    """A connection factory factory of that provider."""
    place = f"127.0.0.1:{port}"
    if provider == "core":
        return lambda: CoreConnectionFactory(f"tcp://{place}")
    if provider == "stomp":
        pytest.importorskip("stomp")
        return stomp_factory({"url": f"stomp://{place}"})
    pytest.importorskip("proton")
    return amqp_factory({"url": f"amqp://{place}"})


def parameters_of(way, folder):
    quality, exactly_once = WAYS[way]
    return {
        "quality_of_service": quality,
        "exactly_once": exactly_once,
        "transaction_log": folder / "log",
        "failure_retry_interval": 20,
        # Of a stop, while a batch waits.
        "failover_timeout": 1000,
    }


@pytest.mark.parametrize(
    ("side", "provider", "said"),
    [
        ("source", "core", "AMQ229017: Queue late does not exist"),
        (
            *("target", "core"),
            "target queue 'late' does not exist, and auto-create-addresses is off",
        ),
        ("source", "amqp", "the broker closed the link of late: amqp:not-found"),
        ("target", "amqp", "the broker closed the link of late: amqp:not-found"),
        ("source", "stomp", "the broker says: AMQ339001: Destination does not exist: late"),
        ("target", "stomp", "the broker says: AMQ339001: Destination does not exist: late"),
    ],
)
def test_an_unknown_queue_is_named_and_waited_for(side, provider, said):
    closed = options("late", auto_create_queues=False, auto_create_addresses=False)
    with an_end(options=closed) as source, an_end(options=closed) as target:
        ends = {"source": source, "target": target}
        ends["target" if side == "source" else "source"].create("q")
        used = [by(provider, end.port) for end in ends.values()]
        names = ("late", "q") if side == "source" else ("q", "late")
        if provider == "stomp" and side == "target":
            # It is asked for with the first message.
            source.send("q", "zero")

        with bridge(*used, *names, failure_retry_interval=20) as moving:
            wait_for(lambda: (moving.why or "").count(said) == 1)
            with ends[side].client.session() as session:
                session.create_address("late", *_anycast())
                session.create_queue("late")
            source.send(names[0], "one")
            wait_for(lambda: source.count(names[0]) == 0)
            # A text of Core comes as bytes by STOMP.
            assert target.contents(names[1], target.count(names[1]))[-1] in ("one", b"one")


def _anycast():
    from broker.client import RoutingType

    return (RoutingType.ANYCAST,)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    ("provider", "said"),
    [
        ("core", "AMQ229031: Unable to validate user: mover"),
        ("amqp", "the broker refuses user or password"),
        ("stomp", "the broker says: Security Error occurred: User name [mover] or password is inv"),
    ],
)
def test_a_wrong_password_is_told_and_tried_again(source, side, provider, said):
    with EmbeddedBroker(security=secured()) as guarded:
        made = by(provider, guarded.port)
        pair = (made, source) if side == "source" else (source, made)
        who = {f"{side}_user_name": "mover", f"{side}_password": "no"}

        with bridge(*pair, failure_retry_interval=20, **who) as moving:
            wait_for(lambda: said in (moving.why or "") and moving.snapshot()["failures"] > 1)
            assert moving.why.count(said) == 1


def test_a_target_that_keeps_no_ids_is_refused_for_good(source, tmp_path):
    with an_end(options=options(id_cache_size=0)) as target:
        target.create("q")
        with bridge(source, target, **parameters_of(BY_IDS, tmp_path)) as moving:
            assert moving.wait_until(BridgeState.FAILED, timeout_s=WAIT_S)
            assert "the target's address has id-cache-size 0. Set a size there" in moving.why


JNDI = """
max-retries = 0

[source]
provider = "jms"
jars = ["{jars}"]
connection-factory = "ConnectionFactory"
queue = "queues/q"

[source.jndi]
{jndi}

[target]
url = "tcp://127.0.0.1:{port}"
queue = "q"
"""


@pytest.fixture
def run_jndi(tmp_path, target):
    """`run_jndi(jars, line)`: what `broker bridge run` says of that file; its exit status."""
    pytest.importorskip("jpype")
    file = tmp_path / "orders.toml"

    def run(jars, line=""):
        file.write_text(JNDI.format(jars=jars, jndi=line, port=target.port))
        done = subprocess.run(
            [sys.executable, "-m", "broker.cli.main", "bridge", "run", str(file)],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=END_S,
            check=False,
        )
        return done.stderr.splitlines(), done.returncode

    return run


def test_jars_that_are_not_there_are_named(run_jndi, tmp_path):
    (tmp_path / "none").mkdir()
    file = tmp_path / "orders.toml"

    assert run_jndi(tmp_path / "no.jar") == (
        [f"broker: {file}: [source]: jar {tmp_path / 'no.jar'} does not exist"],
        2,
    )
    assert run_jndi(tmp_path / "none") == (
        [f"broker: {file}: [source]: jars is ['{tmp_path / 'none'}']: it names no jar"],
        2,
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '"java.naming.factory.initial" = "org.example.Missing"',
            "JNDI: javax.naming.NoInitialContextException: Cannot instantiate class: org.example.M",
        ),
        (
            "",
            "JNDI name 'ConnectionFactory': javax.naming.NoInitialContextException: ",
        ),
    ],
)
def test_jars_of_another_provider_are_one_clear_error(run_jndi, tmp_path, line, said):
    skip_without_jvm()
    jar = tmp_path / "other.jar"
    with zipfile.ZipFile(jar, "w") as made:
        made.writestr("empty", "")

    lines, status = run_jndi(jar, line)

    assert status == 1
    assert [one for one in lines if one.startswith(f"orders: failed: {said}")], lines


# --- a batch that is larger than the target takes ---------------------------------------------


def full(policy):
    return options(max_size_bytes=10_000, address_full_policy=policy)


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_that_an_address_refuses_is_told_and_tried_again(tmp_path, way):
    """In a transaction it never fits; one by one, messages go as far as there is room."""
    with an_end() as source, an_end(options=full(AddressFullPolicy.FAIL)) as target:
        source.create("q")
        target.create("q")
        sent = [f"{number} {'x' * 500}" for number in range(60)]
        source.send("q", *sent)
        parameters = parameters_of(way, tmp_path)

        with bridge(source, target, max_batch_size=60, **parameters) as moving:
            refused = re.compile("a batch of 60 messages: .*address .q. is full", re.IGNORECASE)
            wait_for(lambda: refused.search(moving.why or ""))
            if way not in MAY_LOSE:
                # An attempt counts as no delivery, of which there may be ten.
                wait_for(lambda: moving.snapshot()["failures"] > 12)
                assert source.count("q") == 60
            if way == BY_IDS:
                # What finds room overtakes what has found none.
                assert sorted(target.contents("q", 60)) == sorted(sent)
            else:
                assert target.count("q") == 0
        if way in MAY_LOSE:
            assert source.count("q") == 0
        elif way != BY_IDS:
            with bridge(source, target, max_batch_size=5, **parameters):
                assert target.contents("q", 60) == sent


@pytest.mark.parametrize("way", WAYS)
def test_an_address_that_blocks_is_told_and_waited_for(tmp_path, way):
    """A batch is larger than the address may be, all of them than the credits of a producer."""
    with an_end() as source, an_end(options=full(AddressFullPolicy.BLOCK)) as target:
        source.create("q")
        target.create("q")
        sent = [f"{number} {'x' * 5000}" for number in range(1600)]
        source.send("q", *sent)

        with bridge(source, target, max_batch_size=400, **parameters_of(way, tmp_path)) as moving:
            said = re.compile("a batch of [0-9]+ messages waits for the target to confirm it since")
            wait_for(lambda: said.search(moving.why or ""))
            assert moving.snapshot()["failures"] == 0
            assert target.contents("q", 1600) == sent

"""`broker create`, `user` and `mask`: what they write, what they refuse."""

import json
import stat

import pytest

from broker.cli.exit_status import run
from broker.cli.main import COMMANDS, broker
from broker.config import load
from broker.config.unsupported import without_effect
from broker.errors import BrokerError
from broker.model.routing_type import RoutingType
from broker.options.from_config import broker_options, security_of
from broker.security.cluster_user import is_default_pair
from journal.masking import unmask


@pytest.fixture
def call(capsys, monkeypatch):
    """Runs a command line: its exit status, output and lines of standard error."""
    monkeypatch.delenv("QUIVER_PASSWORD", raising=False)

    def run_line(*words):
        status = run(broker, "broker", [str(word) for word in words])
        out, err = capsys.readouterr()
        return status, out, err.splitlines()

    return run_line


@pytest.fixture
def instance(call, tmp_path):
    folder = tmp_path / "instance"
    assert call("create", folder, "--user", "me", "--password", "pw")[0] == 0
    return folder


def refused(call, *words):
    status, out, err = call(*words)
    assert (status, out, len(err)) == (2, "", 1)
    return err[0]


def test_an_instance_with_everything(call, tmp_path):
    folder = tmp_path / "i"
    status, _, err = call(
        *("create", folder, "--name", "a<b", "--host", "127.0.0.1", "--port", "0"),
        *("--user", "me", "--password", "pw", "--role", "staff", "--queues", "q,t:multicast"),
        *(
            "--addresses",
            "a,b:anycast",
            "--no-autocreate",
            "--autodelete",
            "--full-policy",
            "block",
        ),
        *("--global-max-size", "64M", "--journal-type", "nio", "--no-fsync"),
        *("--static-cluster", "tcp://o:1, tcp://p:2", "--cluster-user", "cu"),
        *("--cluster-password", "cp", "--max-hops", "2", "--message-load-balancing", "STRICT"),
        *("--shared-store", "--backup", "--failover-on-shutdown"),
    )

    assert (status, err) == (0, [f"created: {folder}"])
    config = load(folder / "etc/broker.xml")
    options = broker_options(config)
    assert options.name == "a<b"
    assert (options.acceptors[0].host, options.acceptors[0].port) == ("127.0.0.1", 0)
    assert options.global_max_size == 64 << 20
    assert options.store.messages.directory == folder / "data/journal"
    assert options.store.messages.datasync is False
    assert options.store.lock_timeout_ms == -1
    assert options.settings.match("x").auto_create_queues is False
    assert options.settings.match("x").address_full_policy.name == "BLOCK"
    assert {request.name: request.routing_type for request in broker_options(config).queues} == {
        "DLQ": RoutingType.ANYCAST,
        "ExpiryQueue": RoutingType.ANYCAST,
        "q": RoutingType.ANYCAST,
        "t": RoutingType.MULTICAST,
    }
    assert [address.name for address in config.addressing.addresses][-2:] == ["a", "b"]
    (connection,) = config.cluster.cluster_connections
    assert (connection.max_hops, connection.load_balancing.name) == (2, "STRICT")
    assert config.security.cluster_password == "cp"
    assert "cp<" not in (folder / "etc/broker.xml").read_text()
    assert config.cluster.ha_policy.failover_on_shutdown
    assert without_effect(config) == []
    assert stat.S_IMODE((folder / "etc/artemis-users.properties").stat().st_mode) == 0o600


def test_an_instance_has_the_destinations_asked_for_and_no_others(instance):
    config = load(instance / "etc/broker.xml")

    assert [request.name for request in broker_options(config).queues] == ["DLQ", "ExpiryQueue"]
    assert {address.name for address in config.addressing.addresses} == {"DLQ", "ExpiryQueue"}


def test_an_instance_of_few_words(call, tmp_path):
    status, _, err = call("create", tmp_path / "i")

    assert status == 0
    password = err[1].split("password ")[1].split(" ")[0]
    door = security_of(load(tmp_path / "i/etc/broker.xml"))
    assert door.authenticate("admin", password) == "admin"
    assert password not in (tmp_path / "i/etc/artemis-users.properties").read_text()
    with pytest.raises(BrokerError):
        door.authenticate(None, None)


def test_who_has_the_role_may_do_everything_and_others_nothing(call, instance):
    call("user", "add", instance, "--user", "guest", "--password", "g", "--role", "readers")
    door = security_of(load(instance / "etc/broker.xml"))

    door.authenticate("me", "pw")
    door.authenticate("guest", "g")

    for permission in ("send", "consume", "browse", "createDurableQueue", "manage"):
        door.check("me", permission, "orders", None)
        with pytest.raises(BrokerError, match="guest does not have permission"):
            door.check("guest", permission, "orders", "q")
    with pytest.raises(BrokerError):
        door.check("a stranger", "send", "orders", None)


def test_anonymous_users_where_they_are_allowed(call, tmp_path):
    call("create", tmp_path / "i", "--password", "x", "--allow-anonymous")
    door = security_of(load(tmp_path / "i/etc/broker.xml"))

    name = door.authenticate(None, None)

    door.check(name, "send", "a", None)


def test_a_broker_in_a_database_and_one_that_keeps_nothing(call, tmp_path):
    call(
        "create",
        tmp_path / "d",
        "--jdbc",
        "postgresql://h/d?connect_timeout=1&application_name=b",
        "--jdbc-password",
        "secret",
    )
    call("create", tmp_path / "n", "--no-persistence", "--clustered")

    options = broker_options(load(tmp_path / "d/etc/broker.xml")).store
    assert (options.connection_url, options.password) == (
        "postgresql://h/d?connect_timeout=1&application_name=b",
        "secret",
    )
    assert "secret" not in (tmp_path / "d/etc/broker.xml").read_text()
    nothing = load(tmp_path / "n/etc/broker.xml")
    assert broker_options(nothing).store is None
    assert nothing.cluster.broadcast_groups[0].group_address == "231.7.7.7"


def test_nodes_of_a_cluster_share_a_pair_that_is_made_at_random(call, tmp_path):
    _, _, err = call("create", tmp_path / "a", "--clustered")
    words = err[-1].removeprefix("for the other nodes of the cluster: ").split()
    _, _, others = call("create", tmp_path / "b", "--clustered", *words)

    one, two = (load(tmp_path / name / "etc/broker.xml").security for name in "ab")
    assert (one.cluster_user, one.cluster_password) == (two.cluster_user, two.cluster_password)
    assert not is_default_pair(one.cluster_user, one.cluster_password)
    assert one.cluster_password not in (tmp_path / "a/etc/broker.xml").read_text()
    assert not any("--cluster-user" in line for line in others)


def test_an_instance_is_not_written_over(call, instance):
    (instance / "data/kept").write_text("x")

    assert "is an instance already" in refused(call, "create", instance)
    assert call("create", instance, "--password", "x", "--force")[0] == 0
    assert (instance / "data/kept").read_text() == "x"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--backup"], "--backup goes with --shared-store"),
        (["--no-persistence", "--jdbc", "x"], "keeps nothing"),
        (["--static-cluster", "nowhere"], "is not a URI"),
        (["--static-cluster", "tcp://a:1", "--clustered"], "not both"),
        (["--queues", "a,,b"], "names nothing"),
        (["--global-max-size", "much"], "'much' is not a number of bytes"),
        (["--jdbc", "jdbc:postgres://h/d"], "no database is called 'postgres'"),
        (["--jdbc", "nonsense"], "neither a JDBC nor a SQLAlchemy URL"),
        (["--jdbc", "sqlite://"], "a SQLite database in memory keeps nothing"),
        (["--user", "a,b"], "cannot be a name"),
        (["--name", ""], "'--name': it is empty"),
        (["--jdbc", ""], "'--jdbc': it is empty"),
        (["--user", ""], "'--user': it is empty"),
        (["--password", ""], "(env var: 'QUIVER_PASSWORD'): it is empty"),
        (["--cluster-user", ""], "'--cluster-user': it is empty"),
        (["--port", "99999"], "99999"),
    ],
)
def test_wrong_wishes_are_one_line_and_leave_nothing_behind(call, tmp_path, words, what):
    assert what in refused(call, "create", tmp_path / "i", "--password", "x", *words)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_wish_leaves_an_instance_as_it_was(call, instance):
    before = {path: path.read_bytes() for path in instance.rglob("*") if path.is_file()}

    refused(call, "create", instance, "--password", "y", "--force", "--global-max-size", "much")

    assert {path: path.read_bytes() for path in instance.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:swordfish@h/d",
        "jdbc:postgresql://h/d?user=me&password=swordfish",
        "jdbc:mariadb://h/d?password=swordfish",
    ],
)
def test_a_password_inside_a_url_is_masked(call, tmp_path, url):
    assert call("create", tmp_path / "i", "--password", "x", "--jdbc", url)[0] == 0

    assert "swordfish" not in (tmp_path / "i/etc/broker.xml").read_text()
    options = broker_options(load(tmp_path / "i/etc/broker.xml")).store
    assert options.connection_url == url


def test_a_missing_users_file_is_warned_of_and_lets_no_user_in(instance, caplog):
    (instance / "etc/artemis-users.properties").unlink()

    door = security_of(load(instance / "etc/broker.xml"))

    assert [one for one in caplog.messages if "artemis-users.properties is missing" in one]
    with pytest.raises(BrokerError):
        door.authenticate("me", "pw")


def test_an_empty_password_is_refused(call, instance):
    for words in (["add", instance, "--user", "new"], ["reset", instance, "--user", "me"]):
        assert "it is empty" in refused(call, "user", *words, "--password", "")


def test_users_from_the_command_line(call, instance):
    add = ("user", "add", instance, "--user", "guest")
    assert call(*add, "--password", "g", "--role", "r1", "--role", "r2")[0] == 0
    assert "is there already" in refused(call, *add, "--password", "g")
    assert "give --password" in refused(call, "user", "reset", instance, "--user", "guest")

    assert call("user", "list", instance)[1] == "guest (r1,r2)\nme (amq)\n"
    _, out, _ = call("user", "list", instance, "--user", "guest", "--json")
    assert json.loads(out) == {"user": "guest", "roles": ["r1", "r2"]}

    assert call("user", "reset", instance, "--user", "guest", "--role", "r3")[0] == 0
    assert call("user", "list", instance)[1] == "guest (r3)\nme (amq)\n"
    assert call("user", "rm", instance, "--user", "guest")[0] == 0
    assert "user 'guest' does not exist" in refused(call, "user", "rm", instance, "--user", "guest")


def test_users_of_what_is_no_instance(call, tmp_path):
    assert "no instance" in refused(call, "user", "list", tmp_path)
    assert "Usage" not in refused(call, "user")


def test_masks(call, monkeypatch):
    assert call("mask", "a")[:2] == (0, "ENC(-4413f2d1fa455a12)\n")
    assert unmask(call("mask", "a", "--key", "another")[1].strip(), "another") == "a"
    assert call("mask", "--hash", "--password", "x")[1].startswith("ENC(1024:")
    assert json.loads(call("mask", "a", "--json")[1])["written"] == "ENC(-4413f2d1fa455a12)"
    assert "4 to 56" in refused(call, "mask", "a", "--key", "abc")
    assert "give --password" in refused(call, "mask")
    monkeypatch.setenv("QUIVER_PASSWORD", "a")
    assert call("mask")[1] == "ENC(-4413f2d1fa455a12)\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(call, command):
    status, out, _ = call(command, "--help")

    assert status == 0
    assert f"  broker {command}" in out


def test_an_unknown_command_is_one_line(call):
    assert "No such command 'crate'" in refused(call, "crate")
    assert "Missing command" in refused(call)

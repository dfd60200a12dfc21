"""Users, roles and permissions, changed by operators while the broker runs."""

import asyncio
import json
import stat
import subprocess
import sys

import pytest

from broker.errors import BrokerError
from broker.management.registry import Resources
from broker.security.facade import SecurityFacade
from broker.security.manager import SecurityManager
from broker.security.permission import Permission, RoleTable
from broker.security.users import ROLES_FILE, USERS_FILE, Users
from broker.server.stored_permissions import StoredPermissions
from broker.sessions.session_options import SessionOptions
from tests.broker.management.managed import Failed, ManagedBench
from tests.broker.test_recovery import BrokerRun, durable


@pytest.fixture
def etc(tmp_path):
    (tmp_path / USERS_FILE).write_text("# the users\nadmin = secret\n")
    (tmp_path / ROLES_FILE).write_text("# the roles\namq = admin\n")
    return tmp_path


def door(etc):
    everything = RoleTable({one: frozenset({"amq"}) for one in Permission})
    return SecurityFacade(SecurityManager(Users.of_instance(etc), [("#", everything)]))


@pytest.fixture
def bench(etc):
    made = ManagedBench()
    security = made.security = door(etc)
    made.stored_permissions = StoredPermissions(made.storage, security.permissions)
    # Who sends the requests of this bench has to be a user.
    security.authenticate("admin", "secret")
    made.manager = made.new_session("manager", "admin", SessionOptions(), set())
    return made


def listed(bench, name=None):
    found = json.loads(bench.call("broker", "listUser", name))
    return {one["username"]: one["roles"] for one in found}


def test_users_are_added_changed_and_removed(bench, etc):
    bench.call("broker", "addUser", "guest", "first", "readers, writers", False)

    assert listed(bench) == {"admin": ["amq"], "guest": ["readers", "writers"]}
    assert listed(bench, "guest") == {"guest": ["readers", "writers"]}
    assert listed(bench, "stranger") == {}
    assert "guest = ENC(1024:" in (etc / USERS_FILE).read_text()
    assert bench.security.authenticate("guest", "first") == "guest"
    bench.call("broker", "resetUser", "guest", "second", None, False)
    with pytest.raises(BrokerError, match="Unable to validate user"):
        bench.security.authenticate("guest", "first")
    assert bench.security.authenticate("guest", "second") == "guest"
    assert listed(bench, "guest") == {"guest": ["readers", "writers"]}
    bench.call("broker", "resetUser", "guest", "third", "readers")
    assert "guest = third\n" in (etc / USERS_FILE).read_text()
    assert listed(bench, "guest") == {"guest": ["readers"]}
    bench.call("broker", "removeUser", "guest")
    assert listed(bench) == {"admin": ["amq"]}
    with pytest.raises(BrokerError, match="Unable to validate user"):
        bench.security.authenticate("guest", "third")
    # What people wrote into the files is still there.
    assert (etc / USERS_FILE).read_text() == "# the users\nadmin = secret\n"
    assert (etc / ROLES_FILE).read_text() == "# the roles\namq = admin\n"
    assert stat.S_IMODE((etc / USERS_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (("addUser", "admin", "x", "amq", False), "AMQ229223: User admin already exists"),
        (("resetUser", "none", "x", None, False), "AMQ229224: User none does not exist"),
        (("removeUser", "none"), "AMQ229224: User none does not exist"),
        (("addUser", "a,b", "x", "amq", False), "cannot be a name"),
        (("addUser", "a", None, "amq", False), "argument 2 of addUser.* must not be null"),
        (("addUser", "a", "x", "amq"), r"fits none of addUser\(String, String, String, boolean\)"),
    ],
)
def test_what_cannot_be_done_to_users_is_told(bench, request_, expected):
    with pytest.raises(Failed, match=expected):
        bench.call("broker", *request_)

    assert listed(bench) == {"admin": ["amq"]}


def test_a_broker_without_files_of_users_says_so():
    with pytest.raises(Failed, match="no files of users"):
        ManagedBench().call("broker", "listUser", "")


def test_files_that_cannot_be_read_are_told(bench, etc):
    (etc / ROLES_FILE).unlink()

    with pytest.raises(Failed, match=r"the files of users: .*No such file"):
        bench.call("broker", "addUser", "a", "x", "amq", True)


def test_links_to_the_files_stay_links(bench, etc):
    (etc / "real").mkdir()
    (etc / USERS_FILE).rename(etc / "real" / "users")
    (etc / USERS_FILE).symlink_to(etc / "real" / "users")

    bench.call("broker", "addUser", "guest", "x", "", True)

    assert (etc / USERS_FILE).is_symlink()
    assert "guest = x" in (etc / "real" / "users").read_text()


def test_processes_that_change_users_at_once_lose_none(etc):
    code = """if True:
        import sys
        from pathlib import Path
        from broker.security.users import Users
        users = Users.of_instance(Path(sys.argv[1]))
        for number in range(8):
            users.add(f"{sys.argv[2]}{number}", "x", ["readers"], plaintext=True)
    """
    others = [
        subprocess.Popen([sys.executable, "-c", code, str(etc), name], stderr=subprocess.PIPE)
        for name in ("a", "b")
    ]
    assert [one.communicate()[1] for one in others] == [b"", b""]

    found = {one.name for one in Users.of_instance(etc).list() if "readers" in one.roles}
    assert found == {f"{name}{number}" for name in ("a", "b") for number in range(8)}


# --- permissions --------------------------------------------------------------------------------


def may(bench, permission, address="a.b"):
    try:
        bench.security.check("guest", permission, address, None)
    except BrokerError:
        return False
    return True


def test_permissions_are_given_and_taken(bench):
    bench.call("broker", "addUser", "guest", "x", "readers", True)
    bench.security.authenticate("guest", "x")
    assert not may(bench, "send")

    bench.call("broker", "addSecuritySettings", "a.#", "readers,amq", "amq", *("",) * 5)
    assert (may(bench, "send"), may(bench, "consume")) == (True, False)
    bench.call("broker", "addSecuritySettings", "a.#", "amq", "readers", *("",) * 5, "readers")
    assert (may(bench, "send"), may(bench, "consume"), may(bench, "browse")) == (False, True, True)
    bench.call("broker", "addSecuritySettings", "a.#", *("",) * 8, "readers", None)
    assert (may(bench, "createAddress"), may(bench, "deleteAddress")) == (True, False)
    bench.call("broker", "addSecuritySettings", "a.#", *(None,) * 10, "readers", "amq")
    assert (may(bench, "view"), may(bench, "edit")) == (True, False)

    roles = {name: rights for name, *rights in bench.call("broker", "getRoles", "a.b")}
    assert roles == {
        "readers": [*(False,) * 10, True, False],
        "amq": [*(False,) * 11, True],
    }
    bench.call("broker", "removeSecuritySettings", "a.#")
    assert not may(bench, "view")


def test_logins_and_permissions_are_counted(bench):
    names = ("authenticationSuccessCount", "authenticationFailureCount")
    before = [bench.get("broker", name) for name in names]
    with pytest.raises(BrokerError, match="Unable"):
        bench.security.authenticate("admin", "wrong")
    bench.security.authenticate("admin", "secret")
    assert [bench.get("broker", name) for name in names] == [one + 1 for one in before]

    refused = bench.get("broker", "authorizationFailureCount")
    may(bench, "send")
    assert bench.get("broker", "authorizationFailureCount") == refused + 1
    assert bench.get("broker", "authorizationSuccessCount") > 0
    assert bench.get("broker", "authenticationCacheSize") == 2
    assert bench.get("broker", "authorizationCacheSize") > 0
    bench.call("broker", "clearAuthenticationCache")
    assert bench.get("broker", "authenticationCacheSize") == 0


def test_permissions_last_over_a_restart(tmp_path, etc):
    def call(run, *arguments):
        return Resources(run.broker).find("broker").invoke(arguments[0], arguments[1:])

    async def runs():
        async with BrokerRun(tmp_path / "data") as run:
            call(run, "addSecuritySettings", "a", "one", *("",) * 6)
            call(run, "addSecuritySettings", "a", "two", *("",) * 6)
            call(run, "addSecuritySettings", "b", "one", *("",) * 6)
            call(run, "removeSecuritySettings", "b")
            await durable(run.broker.parts.storage.after)
        async with BrokerRun(tmp_path / "data") as run:
            found = dict(run.broker.parts.security.permissions.items())
            assert found == {"a": RoleTable({Permission.SEND: frozenset({"two"})})}

    asyncio.run(runs())

"""Who may do what: first match, fully qualified names, caches; Artemis's SecurityTest."""

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.security import Permission, RoleTable, SecurityManager, Subject
from broker.security.cluster_user import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from broker.security.masking import Masking


class Known:
    """Knows one password, and counts how often it is asked."""

    def __init__(self, password="pw", roles=("staff",)):
        self.password = password
        self.roles = frozenset(roles)
        self.asked = 0

    def authenticate(self, name, password):
        self.asked += 1
        return self.roles if (name, password) == ("me", self.password) else None


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def table(**roles):
    return RoleTable({Permission[name.upper()]: frozenset(who) for name, who in roles.items()})


def manager(permissions=(), **options):
    return SecurityManager(options.pop("users", Known()), permissions, **options)


STAFF = Subject("me", frozenset({"staff"}))


def test_each_permission_is_its_own():
    for granted in Permission:
        security = manager([("a", RoleTable({granted: frozenset({"staff"})}))])
        allowed = {one for one in Permission if security.is_allowed(STAFF, one, "a")}
        assert allowed == {granted}


def test_the_first_match_decides_alone():
    security = manager(
        [("#", table(send=["staff"], consume=["staff"])), ("a.#", table(consume=["staff"]))]
    )

    assert security.is_allowed(STAFF, Permission.SEND, "b")
    assert security.is_allowed(STAFF, Permission.CONSUME, "a.b")
    assert not security.is_allowed(STAFF, Permission.SEND, "a.b")


def test_nothing_that_matches_permits_nothing():
    assert not manager().is_allowed(STAFF, Permission.SEND, "a")


def test_the_exact_setting_of_a_fully_qualified_name_comes_first():
    security = manager(
        [
            ("a", table(consume=["staff"], send=["staff"])),
            ("a::closed", table(send=["staff"])),
            ("b.q", table(consume=["staff"])),
        ]
    )

    assert security.is_allowed(STAFF, Permission.CONSUME, "a::open")
    assert not security.is_allowed(STAFF, Permission.CONSUME, "a::closed")
    # The deprecated form of a queue's own setting, for consuming alone.
    assert security.is_allowed(STAFF, Permission.CONSUME, "b::q")
    assert not security.is_allowed(STAFF, Permission.SEND, "b::q")


def test_a_refusal_has_artemis_code_and_text():
    with pytest.raises(BrokerError) as refused:
        manager().check(STAFF, Permission.SEND, "a")

    assert refused.value.code is ErrorCode.SECURITY_EXCEPTION
    assert refused.value.text == (
        "AMQ229032: User: me does not have permission='SEND' on address a"
    )
    with pytest.raises(BrokerError, match="on queue q on address a"):
        manager().check(STAFF, Permission.CONSUME, "a::q")


def test_without_security_everybody_may_do_everything():
    security = manager(enabled=False)

    subject = security.authenticate("anyone", "anything")
    security.check(subject, Permission.MANAGE, "a")
    assert security.authenticate(None, None).name is None


def test_the_cluster_passes_everything_and_no_other_user_under_its_name():
    security = manager(cluster_user="cluster", cluster_password="cp")

    subject = security.authenticate("cluster", "cp")

    assert subject.is_cluster
    security.check(subject, Permission.DELETE_ADDRESS, "a")
    with pytest.raises(BrokerError):
        security.authenticate("cluster", "pw")


@pytest.mark.parametrize("configured", [True, False])
def test_the_default_pair_of_the_cluster_is_refused(configured):
    pair = (DEFAULT_CLUSTER_USER, DEFAULT_CLUSTER_PASSWORD)
    cluster = {"cluster_user": pair[0], "cluster_password": pair[1]} if configured else {}

    with pytest.raises(BrokerError, match="Unable to validate user"):
        manager(**cluster).authenticate(*pair)
    # Without security nothing is refused, as in Artemis.
    assert manager(enabled=False, **cluster).authenticate(*pair).name == pair[0]


@pytest.mark.parametrize(
    ("name", "password"), [("me", "no"), ("you", "pw"), (None, None), ("me", None), ("", "")]
)
def test_a_wrong_login_is_refused(name, password):
    with pytest.raises(BrokerError, match="AMQ229031: Unable to validate user") as refused:
        manager().authenticate(name, password)

    assert refused.value.code is ErrorCode.SECURITY_EXCEPTION


def test_a_guest_where_there_is_one():
    guest = Subject("guest", frozenset({"guests"}))

    assert manager(guest=guest).authenticate(None, None) is guest


def test_logins_and_refusals_are_kept_for_a_while():
    users, clock = Known(), Clock()
    security = manager(users=users, clock=clock, invalidation_interval_ms=1000)

    for _ in range(3):
        assert security.authenticate("me", "pw").roles == {"staff"}
        with pytest.raises(BrokerError):
            security.authenticate("me", "no")
    assert users.asked == 2

    users.password = "changed"
    assert security.authenticate("me", "pw")
    clock.now += 1
    with pytest.raises(BrokerError):
        security.authenticate("me", "pw")
    security.invalidate()
    assert security.authenticate("me", "changed")


def test_permissions_are_kept_until_they_change():
    security = manager([("#", table(send=["staff"]))])
    assert security.is_allowed(STAFF, Permission.SEND, "a")

    security.permissions.add("a", table())

    assert not security.is_allowed(STAFF, Permission.SEND, "a")


def test_caches_have_an_end_and_may_be_off():
    users = Known()
    security = manager(users=users, authentication_cache_size=2, authorization_cache_size=2)
    for number in range(10):
        with pytest.raises(BrokerError):
            security.authenticate("me", str(number))
        security.is_allowed(STAFF, Permission.SEND, str(number))
    assert len(security._logins._kept) == len(security._answers._kept) == 2

    off = manager(users=users, invalidation_interval_ms=0)
    users.asked = 0
    for _ in range(2):
        off.authenticate("me", "pw")
    assert users.asked == 2


def test_no_password_is_kept():
    # So long that no hash has it by chance.
    password = "a password of many letters"
    security = manager(users=Known(password))
    security.authenticate("me", password)

    ((key, _),) = security._logins._kept.items()
    assert password not in str(key)


@pytest.mark.parametrize(
    ("codec", "what"),
    [
        ("DefaultSensitiveStringCodec;kye=x", "no parameter 'kye'"),
        ("DefaultSensitiveStringCodec;key", "is not NAME=VALUE"),
        ("DefaultSensitiveStringCodec;algorithm=three-way", "none of two-way, one-way"),
        ("os:sep", "is not a function"),
        ("os:none", "has no attribute"),
    ],
)
def test_a_codec_that_there_is_not(codec, what):
    with pytest.raises(ValueError, match=what):
        Masking.configured(codec, mask_password=None)


def test_a_one_way_codec_gives_the_hash():
    masking = Masking.configured(
        "DefaultSensitiveStringCodec;algorithm=one-way", mask_password=None
    )

    assert masking.unmask("ENC(1024:aa:bb)") == "1024:aa:bb"

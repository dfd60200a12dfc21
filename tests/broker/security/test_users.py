"""Users, roles and hashes: the files of Artemis, read and changed."""

import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security import UserError, Users
from broker.security.masking import mask_text
from broker.security.passwords import hash_password, is_hash, verify_hash, verify_password
from broker.security.properties_file import parse_properties, with_property, without_property
from broker.security.users import ROLES_FILE, USERS_FILE, User

USERS = "# who\nadmin = ENC({hash})\nguest=open sesame\n"
ROLES = "amq = admin\nothers = guest, admin\n"


@pytest.fixture
def etc(tmp_path):
    (tmp_path / USERS_FILE).write_text(USERS.format(hash=hash_password("secret")))
    (tmp_path / ROLES_FILE).write_text(ROLES)
    return tmp_path


@pytest.fixture
def users(etc):
    return Users.of_instance(etc)


def test_a_hash_has_artemis_form_and_its_own_salt():
    first, second = hash_password("a"), hash_password("a")

    assert first != second
    iterations, salt, digest = first.split(":")
    assert (iterations, len(salt), len(digest)) == ("1024", 64, 128)
    assert is_hash(first)
    assert is_hash(mask_text("a", one_way=True))


def test_a_hash_is_pbkdf2_with_sha_1():
    # RFC 6070: 2 iterations of "password" and "salt", the first 20 bytes.
    known = "2:" + b"salt".hex() + ":ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"

    assert verify_hash(known, "password")
    assert not verify_hash(known, "Password")


@pytest.mark.parametrize("text", ["", "1:2", "0:aa:bb", "x:aa:bb", "1:a:b", "1:zz:zz"])
def test_what_is_no_hash_fits_no_password(text):
    assert not verify_hash(text, "")
    assert not verify_password(f"ENC({text})", "")


def test_logins(users):
    assert users.authenticate("admin", "secret") == {"amq", "others"}
    assert users.authenticate("guest", "open sesame") == {"others"}
    assert users.authenticate("admin", "Secret") is None
    assert users.authenticate("stranger", "secret") is None
    assert users.list() == [
        User("admin", frozenset({"amq", "others"})),
        User("guest", frozenset({"others"})),
    ]


def test_users_are_added_changed_and_removed(users, etc):
    users.add("me", "pw", ["amq", "new"])
    assert users.authenticate("me", "pw") == {"amq", "new"}
    users.add("open", "pl=ain", [], plaintext=True)
    assert users.authenticate("open", "pl=ain") == frozenset()

    users.reset("me", password="other", roles=["new"])
    assert users.authenticate("me", "pw") is None
    assert users.authenticate("me", "other") == {"new"}

    users.remove("me")
    assert users.authenticate("me", "other") is None
    assert parse_properties((etc / ROLES_FILE).read_text()) == {
        "amq": "admin",
        "others": "guest, admin",
    }
    assert (etc / USERS_FILE).read_text().startswith("# who\nadmin = ENC(")
    assert "open = pl=ain\n" in (etc / USERS_FILE).read_text()
    assert stat.S_IMODE((etc / USERS_FILE).stat().st_mode) == 0o600
    assert sorted(path.name for path in etc.iterdir()) == sorted([USERS_FILE, ROLES_FILE])


def test_what_another_process_changed_is_seen(users, etc):
    assert users.authenticate("admin", "secret")

    (etc / USERS_FILE).write_text("admin = changed\n")
    os.utime(etc / USERS_FILE, ns=(1, 1))

    assert users.authenticate("admin", "secret") is None
    assert users.authenticate("admin", "changed")


def test_wrong_uses_are_told(users):
    with pytest.raises(UserError, match="'admin' is there already"):
        users.add("admin", "x", [])
    for change in (users.remove, users.reset):
        with pytest.raises(UserError, match="user 'stranger' does not exist"):
            change("stranger")
    for name, roles in ((" ", []), ("a,b", []), ("a", ["x,y"]), ("a", [""])):
        with pytest.raises(UserError, match="cannot be a name"):
            users.add(name, "x", roles)


def test_a_properties_file_as_java_reads_it():
    text = (
        "! comment\n\na=1\n b : 2 \nc 3\nd\ne = one \\\n   two\nf\\ g\\==x\\u00e9\\ty\n"
        "a = again\n# end\\\nh=\\#1"
    )

    assert parse_properties(text) == {
        "a": "again",
        "b": "2 ",
        "c": "3",
        "d": "",
        "e": "one two",
        "f g=": "xé\ty",
        "h": "#1",
    }


NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(NAME, NAME, NAME)
def test_what_is_written_is_read(name, value, other):
    text = with_property("# first\n", name, value)
    assert parse_properties(text) == {name: value}

    both = with_property(text, other, "x")
    assert parse_properties(both) == {name: value, other: "x"}
    assert parse_properties(without_property(both, other)).get(other) is None
    assert with_property(text, name, value) == text

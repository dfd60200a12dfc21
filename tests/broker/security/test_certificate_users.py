"""Who a certificate is for, by TextFileCertificateLoginModule's two files."""

import os

import pytest

from broker.errors import BrokerError
from broker.security.allow_all import AllowAll
from broker.security.certificate_users import CertificateUsers
from broker.security.facade import SecurityFacade
from broker.security.manager import SecurityManager
from broker.transport.principal import principal_of

SUBJECT = (
    (("countryName", "US"),),
    (("organizationName", "Mine, Inc."),),
    (("organizationalUnitName", "a"), ("userId", "7")),
    (("commonName", "me"),),
)
PRINCIPAL = 'CN=me, OU=a+UID=7, O="Mine, Inc.", C=US'


@pytest.fixture
def users(tmp_path):
    (tmp_path / "users").write_text(
        'me = cn=me,OU=a+UID=7,O="Mine, Inc.",C=US\nrobots = /CN=robot-[0-9]+, .*/\n'
    )
    (tmp_path / "roles").write_text("senders = me, robots\nreaders = robots\n")
    return CertificateUsers(tmp_path / "users", tmp_path / "roles")


def test_a_subject_is_written_as_java_does():
    assert principal_of({"subject": SUBJECT}) == PRINCIPAL
    assert principal_of({"subject": ((("commonName", ' a"b '),),)}) == 'CN=" a\\"b "'
    assert principal_of({"subject": ()}) is None
    assert principal_of(None) is None


def test_a_name_is_found_and_what_is_between_quotes_counts(users):
    assert users.authenticate(PRINCIPAL) == ("me", {"senders"})
    assert users.authenticate(PRINCIPAL.replace("Mine, Inc.", "Mine,Inc.")) is None
    assert users.authenticate("CN=me") is None


def test_an_expression_has_to_match_all_of_it(users):
    assert users.authenticate("CN=robot-12, C=US") == ("robots", {"senders", "readers"})
    assert users.authenticate("O=x, CN=robot-12, C=US") is None


def test_changes_are_seen(users):
    users.authenticate(PRINCIPAL)
    users.users_file.write_text("me = CN=other\n")
    os.utime(users.users_file, ns=(1, 1))

    assert users.authenticate(PRINCIPAL) is None
    assert users.authenticate("CN=other") == ("me", {"senders"})


def test_the_manager_counts_and_refuses(users, caplog):
    manager = SecurityManager(None, certificates=users)

    assert SecurityFacade(manager).authenticate_principal(PRINCIPAL) == "me"
    with pytest.raises(BrokerError, match="Unable to validate user: CN=unknown"):
        manager.authenticate_principal("CN=unknown")
    users.users_file.write_text("me = /(/\n")
    with pytest.raises(BrokerError):
        manager.authenticate_principal(PRINCIPAL)
    assert "no client can log in by a certificate" in caplog.text
    users.users_file.unlink()
    with pytest.raises(BrokerError):
        manager.authenticate_principal(PRINCIPAL)
    with pytest.raises(BrokerError):
        SecurityManager(None).authenticate_principal(PRINCIPAL)
    assert (manager.counts.authenticated, manager.counts.unauthenticated) == (1, 3)


def test_without_security_the_name_is_taken():
    assert AllowAll().authenticate_principal(PRINCIPAL) == PRINCIPAL
    assert SecurityManager(None, enabled=False).authenticate_principal("CN=x").name == "CN=x"

"""A broker whose clients are known by their certificates."""

import contextlib

from broker.config.load import load
from broker.options.from_config import broker_options, security_of
from broker.server.server import Broker
from tests.broker.certificates import Authority

__all__ = ["make_certificates", "serving"]

LOGIN = """activemq {
%sorg.apache.activemq.artemis.spi.core.security.jaas.TextFileCertificateLoginModule sufficient
org.apache.activemq.jaas.textfiledn.user="cert-users.properties"
org.apache.activemq.jaas.textfiledn.role="cert-roles.properties";
};
"""
PASSWORDS = """org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule sufficient
org.apache.activemq.jaas.properties.user="artemis-users.properties"
org.apache.activemq.jaas.properties.role="artemis-roles.properties";
"""


def make_certificates(folder):
    """Files by name: of an authority, and certificates that it has given."""
    ours = Authority(folder, "ours")
    return {
        "authority": ours.certificate,
        "server": ours.issue("server", host="localhost"),
        "known": ours.issue("known"),
        "stranger": ours.issue("stranger"),
    }


@contextlib.asynccontextmanager
async def serving(folder, files, *, has_passwords=False):
    """A broker that knows the certificate `known` as the user `sender`, and may know `me`, `pw`."""
    etc = folder / "etc"
    etc.mkdir()
    (etc / "login.config").write_text(LOGIN % (PASSWORDS if has_passwords else ""))
    (etc / "cert-users.properties").write_text("sender = CN=known\n")
    (etc / "cert-roles.properties").write_text("senders = sender\n")
    (etc / "artemis-users.properties").write_text("me = pw\n")
    (etc / "artemis-roles.properties").write_text("senders = me\n")
    uri = (
        "tcp://127.0.0.1:0?sslEnabled=true;wantClientAuth=true;saslMechanisms=EXTERNAL,ANONYMOUS;"
        f"keyStorePath={files['server']};trustStorePath={files['authority']}"
    )
    (etc / "broker.xml").write_text(
        "<configuration><core><persistence-enabled>false</persistence-enabled>"
        f'<acceptors><acceptor name="a">{uri}</acceptor></acceptors><security-settings>'
        '<security-setting match="#"><permission type="send" roles="senders"/></security-setting>'
        '</security-settings><addresses><address name="q"><anycast><queue name="q"/></anycast>'
        "</address></addresses></core></configuration>"
    )
    config = load(etc / "broker.xml")
    broker = Broker(broker_options(config), security=security_of(config))
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()

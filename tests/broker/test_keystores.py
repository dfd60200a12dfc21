"""Java's keystores: TLS by what `keytool` and `openssl` wrote, and what is wrong with a store."""

import asyncio
import shutil
import ssl
import subprocess

import pytest

from broker.security.keystores import load_key, load_trusted, read_key_store
from tests.broker.certificates import Authority, openssl
from tests.broker.test_tls import by_client, serving

PASSWORD = "changeit"


def keytool(*words):
    if shutil.which("keytool") is None:
        pytest.skip("no Java: keytool is missing")
    done = subprocess.run(
        ["keytool", *map(str, words), "-storepass", PASSWORD], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module", params=["JKS", "PKCS12"])
def stores(request, folder):
    """A key with its certificate, and a store that trusts it, of one kind."""
    kind = request.param
    own, trusted, certificate = (folder / f"{kind}-{name}" for name in ("own", "trusted", "crt"))
    keytool(
        *("-genkeypair", "-alias", "Server", "-keyalg", "RSA", "-dname", "CN=localhost"),
        *("-ext", "san=dns:localhost", "-storetype", kind, "-keystore", own),
        *("-keypass", PASSWORD),
    )
    keytool("-exportcert", "-alias", "server", "-keystore", own, "-file", certificate)
    keytool(
        *("-importcert", "-noprompt", "-alias", "ca", "-file", certificate),
        *("-storetype", kind, "-keystore", trusted),
    )
    return own, trusted


def test_tls_with_the_stores_of_java_on_both_sides(stores):
    own, trusted = stores
    parameters = f"keyStorePath={own};keyStorePassword={PASSWORD};keyStoreType=JKS"
    parameters += f";trustStorePath={trusted};trustStorePassword={PASSWORD};needClientAuth=true"
    client = {
        "trustStorePath": trusted,
        "trustStorePassword": PASSWORD,
        "keyStorePath": own,
        "keyStorePassword": PASSWORD,
        "keyStoreAlias": "server",
    }

    assert asyncio.run(serving(None, parameters, by_client(**client))) == "by TLS"


def test_what_is_wrong_with_a_store_is_told(stores):
    own, trusted = map(str, stores)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    with pytest.raises(ValueError, match=r"own: .*password"):
        load_key(context, own, "wrong")
    with pytest.raises(ValueError, match="trusted has no private key"):
        load_key(context, trusted, PASSWORD)
    with pytest.raises(ValueError, match="own has no key 'other'; it has server"):
        load_key(context, own, PASSWORD, "other")


def test_every_cut_of_a_keystore_is_refused(stores):
    data = stores[0].read_bytes()

    for size in range(4, len(data), 7):
        with pytest.raises(ValueError, match=r"\w"):
            read_key_store(data[:size], PASSWORD)
        if data[0] == 0xFE:
            # Without a password the file's digest is not looked at.
            with pytest.raises(ValueError, match=r"\w"):
                read_key_store(data[:size], None)


def test_the_chain_of_a_pkcs12_store_is_shown(folder):
    authority = Authority(folder, "root")
    server = authority.issue("p12-server", host="localhost")
    store = folder / "chain.p12"
    openssl(
        *("pkcs12", "-export", "-in", server, "-certfile", authority.certificate),
        *("-name", "server", "-passout", "pass:secret", "-out", store),
    )

    found = read_key_store(store.read_bytes(), "secret")

    assert [len(key.chain) for key in found.keys.values()] == [2]
    parameters = f"keyStorePath={store};keyStorePassword=secret"
    client = by_client(trustStorePath=authority.certificate)
    assert asyncio.run(serving(None, parameters, client)) == "by TLS"


def test_jceks_and_an_empty_file(folder):
    empty = folder / "empty"
    empty.touch()

    with pytest.raises(ValueError, match="keytool -importkeystore"):
        read_key_store(bytes.fromhex("cececece") + bytes(40), "x")
    with pytest.raises(ssl.SSLError):
        load_trusted(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), str(empty))

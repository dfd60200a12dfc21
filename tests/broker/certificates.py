"""Certificates for tests, made by the `openssl` command."""

import shutil
import subprocess

import pytest

# Long enough for a test, and not what a clock that is a little wrong takes for expired.
VALID_DAYS = 2


def openssl(*words):
    """Run the command; the test is skipped where it is missing."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here: install Debian's `openssl`")
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Authority:
    """Signs certificates; all files are PEM.

    Attributes:
        certificate: of the authority itself.
    """

    def __init__(self, folder, name):
        self._folder = folder
        self._name = name
        self.certificate = folder / f"{name}.crt"
        self._key = folder / f"{name}.key"
        openssl(
            *("req", "-x509", *_new_key(self._key), "-subj", f"/CN={name}"),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
            *("-days", VALID_DAYS, "-out", self.certificate),
        )
        (folder / f"{name}.index").touch()
        self._configuration = folder / f"{name}.cnf"
        self._configuration.write_text(
            f"""[ca]
default_ca = here
[here]
database = {folder}/{name}.index
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""
        )

    def issue(self, name, *, host=None, is_expired=False):
        """A certificate and its key, in one file.

        Args:
            name: whom it is for.
            host: name of a server, which is also 127.0.0.1 where it is localhost.
            is_expired: it was good for a day in the year 2001.
        """
        key, request = self._folder / f"{name}.key", self._folder / f"{name}.csr"
        certificate, both = self._folder / f"{name}.crt", self._folder / f"{name}.pem"
        names = []
        if host is not None:
            alternatives = f"DNS:{host}" + (",IP:127.0.0.1" if host == "localhost" else "")
            names = ["-addext", f"subjectAltName={alternatives}"]
        openssl("req", "-new", *_new_key(key), "-subj", f"/CN={name}", *names, "-out", request)
        dates = ("-startdate", "20010101000000Z", "-enddate", "20010102000000Z")
        openssl(
            *("ca", "-batch", "-notext", "-config", self._configuration, "-in", request),
            *("-cert", self.certificate, "-keyfile", self._key, "-out", certificate),
            *(dates if is_expired else ("-days", VALID_DAYS)),
        )
        both.write_bytes(certificate.read_bytes() + key.read_bytes())
        return both


def _new_key(path):
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path)

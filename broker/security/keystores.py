"""Certificates and keys for TLS from PEM files and from Java's keystores (PKCS12, JKS).

    PEM      what OpenSSL reads as it is
    PKCS12   `keytool` writes it since Java 9; read by `cryptography`
    JKS      `keytool` wrote it before; read here

What a file is, its first bytes say: Java reads either kind under both names, too. Python's ssl
module loads keys from files only, so a key goes there through a file in memory (memfd_create) that
no other user can open.

JKS, all numbers big-endian: magic FEEDFEED, version (4), count (4), entries, SHA-1 (20).
    entry        tag (4), alias (text), time (8), then by tag
    1, a key     size (4), key, count of certificates (4), certificates
    2, trusted   certificate
    certificate  kind (text, version 2 only), size (4), DER
    text         size (2), modified UTF-8
A key is the DER of an EncryptedPrivateKeyInfo whose content is salt (20), masked key, SHA-1 (20).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Key", "KeyStore", "load_key", "load_trusted", "read_key_store"]

_JKS_MAGIC: Final = 0xFEEDFEED
_JCEKS_MAGIC: Final = 0xCECECECE
_KEY_TAG: Final = 1
_TRUSTED_TAG: Final = 2
_DIGEST_SIZE: Final = 20
# What the digest of a whole JKS file begins with, behind the password.
_WHITENER: Final = b"Mighty Aphrodite"
# 1.3.6.1.4.1.42.2.17.1.1: the algorithm that masks a key, as an encoded object identifier.
_KEY_PROTECTOR: Final = bytes.fromhex("060a2b060104012a02110101")
_SEQUENCE: Final = 0x30
_OCTETS: Final = 0x04


@dataclass(frozen=True, slots=True)
class Key:
    """A private key with its certificates.

    Attributes:
        pkcs8: the key, DER.
        chain: its own certificate first, DER.
    """

    pkcs8: bytes
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class KeyStore:
    """What is in a Java keystore.

    Attributes:
        keys: by alias.
        trusted: certificates of others, DER.
    """

    keys: Mapping[str, Key]
    trusted: tuple[bytes, ...]


def load_key(
    context: ssl.SSLContext, path: str, password: str | None = None, alias: str | None = None
) -> None:
    """Load the key and certificates that `context` is to show.

    Args:
        context: of TLS.
        path: a PEM file, or a Java keystore.
        password: of the file, and of the key in it.
        alias: which key of a keystore; the only one, or the first one, without.

    Raises:
        OSError: the file cannot be read, or OpenSSL refuses it (ssl.SSLError).
        ValueError: the keystore is damaged, has no such key, or has another password.
    """
    store = _java_store(path, password)
    if store is None:
        context.load_cert_chain(path, password=password)
        return
    if not store.keys:
        raise ValueError(f"{path} has no private key")
    # Java's aliases have no case.
    wanted = next(iter(store.keys)) if alias is None else alias.lower()
    key = store.keys.get(wanted)
    if key is None:
        raise ValueError(f"{path} has no key {alias!r}; it has {', '.join(store.keys)}")
    text = _pem("PRIVATE KEY", key.pkcs8) + "".join(_certificates(key.chain))
    descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def load_trusted(context: ssl.SSLContext, path: str, password: str | None = None) -> None:
    """Load the certificates that `context` is to trust.

    Args:
        context: of TLS.
        path: a PEM file, or a Java keystore; certificates of keys in it count, too.
        password: of the keystore.

    Raises:
        OSError: the file cannot be read, or OpenSSL refuses it (ssl.SSLError).
        ValueError: the keystore is damaged, is empty, or has another password.
    """
    store = _java_store(path, password)
    if store is None:
        context.load_verify_locations(path)
        return
    chains = (certificate for key in store.keys.values() for certificate in key.chain)
    text = "".join(_certificates((*store.trusted, *chains)))
    if not text:
        raise ValueError(f"{path} has no certificate")
    context.load_verify_locations(cadata=text)


def read_key_store(data: bytes, password: str | None) -> KeyStore | None:
    """Read a Java keystore; None where the bytes are something else, such as PEM.

    Raises:
        ValueError: it is damaged, of an unsupported kind, or has another password.
    """
    magic = int.from_bytes(data[:4], "big")
    if magic == _JKS_MAGIC:
        return _Jks(data, password).read()
    if magic == _JCEKS_MAGIC:
        raise ValueError(
            "a keystore of type JCEKS; convert it with `keytool -importkeystore "
            "-srcstoretype JCEKS -deststoretype PKCS12 -srckeystore … -destkeystore …`"
        )
    if data[:1] == bytes((_SEQUENCE,)):
        return _read_pkcs12(data, password)
    return None


def _java_store(path: str, password: str | None) -> KeyStore | None:
    try:
        return read_key_store(Path(path).read_bytes(), password)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _pem(label: str, der: bytes) -> str:
    body = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----\n"


def _certificates(ders: Iterable[bytes]) -> Iterator[str]:
    return (_pem("CERTIFICATE", der) for der in ders)


# --- PKCS12 -----------------------------------------------------------------------------------


def _read_pkcs12(data: bytes, password: str | None) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    others = [one.certificate for one in found.additional_certs]
    if found.key is None or found.cert is None:
        return KeyStore({}, tuple(one.public_bytes(Encoding.DER) for one in others))
    chain = [found.cert.certificate]
    while issuer := next((one for one in others if one.subject == chain[-1].issuer), None):
        others.remove(issuer)
        chain.append(issuer)
    key = Key(
        found.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        tuple(one.public_bytes(Encoding.DER) for one in chain),
    )
    alias = (found.cert.friendly_name or b"").decode(errors="replace").lower()
    return KeyStore({alias: key}, tuple(one.public_bytes(Encoding.DER) for one in others))


# --- JKS --------------------------------------------------------------------------------------


class _Jks:
    """Reads one JKS file; see the module's text."""

    def __init__(self, data: bytes, password: str | None) -> None:
        self._data = data
        self._end = len(data) - _DIGEST_SIZE
        self._offset = 4
        self._password = None if password is None else password.encode("utf-16-be")

    def read(self) -> KeyStore:
        if self._password is not None:
            digest = hashlib.sha1(self._password + _WHITENER + self._data[: self._end]).digest()
            if not hmac.compare_digest(digest, self._data[self._end :]):
                raise ValueError("the keystore is damaged, or its password is another one")
        version, count = self._number(), self._number()
        if version not in (1, 2):
            raise ValueError(f"JKS of version {version}; versions 1 and 2 are known")
        keys: dict[str, Key] = {}
        trusted: list[bytes] = []
        for _ in range(count):
            tag, alias = self._number(), self._text()
            self._take(8)
            if tag == _KEY_TAG:
                masked = self._take(self._number())
                chain = tuple(self._certificate(version) for _ in range(self._number()))
                keys[alias.lower()] = Key(self._unmasked(masked), chain)
            elif tag == _TRUSTED_TAG:
                trusted.append(self._certificate(version))
            else:
                raise ValueError(f"JKS entry {alias!r} of an unknown kind, {tag}")
        return KeyStore(keys, tuple(trusted))

    def _take(self, size: int) -> bytes:
        first, self._offset = self._offset, self._offset + size
        if self._offset > self._end:
            raise ValueError("the keystore ends too early")
        return self._data[first : self._offset]

    def _number(self) -> int:
        return int(struct.unpack(">I", self._take(4))[0])

    def _text(self) -> str:
        (size,) = struct.unpack(">H", self._take(2))
        return self._take(size).decode("utf-8", "replace")

    def _certificate(self, version: int) -> bytes:
        if version == 2:
            self._text()
        return self._take(self._number())

    def _unmasked(self, encrypted: bytes) -> bytes:
        """Give the key; SHA-1 over password and the block before makes the next 20 bytes to xor."""
        if self._password is None:
            raise ValueError("the keystore's key needs keyStorePassword")
        algorithm, content = _elements(_elements(encrypted, _SEQUENCE)[0][1])
        if not algorithm[1].startswith(_KEY_PROTECTOR) or content[0] != _OCTETS:
            raise ValueError("the keystore's key is encrypted in an unknown way")
        block, masked = content[1][:_DIGEST_SIZE], content[1][_DIGEST_SIZE:-_DIGEST_SIZE]
        plain = bytearray()
        for first in range(0, len(masked), _DIGEST_SIZE):
            block = hashlib.sha1(self._password + block).digest()
            part = masked[first : first + _DIGEST_SIZE]
            plain += bytes(one ^ other for one, other in zip(part, block, strict=False))
        digest = hashlib.sha1(self._password + plain).digest()
        if not hmac.compare_digest(digest, content[1][-_DIGEST_SIZE:]):
            raise ValueError("the key's password is not the keystore's")
        return bytes(plain)


def _elements(der: bytes, wanted: int | None = None) -> list[tuple[int, bytes]]:
    """Split DER into its elements: tag and content.

    Raises:
        ValueError: it is cut off, or the first tag is not the wanted one.
    """
    found: list[tuple[int, bytes]] = []
    offset = 0
    while offset < len(der):
        if offset + 2 > len(der):
            raise ValueError("the keystore's key is cut off")
        tag, size, offset = der[offset], der[offset + 1], offset + 2
        if size & 0x80:
            width = size & 0x7F
            size, offset = int.from_bytes(der[offset : offset + width], "big"), offset + width
        if offset + size > len(der):
            raise ValueError("the keystore's key is cut off")
        found.append((tag, der[offset : offset + size]))
        offset += size
    if not found or (wanted is not None and found[0][0] != wanted):
        raise ValueError("the keystore's key is not an encrypted private key")
    return found

"""Who a peer's certificate is for: the distinguished name of its subject, as Java writes it."""

from __future__ import annotations

from typing import Final

__all__ = ["principal_of"]

# The keywords of Java (sun.security.x509.AVAKeyword) for the names that OpenSSL has for them.
_KEYWORDS: Final = {
    "commonName": "CN",
    "countryName": "C",
    "dnQualifier": "DNQ",
    "domainComponent": "DC",
    "emailAddress": "EMAILADDRESS",
    "givenName": "GIVENNAME",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "serialNumber": "SERIALNUMBER",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "surname": "SURNAME",
    "title": "T",
    "userId": "UID",
}
# What has to stand in quotes there (RFC 1779).
_SPECIAL: Final = frozenset(',+=\n<>#;\\"')


def principal_of(certificate: object) -> str | None:
    """Give the subject of a certificate of `SSLSocket.getpeercert()`; None without one.

    >>> principal_of({"subject": ((("countryName", "US"),), (("commonName", "me, too"),))})
    'CN="me, too", C=US'
    >>> principal_of({})
    """
    subject = certificate.get("subject") if isinstance(certificate, dict) else None
    if not subject:
        return None
    # Java writes the names from the last one to the first.
    return ", ".join("+".join(_pair(*one) for one in names) for names in reversed(subject))


def _pair(name: str, value: str) -> str:
    if not _SPECIAL.isdisjoint(value) or value != value.strip():
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        value = f'"{escaped}"'
    return f"{_KEYWORDS.get(name, name)}={value}"

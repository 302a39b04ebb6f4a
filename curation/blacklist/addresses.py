"""Addresses as the blacklist knows them: two spellings of one page, or of one host, have one key.

A URL is its host and what follows, without scheme, user, default port and fragment; escapes of letters, digits and
`-._~` are undone, other ones are written in capitals, and what must be escaped is (RFC 3986, 6.2.2). Queries count as
they are. Behind `//` what is normal is normalised to itself: so port 443 is left out whatever the scheme, and escapes that
appear where others were undone (`%%34%31`) are undone too.
A host is in small letters, labels of other scripts in Punycode. No list of public suffixes is asked: `co.uk`
is a domain as any other.
About 4 us an address.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import quote

__all__ = ["host_of", "normal_domain", "normal_url", "parents"]

_URL = re.compile(r"\s*(?:([A-Za-z][A-Za-z0-9+.\-]*):)?//([^/?#\\]*)([^#]*)", re.DOTALL)
_PLAIN = re.compile(r"[a-z0-9.\-]*")
_HOST = re.compile(r"[a-z0-9_\-]+(?:\.[a-z0-9_\-]+)*|\[[0-9a-f:.]+\]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ASCII = re.compile(r"[!-~]*")
_KEPT = "".join(map(chr, range(0x21, 0x7F)))
_DEFAULT_PORT = ("http", "80")
_NO_PORT = "443"
"""Of all schemes: the scheme is not in the key, so whether this port is may not hang on it."""
_MOST_HOST = 253


def normal_url(url: str) -> str | None:
    """`host/path?query`, as the key is made of it; None if it has no host."""
    split = _split(url)
    if split is None:
        return None
    host, port, rest = split
    if "%" in rest:
        rest = _unescaped(rest)
    if not _ASCII.fullmatch(rest):
        rest = quote(rest.strip(), safe=_KEPT, errors="surrogatepass")
    if not rest.startswith("/"):
        rest = "/" + rest
    return f"{host}:{port}{rest}" if port else host + rest


def host_of(url: str) -> str | None:
    """The normalised host of a URL; None if it has none."""
    split = _split(url)
    return split[0] if split else None


def normal_domain(domain: str) -> str | None:
    """The normalised form of a domain or host; None if it is none, as are a single label and a URL."""
    host = _normal_host(domain.strip())
    return host if host is not None and ("." in host or host.startswith("[")) else None


def parents(host: str) -> Iterator[str]:
    """The host, then each domain that holds it, down to two labels; of an IP address only itself."""
    yield host
    if host.startswith("[") or _is_ip(host):
        return
    labels = host.split(".")
    for first in range(1, len(labels) - 1):
        yield ".".join(labels[first:])


def _split(url: str) -> tuple[str, str, str] | None:
    match = _URL.match(url)
    if match is None:
        return None
    scheme, authority, rest = (match[1] or "").lower(), match[2].rpartition("@")[2], match[3]
    host, port = authority, ""
    if ":" in authority and not authority.endswith("]"):
        host, _, port = authority.rpartition(":")
        if port and not (port.isascii() and port.isdigit()):
            return None
        port = "" if port == _NO_PORT or (scheme, port) == _DEFAULT_PORT else port
    normal = _normal_host(host)
    return (normal, port, rest) if normal else None


def _normal_host(host: str) -> str | None:
    if not _PLAIN.fullmatch(host):
        host = unicodedata.normalize("NFKC", host[: 4 * _MOST_HOST]).lower().replace("。", ".")
        try:
            host = ".".join(
                x if x.isascii() else "xn--" + x.encode("punycode").decode("ascii") for x in host.split(".")
            )
        except UnicodeError:
            return None
    host = host.removesuffix(".")
    return host if len(host) <= _MOST_HOST and _HOST.fullmatch(host) else None


def _unescaped(text: str) -> str:
    """All escapes undone or in capitals, those too that appear by it."""
    found = _ESCAPE.sub(_escape, text)
    if _ESCAPE.sub(_escape, found) == found:
        return found
    # As often as needed, but in one go: text that was made for it needs as many passes as it has characters.
    made: list[str] = []
    for character in text:
        made.append(character)
        while len(made) > 2 and made[-3] == "%" and (match := _ESCAPE.fullmatch("".join(made[-3:]))):
            escape = _escape(match)
            made[-3:] = escape
            if len(escape) > 1:
                break
    return "".join(made)


def _escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else "%" + match[1].upper()


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

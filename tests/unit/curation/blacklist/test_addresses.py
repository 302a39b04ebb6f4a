"""Two spellings of one page, or of one host, are one; what is no address is None."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.blacklist.addresses import host_of, normal_domain, normal_url, parents


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://Example.com", "example.com/"),
        ("http://example.com:80/", "example.com/"),
        ("https://example.com:443/a", "example.com/a"),
        ("https://example.com:80/a", "example.com:80/a"),
        ("http://example.com:8080?q", "example.com:8080/?q"),
        ("https://user:pass@example.com/a#b", "example.com/a"),
        ("https://example.com./%7ea%2fB", "example.com/~a%2FB"),
        ("https://example.com/a b", "example.com/a%20b"),
        ("http://example.com:443/a", "example.com/a"),
        ("//example.com:443/a", "example.com/a"),
        ("https://example.com/%%34%31", "example.com/A"),
        ("https://example.com/%%32f%%32%46", "example.com/%2F%2F"),
        ("https://example.com/%%%3334%%331", "example.com/41"),
        ("https://example.com/ü", "example.com/%C3%BC"),
        ("https://example.com/%", "example.com/%"),
        (" https://bücher.example/ ", "xn--bcher-kva.example/"),
        ("https://ｂ．example/", "b.example/"),
        ("https://[2001:db8::1]:8443/x", "[2001:db8::1]:8443/x"),
        ("https://evil\\@good.example/", "evil/\\@good.example/"),  # where a browser goes
        ("https://a.example:99x/", None),
        ("https:///path", None),
        ("mailto:a@b.example", None),
        ("https://a..example/", None),
        ("https://" + "a" * 300 + ".example/", None),
        ("", None),
    ],
)
def test_a_url_is_normalised(url: str, normal: str | None) -> None:
    """What decides is host, port, path and query."""
    assert normal_url(url) == normal


ANY = st.one_of(
    st.text(max_size=40),
    st.text("%%%%%123456aAfF", max_size=20),
    st.text("%4aA/:@.ü 。ſK\u0307\ud800\\?#[]-_\n", max_size=20),
)


@settings(max_examples=400)
@given(
    ANY,
    st.sampled_from(["", "https://", "//", "ftp://h:443/", "https://a.example/", "http://a.example:", "http://h:443/"]),
)
def test_normalising_twice_changes_nothing(rest: str, before: str) -> None:
    """And it never fails, whatever it is given; its result can be written."""
    normal = normal_url(before + rest)
    if normal is not None:
        assert normal_url("//" + normal) == normal
        assert normal.isascii()
    domain = normal_domain(rest)
    if domain is not None:
        assert normal_domain(domain) == domain


def test_escapes_within_escapes_take_no_longer_than_others() -> None:
    """Of 200,000 characters, each pass would undo one escape only."""
    n = 100_000
    assert normal_url("//h/" + "%" * n + "3" * n + "34") == "h/34"


@pytest.mark.parametrize(
    ("domain", "normal"),
    [
        ("WWW.Example.COM.", "www.example.com"),
        ("com", None),
        ("a b.example", None),
        ("https://a.example", None),
        ("", None),
    ],
)
def test_a_domain_is_normalised(domain: str, normal: str | None) -> None:
    """A single label is none: it would hold for a whole country."""
    assert normal_domain(domain) == normal


def test_a_host_lies_in_its_domains_and_an_address_in_none() -> None:
    """Down to two labels, the closest first."""
    assert list(parents("a.b.example.com")) == ["a.b.example.com", "b.example.com", "example.com"]
    assert list(parents("10.0.0.1")) == ["10.0.0.1"]
    assert host_of("http://10.0.0.1/") == "10.0.0.1"

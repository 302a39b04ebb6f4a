"""Which domains go on the list beside their documents, at sizes at which a careless count would never end."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest

from curation.rescore.config import DomainConfig
from curation.rescore.entries import domains_of


def listed(
    hosts: list[str], side: npt.NDArray[np.int8], max_share: float = 0.05, **settings: float
) -> dict[str, npt.NDArray[np.int64]]:
    """Of documents of one language and source."""
    places = {host: place for place, host in enumerate(dict.fromkeys(hosts))}
    of = np.array([places[host] for host in hosts], np.int64)
    same = np.zeros(len(hosts), np.int64)
    return domains_of(places, of, side, [same, same], DomainConfig.model_validate(settings), max_share)


@pytest.mark.parametrize(
    ("below", "evidence"),
    [("u{}.pages.example", None), ("u{}.other.example", 50), ("pages.example.u{}", 50), ("upages{}.example", 50)],
)
def test_pages_below_a_domain_count_for_it(below: str, evidence: int | None) -> None:
    """50 bad pages of pages.example and 5,000 good ones on hosts below it: it is not listed; elsewhere they do not matter."""
    hosts = ["pages.example"] * 50 + [below.format(n) for n in range(5000)] + [f"o{n}.test" for n in range(4950)]
    found = listed(hosts, np.array([1] * 50 + [0] * 9950, np.int8))
    assert {name: len(rows) for name, rows in found.items()} == (
        {} if evidence is None else {"pages.example": evidence}
    )


def test_pages_below_a_domain_are_evidence() -> None:
    """30 bad pages of the domain and 30 below it are 60; the host below has too few of its own."""
    hosts = ["a.example"] * 30 + ["www.a.example"] * 30 + ["b.example"] * 1940
    found = listed(hosts, np.array([-1] * 60 + [0] * 1940, np.int8))
    assert {name: rows.tolist() for name, rows in found.items()} == {"a.example": list(range(60))}


def test_domains_together_hold_the_guard() -> None:
    """Each of three domains has 10 good pages of 50; there is room for 15: the first by its name, and no other."""
    hosts = [f"d{n // 50}.example" for n in range(150)] + ["good.example"] * 2550
    side = np.array(([1] * 40 + [0] * 10) * 3 + [0] * 2550, np.int8)
    assert list(listed(hosts, side)) == ["d0.example"]


def test_many_domains_and_a_long_name_cost_no_more_than_documents() -> None:
    """1,000 domains to list of 50,000 documents, one host of 253 letters: not a count of all for each, nor 1 kB a document."""
    long = ".".join(["x" * 60] * 4) + ".example"
    hosts = [f"d{n % 1000}.example" for n in range(50_000)] + [long] + ["good.example"] * 950_000
    places = {host: place for place, host in enumerate(dict.fromkeys(hosts))}
    of = np.concatenate([np.arange(50_000) % 1000, [1000], np.full(950_000, 1001)]).astype(np.int64)
    side = np.zeros(len(hosts), np.int8)
    side[:50_000] = 1
    same = np.zeros(len(hosts), np.int64)
    tracemalloc.start()
    began = time.process_time()
    found = domains_of(places, of, side, [same, same], DomainConfig(), 0.05)
    took, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 1000
    assert took < 5  # 0.2 s on an idle core; a count of all documents for each takes 20 s
    assert peak < 60 * len(hosts)

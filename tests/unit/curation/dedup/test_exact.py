"""Exact deduplication: what counts as the same text, which copy stays, and what does not matter."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest

from curation.dedup import DATA_SET_STEPS, exact
from curation.dedup.exact import Exact, ExactConfig
from curation.errors import RunError
from curation.ids import doc_id, text_id
from curation.judge import judge_shard
from curation.shards import shards_of
from curation.steps import StepContext, place_steps, step_class
from curation.verdicts import StepConfig
from tests.fakes import SOURCE, BeginsWithK, Judged, make_run, run_passes, run_steps

VIETNAMESE = "Thư viện mở cửa lúc chín giờ sáng"


def deduplicate(root: Path, shards: Sequence[Sequence[str]]) -> Judged:
    return run_steps(make_run(root, shards), [Exact(ExactConfig())])


def ids_of(texts: Sequence[str]) -> list[bytes]:
    """doc_id of each text of a made run, in document order."""
    return [doc_id(SOURCE, place, 0, text_id(text)) for place, text in enumerate(texts)]


@pytest.fixture(params=[1, 3, 16])
def ranges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Number of hash ranges, whatever the documents and the memory."""
    n: int = request.param
    plain = Exact.n_items
    monkeypatch.setattr(
        Exact, "n_items", lambda step, name, context: n if name == "resolve" else plain(step, name, context)
    )
    return n


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """These runs need not survive a power cut."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


CASES: list[tuple[str, list[str], list[int]]] = [
    ("nothing in common", ["a", "b", "c"], [0, 1, 2]),
    ("the first stays", ["b", "a", "b", "a", "b"], [0, 1]),
    ("NFC and NFD", [VIETNAMESE, unicodedata.normalize("NFD", VIETNAMESE)], [0]),
    ("NFD first: it stays as it is", [unicodedata.normalize("NFD", VIETNAMESE), VIETNAMESE], [0]),
    ("Hangul in letters", ["한국어", unicodedata.normalize("NFD", "한국어")], [0]),
    ("line ends", ["one\ntwo", "one\r\ntwo", "one\rtwo"], [0]),
    ("outer blanks", ["text", "  text\n", "\u3000text\u00a0", "\ttext"], [0]),
    ("inner blanks count", ["a b", "a  b", "ab", "a\tb"], [0, 1, 2, 3]),
    ("case and punctuation count", ["Text", "text", "text."], [0, 1, 2]),
    ("compatibility forms count", ["ＡＢＣ", "ABC", "ﬁn", "fin"], [0, 1, 2, 3]),
    ("traditional and simplified are two", ["圖書館", "图书馆"], [0, 1]),
    ("blank texts are one", ["", " ", "\n\n", "\u3000"], [0]),
    ("invisible signs count", ["a", "a\u200b", "\ufeffa", "a\0"], [0, 1, 2, 3]),
    ("two that begin alike", ["x" * 5000 + "1", "x" * 5000 + "2"], [0, 1]),
]


@pytest.mark.parametrize(("texts", "kept"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_the_same(tmp_path: Path, texts: list[str], kept: list[int]) -> None:
    """Two texts are the same if they are equal after NFC, line ends and outer blanks, and no further."""
    assert deduplicate(tmp_path, [texts]).kept("exact") == kept


def test_a_dropped_document_names_its_kept_copy(tmp_path: Path, ranges: int) -> None:
    """Every member of a group, the kept one too, carries the kept doc_id where dropped, and the group's size."""
    shards = [["a", "b", "a"], ["c", "a", "b"], ["a", "d", "c"]]
    texts = [text for shard in shards for text in shard]
    ids = ids_of(texts)

    rows = deduplicate(tmp_path, shards).verdicts("exact")

    assert [row["keep"] for row in rows] == [True, True, False, True, False, False, False, True, False]
    partners = [row["kept_doc_id"] for row in rows]
    assert partners == [None if row["keep"] else ids[texts.index(text)] for row, text in zip(rows, texts, strict=True)]
    assert [row["group_size"] for row in rows] == [texts.count(text) for text in texts]
    assert [row["similarity"] for row in rows] == [None if row["keep"] else 1.0 for row in rows]
    assert {row["reason"] for row in rows} == {None, "exact.duplicate"}


@pytest.mark.parametrize("cut", [[9], [1, 8], [8, 1], [3, 3, 3], [1] * 9, [0, 4, 0, 5, 0]])
def test_shards_do_not_matter(tmp_path: Path, ranges: int, cut: list[int]) -> None:
    """However the documents are cut into shards and the hashes into ranges, the verdicts are the same."""
    texts = ["a", "b", "a", "c", "a", "b", "a", "d", "c"]
    shards, start = [], 0
    for length in cut:
        shards.append(texts[start : start + length])
        start += length

    judged = deduplicate(tmp_path, shards)

    assert judged.kept("exact") == [0, 1, 3, 7]
    whole = deduplicate(tmp_path / "whole", [texts])
    assert judged.verdicts("exact") == whole.verdicts("exact")


def test_a_text_that_is_half_of_the_corpus(tmp_path: Path, ranges: int) -> None:
    """A hot group costs each shard one head: the largest file of the second pass has one row a shard for it."""
    shards = [["the same page" if n % 2 else f"page {shard} {n}" for n in range(200)] for shard in range(5)]
    run = make_run(tmp_path, shards)
    placed = place_steps(run, [Exact(ExactConfig())])[0]

    context = run_passes(run, placed, shards_of(run))

    assert sum(context.open_item("resolve", item).num_rows for item in range(ranges)) == len(shards)
    judged = run_steps(run, [Exact(ExactConfig())])
    rows = judged.verdicts("exact")
    assert sum(row["keep"] for row in rows) == 501
    assert [row["group_size"] for row in rows if row["keep"] and row["group_size"] > 1] == [500]


def test_only_living_documents_are_compared(tmp_path: Path, ranges: int) -> None:
    """A document that an earlier step dropped neither keeps nor drops another, and gets no verdict."""
    shards = [["kite", "apple", "apple"], ["kite", "apple", "key"]]

    judged = run_steps(make_run(tmp_path, shards), [BeginsWithK(StepConfig()), Exact(ExactConfig())])

    rows = judged.verdicts("exact")
    assert [row["keep"] for row in rows] == [True, None, None, False, None, True]
    assert [row["group_size"] for row in rows] == [2, None, None, 2, None, 1]


@pytest.mark.parametrize("shards", [[], [[]], [[], []], [["one"]]], ids=["no shards", "one empty", "two empty", "one"])
def test_next_to_nothing(tmp_path: Path, shards: list[list[str]]) -> None:
    """Runs without documents, or with one, have no copies."""
    judged = deduplicate(tmp_path, shards)

    assert judged.kept("exact") == list(range(sum(map(len, shards))))


def test_one_bit_of_text_id_is_enough(tmp_path: Path, ranges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that differ in the last bit only, or stand at the ends of the hash range, are different texts."""
    ends = {
        "low": b"\0" * 16,
        "low2": b"\0" * 15 + b"\1",
        "high": b"\xff" * 16,
        "high2": b"\xff" * 15 + b"\xfe",
        "half": b"\x80" + b"\0" * 15,
    }
    monkeypatch.setattr("tests.fakes.text_id", lambda text: ends[text.rstrip("!")])

    judged = deduplicate(tmp_path, [["low", "low2", "high", "high2", "half"], ["half!", "high!", "low!"]])

    assert judged.kept("exact") == [0, 1, 2, 3, 4]
    assert [row["group_size"] for row in judged.verdicts("exact")] == [2, 1, 2, 1, 2, 2, 2, 2]


def test_a_rerun_writes_the_same_bytes(tmp_path: Path) -> None:
    """Every pass is a function of its input: files of two runs over the same texts are equal."""
    shards = [["a", "b", "a"], ["c", "a"]]
    contexts = []
    for name in ("1", "2"):
        run = make_run(tmp_path / name, shards)
        contexts.append(run_passes(run, place_steps(run, [Exact(ExactConfig())])[0], shards_of(run)))

    one, two = (
        {path.relative_to(context.folder): path.read_bytes() for path in context.folder.rglob("*.arrow")}
        for context in contexts
    )
    assert one == two
    assert len(one) == 3


@pytest.mark.parametrize("name", ["scatter/00001.arrow", "resolve/00000.arrow"])
def test_a_damaged_pass_is_refused(tmp_path: Path, name: str) -> None:
    """Verdicts are not made from a pass that is missing or damaged; the message names the file."""
    run = make_run(tmp_path, [["a", "b"], ["a", "c"]])
    placed = place_steps(run, [Exact(ExactConfig())])[0]
    shards = shards_of(run)
    context = run_passes(run, placed, shards)
    path = context.folder / name
    good = path.read_bytes()

    path.write_bytes(good[:-5])
    with pytest.raises(RunError, match=name):
        judge_shard(run, [placed], 1, shards, 500)
    path.unlink()
    with pytest.raises(RunError, match=name):
        judge_shard(run, [placed], 1, shards, 500)
    path.write_bytes(good)
    assert judge_shard(run, [placed], 1, shards, 500)["steps"] == {"exact": 1}


def test_memory_decides_the_number_of_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the memory is for the documents of one range: a tenth of it makes ten times the ranges."""
    monkeypatch.setattr(exact, "_BYTES_PER_DOCUMENT", 2**20)
    shards = shards_of(make_run(tmp_path, [["a"] * 30, ["b"] * 30]))
    step = Exact(ExactConfig())

    n_items = [step.n_items("resolve", StepContext(shards, None, tmp_path, memory_mb)) for memory_mb in (120, 12, 13)]

    assert n_items == [1, 10, 10]
    assert step.n_items("scatter", StepContext(shards, None, tmp_path, 12)) == 2


@pytest.mark.parametrize("name", DATA_SET_STEPS)
def test_the_law_of_data_set_steps(tmp_path: Path, name: str) -> None:
    """Every data-set step: verdicts as long as the shards, reasons declared and only on drops, partners kept,
    the same whatever the shards are, and nothing judged that was not alive."""
    kind = step_class(name)
    words = [f"document number {n} speaks of rivers, mills and lanterns" for n in range(7)]
    texts = [*words, *words[:3], *words[2:5], "", "", "\0", "\u0301", "x" * 100_000]
    ids = ids_of(texts)

    judged = [
        run_steps(
            make_run(tmp_path / str(n), [texts[i : i + n] for i in range(0, len(texts), n)]), [kind(kind.Config())]
        )
        for n in (len(texts), 5, 1)
    ]

    whole = judged[0].verdicts(name)
    assert [run.verdicts(name) for run in judged[1:]] == [whole, whole], f"{name}: shards change the verdicts"
    assert len(whole) == len(texts)
    kept = {ids[place] for place, row in enumerate(whole) if row["keep"]}
    for place, row in enumerate(whole):
        where = f"{name}: {texts[place]!r:.40}"
        assert (row["reason"] is None) == row["keep"], where
        assert row["reason"] is None or row["reason"] in kind.reasons, where
        assert row["keep"] or row["kept_doc_id"] in kept, f"{where}: partner is not kept"
        assert row["keep"] or 0 < row["similarity"] <= 1, where
        assert row["group_size"] >= 1, where
    assert all(reason.startswith(f"{name}.") for reason in kind.reasons)

"""What an earlier run hands on: what it kept, its own texts and no others; and what is said when it cannot."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from curation.dedup import index_part, near, verify
from curation.dedup.against import earlier_parts, identity
from curation.dedup.choose import choose_in_blocks
from curation.dedup.index_file import export_signatures
from curation.dedup.index_part import IndexPart
from curation.dedup.minhash import choose_bands
from curation.dedup.sets import distinct
from curation.dedup.sign import Signing, keys_of
from curation.errors import ConfigError
from curation.ids import text_id
from curation.pipeline import Pipeline
from curation.run import read_json, write_json
from tests.near_runs import (
    SETTINGS,
    WORDS,
    begun,
    by_definition,
    documents_of,
    dropped_by,
    finish,
    kept_of,
    near_run,
    verdicts_of,
)

SIGNING = Signing(5, 256, *choose_bands(SETTINGS["threshold"], SETTINGS["num_perm"], SETTINGS["recall"]))


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """These runs need not survive a power cut."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def text(seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=60))


def near_copy(seed: int) -> str:
    return f"{text(seed)} more"


TEXTS = [[text(1), near_copy(1), ""], [text(2), text(3), text(1)], [], [text(4)]]
"""Of the six with a shingle, four stay."""


@pytest.fixture
def first(tmp_path: Path) -> Pipeline:
    return near_run(tmp_path, "first", TEXTS)


@pytest.fixture
def index(tmp_path: Path, first: Pipeline) -> Path:
    export_signatures(first, tmp_path / "first.index")
    return tmp_path / "first.index"


def test_a_run_gives_its_shards(first: Pipeline) -> None:
    """A part a shard, with who was kept and the exact sets of the texts that are asked for."""
    parts = earlier_parts([str(first.run.folder)], SIGNING)

    assert [part.n for part in parts] == [2, 3, 0, 1]
    assert [part.kept.tolist() for part in parts if part.kept is not None] == [
        [False, True],
        [True, True, False],
        [],
        [True],
    ]
    by_id = {one.doc_id: one for one in documents_of(first)}
    for part in parts:
        positions = np.arange(part.n)[-2:]
        sets = distinct(part.shingles(positions))
        for i, doc_id in enumerate(part.column("doc_id", positions).to_pylist()):
            values = sets.values[sets.offsets[i] : sets.offsets[i + 1]].tolist()
            assert values == sorted(by_id[doc_id].shingles)


def test_an_index_gives_the_same_without_the_run(
    first: Pipeline, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kept documents with the same keys and sets, in parts of a few batches, when the run is gone."""
    run = earlier_parts([str(first.run.folder)], SIGNING)
    expected = [one.doc_id for one in kept_of(first) if one.shingles]
    sets_of = {one.doc_id: sorted(one.shingles) for one in documents_of(first)}
    keys = [np.sort(keys_of(part.table)) for part in run]
    first.run.folder.rename(tmp_path / "elsewhere")

    monkeypatch.setattr(index_part, "_PART_DOCUMENTS", 3)
    parts = earlier_parts([str(index)], SIGNING)

    assert [part.n for part in parts] == [3, 1]
    assert [bool(part.kept.all()) for part in parts if part.kept is not None] == [True, True]
    assert [one for part in parts for one in part.table.column("doc_id").to_pylist()] == expected
    # Keys of a file give their low bits to the positions in it.
    bits = np.uint64(2)
    known = set((np.concatenate(keys) >> bits).tolist())
    assert known >= {key for part in parts for key in (keys_of(part.table) >> bits).tolist()}
    for part in parts:
        for positions in (np.arange(part.n), np.array([part.n - 1]), np.zeros(0, np.int64)):
            ids = part.column("doc_id", positions).to_pylist()
            sets = distinct(part.shingles(positions))
            assert part.column("n_shingles", positions).to_pylist() == [len(sets_of[one]) for one in ids]
            found = [sets.values[a:b].tolist() for a, b in zip(sets.offsets, sets.offsets[1:], strict=False)]
            assert found == [sets_of[one] for one in ids]


@pytest.mark.parametrize("num_perm", [256, 64])
def test_an_index_serves_any_bands(index: Path, num_perm: int) -> None:
    """Keys follow from the config that reads: other thresholds, other permutations; the columns need no keys."""
    signing = Signing(5, num_perm, *choose_bands(0.9, num_perm))
    (part,) = earlier_parts([str(index)], signing)
    assert isinstance(part, IndexPart)

    assert part.table.schema.field("keys").type.list_size == signing.bands
    assert part.table.num_rows == part.n == 4
    for name in ("row", "n_shingles", "simhash", "text_id", "doc_id"):
        whole = part.table.column(name).combine_chunks()
        assert part.column(name) == whole
        assert part.column(name, np.array([1, 3])) == whole.take(pa.array([1, 3]))


def test_the_identity_is_that_of_the_content(first: Pipeline, index: Path, tmp_path: Path) -> None:
    """Verdicts that are made again are the same; another threshold, another text or another index is another."""
    paths = [str(first.run.folder), str(index)]

    def identities() -> dict[str, str]:
        return identity(paths[:1]) | identity(paths[1:])

    before = identities()
    assert list(before) == paths

    done = first.placed[0].folder / "_done.json"
    for path in (first.placed[0].folder).glob("*.arrow"):
        path.unlink()
    done.unlink()
    finish(Pipeline.open(first.run.folder))
    assert identities() == before

    other = near_run(tmp_path, "other", [[text(1)], *TEXTS[1:]])
    export_signatures(other, index)
    paths[0] = str(other.run.folder)
    assert set(identities().values()).isdisjoint(before.values())


def test_the_config_decides_which_of_several_steps_counts(first: Pipeline, tmp_path: Path) -> None:
    """After a run was decided anew, its present config leads to the step; the older folder stays and is not meant."""
    before = identity([str(first.run.folder)])
    old = first.run.config_path.read_text(encoding="utf-8")
    again = begun(tmp_path, "first", TEXTS, threshold=0.95)
    with pytest.raises(ConfigError, match=r"first is not finished: its step near is not done \(state: running\)"):
        first.run.update(state="running")
        identity([str(first.run.folder)])
    finish(again)

    assert identity([str(first.run.folder)]) != before
    with pytest.raises(ConfigError, match=r"threshold 0\.95"):
        earlier_parts([str(first.run.folder)], SIGNING)
    again.run.config_path.write_text(old, encoding="utf-8")
    assert identity([str(first.run.folder)]) == before


def test_a_run_stays_usable_when_those_before_it_are_gone(first: Pipeline, tmp_path: Path) -> None:
    """What it was compared with is not needed to know what it kept."""
    second = near_run(tmp_path, "second", [[text(9), text(2)]], against=[first.run.folder])
    before = identity([str(second.run.folder)])
    first.run.folder.rename(tmp_path / "elsewhere")

    assert identity([str(second.run.folder)]) == before
    assert [part.n for part in earlier_parts([str(second.run.folder)], SIGNING)] == [2]


LENGTH = [{"length": {"min_units": 20}}]


def test_what_a_later_step_dropped_plays_no_part(tmp_path: Path) -> None:
    """What stands at the end counts, of a run and of its index: else a text that is in no output would drop its copies."""
    short = " ".join(text(5).split()[:12])
    first = near_run(tmp_path, "first", [[text(1), short], [near_copy(1)]], then=LENGTH)
    count = export_signatures(first, tmp_path / "first.index")

    runs = [
        near_run(tmp_path, name, [[short, text(1), text(2)]], against=[path], then=LENGTH)
        for name, path in (("b", first.run.folder), ("c", tmp_path / "first.index"))
    ]

    assert [row["reason"] for row in verdicts_of(first)] == [None, "length.too_short", None]
    assert [row["keep"] for row in verdicts_of(first)] == [None, False, True]
    assert count == 1
    for run in runs:
        near = pa.ipc.open_file(str(run.placed[0].folder / "00000.arrow")).read_all()
        assert near.column("reason").to_pylist() == [None, "near.duplicate_of_earlier", None]
        assert [row["keep"] for row in verdicts_of(run)] == [False, None, True]


def test_the_identity_is_that_of_what_stands_at_the_end(tmp_path: Path) -> None:
    """A later step that decides anew changes it, and back; the step before near is found by the cards alone."""
    texts = [[text(1), " ".join(text(5).split()[:12])]]
    others = near_run(tmp_path, "others", [[text(9)]])
    first = near_run(tmp_path, "first", texts, against=[others.run.folder], then=LENGTH)
    folder = first.run.folder
    before = identity([str(folder)])
    strict = first.run.config_path.read_text(encoding="utf-8")

    loose = begun(tmp_path, "first", texts, against=[others.run.folder], then=[{"length": {"min_units": 5}}])
    with pytest.raises(ConfigError, match="first is not finished: its step length is not done"):
        identity([str(folder)])
    finish(loose)
    after = identity([str(folder)])
    kept = [part.kept.tolist() for part in earlier_parts([str(folder)], SIGNING) if part.kept is not None]
    others.run.folder.rename(tmp_path / "elsewhere")

    assert after != before
    assert identity([str(folder)]) == after
    assert kept == [[True, True]]
    loose.run.config_path.write_text(strict, encoding="utf-8")
    assert identity([str(folder)]) == before


def edit(path: Path, old: str, new: str) -> None:
    data = path.read_bytes()
    assert data.count(old.encode()) == 1
    path.unlink()  # it may be mapped
    path.write_bytes(data.replace(old.encode(), new.encode()))


def test_an_edited_old_text_is_noticed_where_it_counts(first: Pipeline, tmp_path: Path) -> None:
    """A word of a candidate is changed, all lengths as before: the new run stops and names the shard. Elsewhere: nothing."""
    shard = first.run.shard_path("00003")
    edit(shard, text(4), text(4).replace(text(4).split()[7], "x" * len(text(4).split()[7]), 1))

    assert verdicts_of(near_run(tmp_path, "second", [[near_copy(2)]], against=[first.run.folder]))[0]["keep"] is False
    with pytest.raises(ConfigError, match=r"earlier run .*first cannot be used: .*00003.arrow does not hold the texts"):
        near_run(tmp_path, "third", [[near_copy(4)]], against=[first.run.folder])


def cut_shard(run: Pipeline) -> None:
    path = run.run.shard_path("00001")
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-8])


def flip_signatures(run: Pipeline) -> None:
    path = run.placed[0].folder / "sign" / "00001.arrow"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    path.write_bytes(data)


def flip_verdicts(run: Pipeline) -> None:
    path = run.placed[0].folder / "00001.arrow"
    data = bytearray(path.read_bytes())
    data[-300] ^= 1
    path.unlink()
    path.write_bytes(data)


def lose_signatures(run: Pipeline) -> None:
    folder = run.placed[0].folder / "sign"
    folder.rename(folder.with_name("gone"))


def cut_signatures(run: Pipeline) -> None:
    path = run.placed[0].folder / "sign" / "00001.arrow"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-8])


def lose_marker(run: Pipeline) -> None:
    (run.placed[0].folder / "sign" / "_items" / "00001.json").unlink()


def other_format(run: Pipeline) -> None:
    write_json(run.run.folder / "run.json", {**read_json(run.run.folder / "run.json"), "format": 99})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_shard, "00001.arrow is missing, or was changed"),
        (lambda run: run.run.shard_path("00001").unlink(), "00001.arrow is missing, or was changed"),
        (
            flip_signatures,
            r"sign/00001.arrow is missing, or is not the file that was written. Delete .*01-near-.*00001.arrow and",
        ),
        (flip_verdicts, "00001.arrow is not the file that was written"),
        (lose_signatures, "sign/00000.arrow is missing or cut. Run the command of the earlier run"),
        (cut_signatures, "sign/00001.arrow is missing or cut. Run the command of the earlier run"),
        (lose_marker, "sign/_items/00001.json is missing or cut"),
        (other_format, "written in run format 99"),
    ],
)
def test_a_damaged_run_is_refused(first: Pipeline, damage: Callable[[Pipeline], None], message: str) -> None:
    """As a mistake of the config, since trying again would not help; the earlier run is named, and the file."""
    damage(first)

    with pytest.raises(ConfigError, match=message) as caught:
        for part in earlier_parts([str(first.run.folder)], SIGNING):
            assert part.kept is not None
    assert str(first.run.folder) in str(caught.value)


def no_near(root: Path) -> str:
    run = begun(root, "plain", [["one"]]).run
    run.config_path.write_text("steps: [exact, length]\n", encoding="utf-8")
    return str(run.folder)


def not_ingested(root: Path) -> str:
    run = begun(root, "new", [["one"]]).run
    (run.shards / "_done.json").unlink()
    return str(run.folder)


def some_file(root: Path) -> str:
    (root / "notes.txt").write_text("nothing of ours", encoding="utf-8")
    return str(root / "notes.txt")


WRONG: list[tuple[str, Callable[[Path], str], str]] = [
    (
        "no such file",
        lambda root: str(root / "firts.index"),
        r"nothing at .*firts.index \(did you mean 'first.index'\?\)",
    ),
    ("no such run", lambda root: str(root / "runs" / "frist"), r"nothing at .*\(did you mean 'first'\?\)"),
    ("no such folder", lambda root: str(root / "no" / "such"), r"the folder .*no does not exist"),
    ("the root", str, r"is a folder, but of no run: it has no run.json; runs below it: runs/first"),
    ("another file", some_file, "no signature index, or it was cut"),
    ("no near", no_near, r"has no step near \(it has exact, length\).*Export an index"),
    (
        "begun",
        lambda root: str(begun(root, "new", [["one"]]).run.folder),
        "new is not finished: its step near is not done",
    ),
    ("not ingested", not_ingested, "new is not finished"),
]


@pytest.mark.parametrize(("make", "message"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
def test_what_cannot_be_meant_is_refused(
    index: Path, tmp_path: Path, make: Callable[[Path], str], message: str
) -> None:
    """Before any work is done, with what was expected, what was found and what to do."""
    with pytest.raises(ConfigError, match=message):
        identity([make(tmp_path)])


def test_what_was_signed_in_another_way_is_refused(first: Pipeline, index: Path) -> None:
    """Which setting it is; and that an index would serve where only the bands are others."""
    run = str(first.run.folder)
    cases = [
        (run, Signing(5, 256, *choose_bands(0.9, 256)), r"\(threshold 0.8, num_perm 256, recall 0.999999\).*or export"),
        (
            run,
            replace(SIGNING, num_perm=300),
            "signed with 51 bands of 5 out of 256 .*this run needs 51 bands of 5 out of 300",
        ),
        (run, replace(SIGNING, shingle=3), "has other shingles: near.shingle is 5 there and 3 in this run"),
        (run, replace(SIGNING, unicode="99.0.0"), "signed with Unicode .*, this program has 99.0.0"),
        (str(index), replace(SIGNING, shingle=3), "index .* has other shingles: near.shingle is 5 there and 3"),
        (
            str(index),
            replace(SIGNING, by_character=("Han",)),
            r"near.by_character is \[.*\] there and \['Han'\] in this run",
        ),
        (str(index), replace(SIGNING, unicode="99.0.0"), "index .* was signed with Unicode"),
        (str(index), replace(SIGNING, version=9), "index .* was signed with the signatures' version 1.* has 9"),
    ]
    for path, signing, message in cases:
        with pytest.raises(ConfigError, match=message):
            earlier_parts([path], signing)


def test_a_run_against_itself_is_refused(first: Pipeline, tmp_path: Path) -> None:
    """Directly, or by way of another run."""
    folder = first.run.folder
    for against, message in (
        ([folder], "is named in its own near.against"),
        ([near_run(tmp_path, "second", [["one"]], against=[folder]).run.folder], "is named in near.against of .*first"),
    ):
        again = begun(tmp_path, "first", TEXTS, against=against)
        with pytest.raises(ConfigError, match=message):
            again.passes("dedup")


def test_the_same_documents_twice_are_refused(first: Pipeline, index: Path, tmp_path: Path) -> None:
    """By two names of one folder, as a run and its own index, as two indexes, as a copy: they would be looked through twice."""
    folder = first.run.folder
    shutil.copytree(folder, tmp_path / "copy")
    export_signatures(first, tmp_path / "other.index", 32)
    (tmp_path / "link").symlink_to(folder)
    os.link(index, tmp_path / "hard.index")
    for paths, message in (
        ([folder, f"{folder}/../{folder.name}"], r"names .* twice, as .*first and .*first/\.\./first"),
        ([folder, tmp_path / "link"], "twice, as .*first and .*link"),
        ([folder, index], "same documents twice: .*first and .*first.index both hold what the run first kept"),
        ([tmp_path / "other.index", index], "same documents twice: .*other.index and .*first.index"),
        ([index, tmp_path / "hard.index"], "same documents twice"),
        ([folder, tmp_path / "copy"], "same documents twice: .*first and .*copy"),
    ):
        with pytest.raises(ConfigError, match=message):
            identity([str(path) for path in paths])


@pytest.mark.parametrize("shards", [[], [[]], [["", "?!"], []]])
def test_an_earlier_run_without_documents_changes_nothing(shards: list[list[str]], tmp_path: Path) -> None:
    """Nor does its index; two such runs are two."""
    empty = [near_run(tmp_path, name, shards) for name in ("e1", "e2")]
    assert export_signatures(empty[0], tmp_path / "e1.index") == 0
    alone = near_run(tmp_path, "alone", TEXTS)

    for name, against in (
        ("runs", [run.run.folder for run in empty]),
        ("index", [tmp_path / "e1.index", empty[1].run.folder]),
    ):
        assert verdicts_of(near_run(tmp_path, name, TEXTS, against=against)) == verdicts_of(alone)


def test_a_cluster_larger_than_memory_with_many_earlier_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier documents of one cluster fill several blocks: the verdicts are those of the definition, and of enough memory."""
    page = random.Random(3).choices(WORDS, k=200)

    def version(i: int, extra: int = 0) -> str:
        """Of one page with 3 words changed that no other version has: Jaccard about 0.73 with each of them."""
        return " ".join(
            [
                f"v{i}" if j in (5 * i + 2, 5 * i + 65, 5 * i + 130) else word
                for j, word in enumerate(page[: 200 - extra])
            ]
        )

    earlier = [[version(i) for i in range(8)], [version(i) for i in range(8, 12)]]
    new = [[version(i, extra=1) for i in range(0, 12, 2)], [version(12), version(12, extra=2), version(3)]]
    first = near_run(tmp_path, "first", earlier, threshold=0.8)
    assert len(kept_of(first)) == 12
    export_signatures(first, tmp_path / "first.index")
    large = near_run(tmp_path, "large", new, against=[first.run.folder])

    blocks: list[int] = []

    def watched(read: Any, sizes: Any, n_fixed: int, *rest: Any) -> Any:
        blocks.append(int(sizes[:n_fixed].sum()) // (rest[1] // 2))
        return choose_in_blocks(read, sizes, n_fixed, *rest)

    monkeypatch.setattr(verify, "choose_in_blocks", watched)
    monkeypatch.setattr(near, "_BYTES_PER_VALUE", 2**20)
    small = [
        near_run(tmp_path, f"small{i}", new, against=[path])
        for i, path in enumerate((first.run.folder, tmp_path / "first.index"))
    ]

    assert len(blocks) == 2
    assert min(blocks) >= 3
    assert dropped_by(large) == by_definition(documents_of(large), kept_of(first))
    for run in small:
        assert verdicts_of(run) == verdicts_of(large)
        assert len(dropped_by(run)) == 8


def versions() -> list[str]:
    """Two of one page that are no copies of one another, and the page, a longer one that is a near copy of both."""
    page = random.Random(7).choices(WORDS, k=200)
    earlier = [
        " ".join("x" if i in spots else word for i, word in enumerate(page)) for spots in ((20, 60, 100), (40, 80, 140))
    ]
    return [*earlier, " ".join([*page, "and", "more"])]


@pytest.mark.parametrize("where", [0, 1])
def test_the_partner_is_the_first_by_text_in_whichever_shard_it_lies(where: int, tmp_path: Path) -> None:
    """A new copy, though longer than both earlier documents that it is near to, goes, and names the one with the smaller text_id."""
    one, other, longer = versions()
    smaller, larger = sorted((one, other), key=text_id)
    earlier = [[larger], [larger]]
    earlier[where] = [smaller]
    first = near_run(tmp_path, "first", earlier)
    new = near_run(tmp_path, "second", [[text(1), longer]], against=[first.run.folder])

    assert len(kept_of(first)) == 2
    assert dropped_by(new) == by_definition(documents_of(new), kept_of(first))
    assert dropped_by(new) == {1: (id_of(first, smaller), True)}


@pytest.mark.parametrize("keep", [["longest"], ["first"]])
def test_earlier_documents_come_before_every_new_one(keep: list[str], tmp_path: Path) -> None:
    """Even before the very first of a run that keeps its first, is the longer one, and has the smaller text_id."""
    old = text(1)
    longer = next(one for n in range(99) if text_id(one := f"{old} {WORDS[n]}") < text_id(old))
    first = near_run(tmp_path, "first", [[old]])
    new = near_run(tmp_path, "second", [[longer, text(2)]], against=[first.run.folder], keep=keep)

    assert dropped_by(new) == {0: (id_of(first, old), True)}


def id_of(run: Pipeline, text: str) -> bytes:
    return next(one.doc_id for one in documents_of(run) if one.text == text)

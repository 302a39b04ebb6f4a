"""The signature index: it stands alone, holds exactly what was kept, and no byte of it can change unnoticed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import datasketch
import numpy as np
import pyarrow as pa
import pytest

from curation.cli import main
from curation.config import parse_config
from curation.dedup.exact import Exact, ExactConfig
from curation.dedup.index_file import PERMUTATIONS, Index, export_signatures, open_index
from curation.dedup.minhash import signatures
from curation.dedup.near import NearConfig
from curation.dedup.sets import distinct
from curation.dedup.shingles import shingles
from curation.dedup.simhash import fingerprints
from curation.errors import ConfigError, RunError
from curation.pipeline import Pipeline
from tests.fakes import make_run, run_steps

WORDS = [f"word{n}" for n in range(200)]
EXACT = parse_config("steps: [exact]\n")


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """These files need not survive a power cut."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def texts_of(n: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 60))) for _ in range(n)]


def exported(root: Path, shards: list[list[str]], num_perm: int | None = None) -> tuple[Path, int]:
    """The index of a run that has kept all texts but exact copies."""
    run = make_run(root, shards)
    run_steps(run, [Exact(ExactConfig())])
    path = root / "kept.index"
    return path, export_signatures(Pipeline(run, EXACT), path, num_perm)


def rows_of(path: Path) -> list[dict[str, object]]:
    """Every row, read with nothing but Arrow."""
    rows: list[dict[str, object]] = pa.ipc.open_file(str(path)).read_all().to_pylist()
    return rows


def test_it_holds_what_was_kept(tmp_path: Path) -> None:
    """One row a kept document with a shingle, in run order, with the very values that the step signs with."""
    texts = [*texts_of(40), "", " \n", "漢字だけの文章です" * 3, "tiny"]
    path, count = exported(tmp_path, [texts[:25], [], texts[25:], texts[:5]], num_perm=64)

    rows = rows_of(path)

    kept = [text for text in texts if text.strip()]
    assert count == len(rows) == len(kept)
    found = shingles(pa.array(kept, pa.large_string()))
    sets = distinct(found)
    assert [row["n_shingles"] for row in rows] == np.diff(found.offsets).tolist()
    assert [row["simhash"] for row in rows] == fingerprints(found).tolist()
    assert [row["signature"] for row in rows] == signatures(found, 64).tolist()
    expected = [sets.values[a:b].tolist() for a, b in zip(sets.offsets, sets.offsets[1:], strict=False)]
    assert [row["shingles"] for row in rows] == expected
    assert [row["id"] for row in rows] == [f"d{n}" for n, text in enumerate(texts) if text.strip()]


def test_a_row_is_a_minhash_of_datasketch(tmp_path: Path) -> None:
    """As the how-to says: a row becomes a MinHash, equal to one made of the shingles, and its estimate fits the sets."""
    base = " ".join(random.Random(2).choices(WORDS, k=300))
    path, _ = exported(tmp_path, [[base, base.replace("word7 ", "other "), *texts_of(3)]], num_perm=256)
    rows = rows_of(path)

    hashes = [
        datasketch.MinHash(num_perm=256, seed=1, scheme="affine32", hashvalues=np.array(row["signature"], np.uint32))
        for row in rows
    ]

    for row, one in zip(rows, hashes, strict=True):
        anew = datasketch.MinHash(num_perm=256, seed=1, scheme="affine32", hashfunc=lambda value: value)
        for value in row["shingles"]:  # type: ignore[attr-defined]
            anew.update(value & 0xFFFFFFFF)
        assert one == anew
    sets = [set(row["shingles"]) for row in rows]  # type: ignore[call-overload]
    for a, b in ((0, 1), (0, 2), (3, 4)):
        truth = len(sets[a] & sets[b]) / len(sets[a] | sets[b])
        assert abs(hashes[a].jaccard(hashes[b]) - truth) < 0.12


def test_the_bytes_are_a_function_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the same file; cut into other batches, the same rows."""
    one, _ = exported(tmp_path / "1", [texts_of(60)])
    two, _ = exported(tmp_path / "2", [texts_of(60)])
    assert one.read_bytes() == two.read_bytes()

    monkeypatch.setattr("curation.dedup.sign._PIECE_BYTES", 1000)
    many, _ = exported(tmp_path / "3", [texts_of(60)])
    assert len(open_index(many).rows) > 5
    assert rows_of(many) == rows_of(one)


def test_an_empty_index_is_one(tmp_path: Path) -> None:
    """A run that keeps nothing with a shingle leaves an index without documents."""
    path, count = exported(tmp_path, [["", "!?"], []])

    assert count == 0
    assert open_index(path).rows == []


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An index of a few documents in three batches."""
    texts = [text[:150] for text in texts_of(6)]
    return exported(tmp_path, [texts[:2], texts[2:4], texts[4:]], num_perm=16)[0]


def content(index: Index) -> Iterator[object]:
    """Everything that a run reads of it."""
    for number, rows in enumerate(index.rows):
        yield index.documents(number).to_pylist()
        sets = index.sets(number, np.arange(rows))
        yield sets.values.tolist(), sets.offsets.tolist()


def test_every_changed_byte_is_noticed_or_means_nothing(small: Path, tmp_path: Path) -> None:
    """Whichever byte is changed: it is refused by name, or all that is read is as it was, or the identity is another."""
    good = small.read_bytes()
    whole = open_index(small)
    expected = list(content(whole))
    path = tmp_path / "changed.index"
    refused: list[str] = []
    for place in range(0, len(good), 13):
        path.unlink(missing_ok=True)  # the file before may still be mapped
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x41]) + good[place + 1 :])
        try:
            index = open_index(path)
            found = list(content(index))
        except ConfigError as error:
            refused.append(str(error))
        else:
            assert index.digest != whole.digest or found == expected, f"byte {place} was changed unnoticed"
    assert len(refused) > len(good) / 13 / 2
    assert all(str(path) in message for message in refused)


def test_a_changed_document_is_noticed_when_it_is_read(small: Path) -> None:
    """The identity does not look at the content; reading does, and names the batch."""
    data = small.read_bytes()
    shingle = np.array(rows_of(small)[0]["shingles"], np.uint64).tobytes()
    place = data.index(shingle)
    small.unlink()
    small.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])

    index = open_index(small)

    index.documents(0)
    with pytest.raises(ConfigError, match="damaged: the content of batch 0 is not what was written"):
        index.sets(0, np.arange(1))


def test_an_index_that_is_replaced_is_not_mixed_with_the_new_one(small: Path, tmp_path: Path) -> None:
    """What was opened is what is read: another file at its place is refused, be it as good."""
    index = open_index(small)
    index.documents(0)
    other, _ = exported(tmp_path / "other", [texts_of(6, seed=2)], num_perm=16)
    other.replace(small)

    with pytest.raises(ConfigError, match="was replaced while it was read"):
        index.documents(0)
    assert open_index(small).digest != index.digest


@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_a_cut_index_is_refused(small: Path, share: float) -> None:
    """Half a copy of a file is named as what it is."""
    data = small.read_bytes()
    small.unlink()
    small.write_bytes(data[: int(len(data) * share)])

    with pytest.raises(ConfigError, match=r"no signature index, or it was cut.*Write it anew"):
        open_index(small)


def rewritten(path: Path, drop: int | None = None, **changes: str) -> None:
    """Write an index again with other metadata, or without one of its batches."""
    reader = pa.ipc.open_file(pa.BufferReader(path.read_bytes()))
    metadata = {**{k.decode(): v.decode() for k, v in reader.schema.metadata.items()}, **changes}
    schema = reader.schema.with_metadata(metadata)
    path.unlink()
    with pa.ipc.new_file(str(path), schema) as writer:
        for number in range(reader.num_record_batches):
            batch, custom = reader.get_batch_with_custom_metadata(number)
            if number != drop:
                writer.write_batch(batch.replace_schema_metadata(metadata), custom_metadata=custom)


@pytest.mark.parametrize(
    ("drop", "changes", "message"),
    [
        (None, {"format": "something"}, "an Arrow file, but no signature index"),
        (None, {"format_version": "2"}, "of format 2; this version reads 1"),
        (None, {"run_id": "another"}, "its batches are not those that its seal names"),
        (None, {"signing": "{}"}, "its batches are not those that its seal names"),
        (1, {}, "its batches are not those that its seal names"),
        (3, {}, "its batches are not those that its seal names"),
    ],
)
def test_what_is_no_index_is_refused(small: Path, drop: int | None, changes: dict[str, str], message: str) -> None:
    """Foreign Arrow files, other formats, changed metadata, lost batches and lost seals are told apart and named."""
    assert open_index(small).rows == [2, 2, 2]
    rewritten(small, drop, **changes)

    with pytest.raises(ConfigError, match=message):
        open_index(small)


def test_a_rewritten_file_with_the_same_batches_is_the_same_index(small: Path) -> None:
    """The seal speaks about the content, not about bytes between: the check above fails for no other reason."""
    digest = open_index(small).digest
    rewritten(small)

    assert open_index(small).digest == digest


def test_export_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    """A run that is not done, and permutations that `near.num_perm` could not be: nothing is written."""
    run = make_run(tmp_path, [texts_of(3)])
    pipeline = Pipeline(run, EXACT)
    with pytest.raises(RunError, match="is not done: exact"):
        export_signatures(pipeline, tmp_path / "x")
    run_steps(run, [Exact(ExactConfig())])
    limits = NearConfig.model_json_schema()["properties"]["num_perm"]
    assert (limits["minimum"], limits["maximum"]) == PERMUTATIONS == (16, 1024)
    for wrong in (5, 15, 1025):
        with pytest.raises(ConfigError, match=f"--num-perm {wrong}: expected 16 to 1024"):
            export_signatures(pipeline, tmp_path / "x", wrong)
    assert not (tmp_path / "x").exists()


def test_the_command_line_writes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`export --signatures` instead of `--output`; one of them is needed (or `--route` alone), not both."""
    source = tmp_path / "in.jsonl"
    source.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts_of(5)), encoding="utf-8")
    config = tmp_path / "c.yaml"
    config.write_text("steps: [exact]\n", encoding="utf-8")
    arguments = ["run", str(config), "--input", str(source), "--root", str(tmp_path / "r"), "--workers", "1", "--quiet"]
    assert main(arguments) == 0
    folder = capsys.readouterr().out.splitlines()[-1]

    assert main(["export", folder, "--signatures", str(tmp_path / "kept.index"), "--num-perm", "16"]) == 0

    assert len(rows_of(tmp_path / "kept.index")) == 5
    assert open_index(tmp_path / "kept.index").signing.num_perm == 16
    assert main(["export", folder, "--output", str(tmp_path / "x.jsonl"), "--num-perm", "16"]) == 2
    capsys.readouterr()
    assert main(["export", folder]) == 2
    assert "--output FILE or --signatures FILE" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["export", folder, "--output", "a.jsonl", "--signatures", "b"])

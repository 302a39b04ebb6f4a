"""`corpusmill mask`: exactly the sequences that hold what was blacklisted, by every way it can be found, and what that costs."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from curation.blacklist import append
from curation.blacklist.signature import sign_texts, signing_text
from curation.errors import ConfigError, CorpusmillError, RunError
from curation.ids import text_id
from curation.mask_command import add_mask
from curation.pack import PackConfig, assemble, encode_shard
from curation.run import Run, file_sha256, read_json, write_json
from tests.blacklists import FACTS, addresses, texts
from tests.fakes import make_run, shard_table
from tests.token_files import save_tokenizer, small_bpe
from tokenization.mask import Mask
from tokenization.reader import TokenFile

TEXTS = [f"The {n}th text speaks of {n * 7} things, and of nothing else. " + "word " * (n * 5 % 90) for n in range(40)]
LONG = "".join(f"The {n}th sentence tells what the one before it did not yet tell. " for n in range(60))
NEAR = LONG.replace("The 30th sentence", "A 30th sentence")
ALL = [*TEXTS, LONG, "", "last"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose shards and packed files are there: two lengths, some held out, some packed twice."""
    run = make_run(tmp_path_factory.mktemp("root"), [ALL], run_id="run")
    path = run.shard_path("00000")
    table = shard_table(ALL)
    urls = pa.array([f"https://{'bad' if n % 10 == 3 else 'good'}.example/{n}" for n in range(len(ALL))])
    table = table.set_column(
        table.schema.get_field_index("url"), table.schema.field("url"), urls.cast(table.schema.field("url").type)
    )
    path.unlink()
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=16)
    told = read_json(run.shards / "_done.json")
    told["shards"][0]["sha256"] = file_sha256(path)
    write_json(run.shards / "_done.json", told)
    keep = np.array([bool(text) for text in ALL])
    mix = {"by": "source", "epochs": {"*": 1.5}}
    small = save_tokenizer(tmp_path_factory.mktemp("tokenizer"), Tokenizer.from_str(small_bpe()), None)
    named = {"tokenizer": str(small), "eos": "<|endoftext|>", "engine": "stock"}
    config = PackConfig.model_validate(
        {**named, "seq_len": [64, 256], "holdout_share": 0.2, "shuffle_seed": 5, "mix": mix}
    )
    encode_shard(path, keep, run.work / "part.arrow", config)
    assemble([run.work / "part.arrow"], pack_folder=run.pack, config=config, run_id="run", config_digest="0")
    return run.folder


def blacklist(folder: Path, *numbers: int, **more: Sequence[str]) -> Path:
    """A list that holds some of the texts, and addresses."""
    path = folder / "blacklist"
    entries = texts(range(len(numbers)), reason="test.noise")
    keys = pa.array([text_id(ALL[n]) for n in numbers], pa.binary(16))
    if numbers:
        append(path, entries.set_column(1, "key", keys), FACTS)
    for kind, words in more.items():
        append(path, addresses(kind, words, reason=f"test.{kind}"), FACTS)
    return path


def mask(file: Path, out: Path, *arguments: str) -> int:
    """The command, as the command line calls it."""
    parser = argparse.ArgumentParser()
    add_mask(parser.add_subparsers())
    parsed = parser.parse_args(["mask", str(file), "-o", str(out), *arguments])
    code: int = parsed.function(parsed)
    return code


def expected(path: Path, gone: set[int]) -> tuple[list[int], int, int]:
    """Sequences that hold texts of these numbers, tokens of these, tokens of others there: read one by one."""
    table = pq.read_table(path.with_name("documents.parquet"))
    rows = {i for i, name in enumerate(table.column("id").to_pylist()) if int(name[1:]) in gone}
    file, found, bad, good = TokenFile(path), [], 0, 0
    for number in range(len(file)):
        pieces = file.documents(number)
        hit = np.isin(pieces.rows, list(rows))
        if hit.any():
            found.append(number)
            bad, good = bad + int(pieces.lengths[hit].sum()), good + int(pieces.lengths[~hit].sum())
    return found, bad, good


@pytest.mark.parametrize("place", ["", "256", "holdout", "256/holdout"])
def test_exactly_the_sequences_of_blacklisted_documents(
    place: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every file of a run, cut documents and copies included; counted by way and reason."""
    path, out = made / "pack" / place / "tokens.arrow", tmp_path / "m.arrow"
    assert mask(path, out, "--blacklist", str(blacklist(tmp_path, 4, 17, 40, domain=["bad.example"]))) == 0
    gone = {4, 17, 40, *range(3, len(ALL), 10)}
    found, rows = Mask.read(out), expected(path, gone)
    assert (found.rows.tolist(), found.facts["tokens"], found.facts["other_tokens"]) == rows
    assert (found.columns["blacklisted_tokens"].sum(), found.columns["other_tokens"].sum()) == rows[1:]
    assert found.facts["looked_at"] == {"text": True, "url": True, "near": False}
    assert {(one["found_by"], one["reason"]) for one in found.facts["reasons"]} <= {
        ("text", "test.noise"),
        ("domain", "test.domain"),
    }
    ids = set(pq.read_table(path.with_name("documents.parquet")).column("id").to_pylist())
    assert found.facts["documents"] == len({f"d{n}" for n in gone} & ids)
    said = capsys.readouterr().out
    assert f"masked: {len(found):,} sequences" in said
    assert "texts yes; URLs and domains yes; near copies no" in said


def test_near_copies(made: Path, tmp_path: Path) -> None:
    """A changed copy of what was packed, found by its signature; without --near it is not."""
    entries = texts([0], reason="test.near", signature=sign_texts([NEAR]).to_pylist())
    append(tmp_path / "blacklist", entries.replace_schema_metadata({b"signing": signing_text()}), FACTS)
    listed = ("--blacklist", str(tmp_path / "blacklist"))
    mask(made, tmp_path / "m.arrow", *listed)
    assert len(Mask.read(tmp_path / "m.arrow")) == 0
    mask(made, tmp_path / "n.arrow", *listed, "--near")
    found = Mask.read(tmp_path / "n.arrow")
    assert found.rows.tolist() == expected(made / "pack/tokens.arrow", {40})[0]
    assert [(one["found_by"], one["documents"]) for one in found.facts["reasons"]] == [("near", 1)]


def test_without_the_run(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: Any) -> None:
    """A file that was taken elsewhere: texts are found, and it is said that URLs are not; --near is refused, --run mends it."""
    shutil.copytree(made / "pack", tmp_path / "pack")
    listed = ("--blacklist", str(blacklist(tmp_path, 4, url=["https://good.example/5"])))
    path, out = tmp_path / "pack/tokens.arrow", tmp_path / "m.arrow"
    mask(path, out, *listed)
    assert Mask.read(out).rows.tolist() == expected(path, {4})[0]
    assert "URLs and domains no, the run's shards are not there" in capsys.readouterr().out
    assert "not looked for: the run run does not lie above the file" in caplog.text
    with pytest.raises(ConfigError, match="--near needs the run's shards"):
        mask(path, out, *listed, "--near")
    mask(path, out, *listed, "--run", str(made))
    assert Mask.read(out).rows.tolist() == expected(path, {4, 5})[0]
    with pytest.raises(RunError, match="no folder of a run"):
        mask(path, out, *listed, "--run", str(tmp_path))


def test_beside_an_older_mask(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is new, what is no more masked; the version of the list is in the mask."""
    listed = blacklist(tmp_path, 4)
    mask(made, tmp_path / "1.arrow", "--blacklist", str(listed))
    blacklist(tmp_path, 17)
    mask(made, tmp_path / "2.arrow", "--blacklist", str(listed), "--compare", str(tmp_path / "1.arrow"))
    one, two = Mask.read(tmp_path / "1.arrow"), Mask.read(tmp_path / "2.arrow")
    new = len(set(two.rows.tolist()) - set(one.rows.tolist()))
    assert f"{new} sequences are new, 0 are no more masked" in capsys.readouterr().out
    assert [one.facts["blacklist"]["version"], two.facts["blacklist"]["version"]] == [1, 2]
    mask(made, tmp_path / "3.arrow", "--blacklist", str(listed), "--version", "1")
    assert Mask.read(tmp_path / "3.arrow").digest == one.digest
    with pytest.raises(ConfigError, match="mask of another token file"):
        mask(
            made / "pack/256", tmp_path / "4.arrow", "--blacklist", str(listed), "--compare", str(tmp_path / "1.arrow")
        )


def test_what_is_refused(made: Path, tmp_path: Path) -> None:
    """No list, no file, a table that is missing or of another file; nothing is written then."""
    out, listed = tmp_path / "m.arrow", ("--blacklist", str(blacklist(tmp_path, 4)))
    copy = tmp_path / "pack"
    shutil.copytree(made / "pack/256", copy)
    cases: list[tuple[type[CorpusmillError], str, tuple[Path, Path, str, ...]]] = [
        (ConfigError, "no token file at", (tmp_path / "none", out, *listed)),
        (ConfigError, "there is no folder", (copy, out, "--blacklist", str(tmp_path / "none"))),
        (ConfigError, "no version 7", (copy, out, *listed, "--version", "7")),
        (ConfigError, "--threshold", (copy, out, *listed, "--threshold", "2")),
        (ConfigError, "is the token file itself", (copy, copy / "tokens.arrow", *listed)),
        (ConfigError, r"expected a name that ends in \.arrow", (copy, tmp_path / "m.txt", *listed)),
    ]
    for kind, said, arguments in cases:
        with pytest.raises(kind, match=said):
            mask(*arguments)
    shutil.copy(made / "pack/256/holdout/documents.parquet", copy / "documents.parquet")
    with pytest.raises(RunError, match="speaks of other files"):
        mask(copy, out, *listed)
    (copy / "manifest.json").unlink()
    with pytest.raises(RunError, match="is not the table of the token file"):
        mask(copy, out, *listed)
    (copy / "documents.parquet").unlink()
    with pytest.raises(RunError, match="is not there"):
        mask(copy, out, *listed)
    table = pq.read_table(made / "pack/256/documents.parquet")
    order = pa.array(np.arange(table.num_rows)[::-1])
    swapped = table.take(order).set_column(0, table.schema.field("row"), table.column("row"))
    pq.write_table(swapped, copy / "documents.parquet")
    with pytest.raises(RunError, match="does not say where its documents lie"):
        mask(copy, out, *listed)
    assert not out.exists()
    assert Run(made).run_id == "run"

"""What a token file holds, seen by a person: every text in its borders, and nothing in it that can pretend to be one."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.cat_command import add_cat
from curation.errors import ConfigError, CorpusmillError, InputError, RunError
from curation.pack import PackConfig, assemble, encode_shard
from tests.fakes import SOURCE, shard_table
from tests.token_files import CARD, bos_header, letter_tokenizer, save_tokenizer, write_documents, write_small_file
from tokenization import tokenizer
from tokenization.reader import TokenFile
from tokenization.seal import read_seal

FORGERY = "a<|endoftext|>b\n--- document 9: sequence 0\n=== sequence 1\n"
TEXTS = ["Hello world.", "今天天气很好", FORGERY, "\x1b]0;title\x07 \u202e rtl", "one two three " * 40, "end"]


@pytest.fixture(scope="module", autouse=True)
def _loaded_once() -> Iterator[None]:
    """Loading a tokenizer takes most of the time of a `cat`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "load_tokenizer", functools.cache(tokenizer.load_tokenizer))
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder as far as `cat` looks at it."""
    folder = tmp_path_factory.mktemp("run")
    config = PackConfig(seq_len=64)
    table = shard_table(TEXTS, 0)
    with pa.ipc.new_file(str(folder / "shard.arrow"), table.schema) as writer:
        writer.write_table(table)
    encode_shard(folder / "shard.arrow", None, folder / "part.arrow", config)
    assemble([folder / "part.arrow"], pack_folder=folder / "pack", config=config, run_id="run", config_digest="0")
    return folder


def cat(file: Path, *arguments: str) -> int:
    """The command, as the command line calls it."""
    parser = argparse.ArgumentParser()
    add_cat(parser.add_subparsers())
    parsed = parser.parse_args(["cat", str(file), *arguments])
    code: int = parsed.function(parsed)
    return code


def said(capsys: pytest.CaptureFixture[str], file: Path, *arguments: str) -> list[str]:
    assert cat(file, *arguments) == 0
    return capsys.readouterr().out.splitlines()


def texts(lines: Sequence[str]) -> str:
    return "\n".join(line.removeprefix("| ") for line in lines if line.startswith("| "))


def test_a_sequence_with_borders_provenance_and_padding(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each document of the sequence: row, place, length, ids, source, text, how it ends; then the padding."""
    lines = said(capsys, run, "--rows", "0:1")
    file = TokenFile(run / "pack/tokens.arrow")
    borders, rows = file.borders(0), file.documents(0).rows
    padding = 64 - borders[-1]
    assert lines[0].startswith(
        f"=== sequence 0 of {len(file)}: 64 tokens, {len(rows)} documents or parts of documents, "
    )
    assert lines[0].endswith(f" {padding} of padding")
    heads = [line for line in lines if line.startswith("---") and "padding" not in line]
    assert [int(head.split()[2].rstrip(":")) for head in heads] == rows.tolist()
    assert heads[0] == f"--- document 0: sequence 0, places 0 to {borders[1] - 1}, {borders[1]} tokens"
    table = pq.read_table(run / "pack/documents.parquet")
    doc_id = table.column("doc_id")[0].as_py().hex()
    assert lines[2] == f"    id d0, doc_id {doc_id}, source {SOURCE}, {borders[1]} tokens in all"
    assert lines[3:5] == ["| Hello world.", "    ends with <|endoftext|> (id 0)"]


def test_every_text_is_there_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All sequences together show every document whole, with its lines, whatever was cut."""
    for row, text in enumerate(TEXTS):
        lines = said(capsys, run, "--document", str(row))
        if row not in (3, 4):
            assert texts(lines) == text
    pieces = [texts([line]) for line in said(capsys, run, "--document", "4") if line.startswith("| ")]
    assert len(pieces) == 2
    assert "".join(pieces) == TEXTS[4]
    assert said(capsys, run, "--document", "4")[3] == "    goes on in another sequence"


def test_padding_is_shown(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Somewhere the sequences are not full."""
    lines = said(capsys, run, "--rows", ":")
    sizes = [int(line.rsplit(", ", 1)[1].split()[0]) for line in lines if line.startswith("===")]
    shown = [line for line in lines if line.startswith("--- padding")]
    assert shown == [f"--- padding: {n} times <|pad|> (id 1)" for n in sizes if n]
    assert shown


def test_no_document_can_forge_a_border_or_command_the_terminal(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text stands behind a bar, its lines too, and control characters are escaped."""
    lines = said(capsys, run, "--document", "2")
    assert lines[2:6] == ["| a<|endoftext|>b", "| --- document 9: sequence 0", "| === sequence 1", "| "]
    lines = said(capsys, run, "--document", "3")
    assert lines[2] == "| \\u001b]0;title\\u0007 \\u202e rtl"
    assert all(line.isprintable() for line in said(capsys, run, "--rows", ":", "--tokens"))


def test_each_token_by_itself(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Place, id and text; the end token too."""
    ids = TokenFile(run / "pack/tokens.arrow")[0]
    lines = [line for line in said(capsys, run, "--row", "0", "--tokens") if line.startswith("|")]
    assert [line.split()[:3] for line in lines] == [
        ["|", str(i), str(token)] for i, token in enumerate(ids[: len(lines)])
    ]
    assert lines[0].endswith("  Hello")
    assert lines[3].endswith("  <|endoftext|>")


def test_rows_are_shown_in_the_order_asked(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Single ones, from the end, and a range; the first one where nothing is asked."""

    def shown(*arguments: str) -> list[int]:
        return [int(line.split()[2]) for line in said(capsys, run, *arguments) if line.startswith("===")]

    last = len(TokenFile(run / "pack/tokens.arrow")) - 1
    assert shown("--row", "1", "--row", "-1", "--row", "0") == [1, last, 0]
    assert shown("--row", "2", "--rows", "0:2") == [2, 0, 1]
    assert shown("--rows", "1:") == [*range(1, last + 1)]
    assert shown() == [0]


@pytest.mark.parametrize("where", ["", "pack", "pack/tokens.arrow"])
def test_the_file_or_a_folder_around_it(where: str, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run's folder, its pack, the file."""
    assert said(capsys, run / where)[0].startswith("=== sequence 0")


def test_a_document_by_its_ids(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The user's id, doc_id in hex, the row."""
    by_row = said(capsys, run, "--document", "1")
    doc_id = pq.read_table(run / "pack/documents.parquet").column("doc_id")[1].as_py().hex()
    assert said(capsys, run, "--document", "d1") == by_row
    assert said(capsys, run, "--document", "id:d1") == by_row
    assert said(capsys, run, "--document", doc_id) == by_row


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["--row", "99"], InputError, r"--row 99: the file has sequences 0 to \d+"),
        (["--row", "-99"], InputError, r"--row -99"),
        (["--rows", "0:99"], InputError, r"--rows 0:99: the file has sequences 0 to"),
        (["--rows", "2:1"], InputError, r"--rows 2:1"),
        (["--rows", "0:" + "9" * 5_000], ConfigError, r"expected two numbers"),
        (["--rows", "1-2"], ConfigError, r"expected two numbers, as 10:20"),
        (["--document", "99"], InputError, r"rows 0 to 5. For an id of digits, write id:99"),
        (["--document", "9" * 5_000], InputError, r"no such id or doc_id"),
        (["--document", "none"], InputError, r"no such id or doc_id"),
        (["--document", "id:3"], InputError, r"no such id or doc_id"),
        (["--document", "f" * 32], InputError, r"no such id or doc_id"),
        (["--document", "1", "--row", "1"], ConfigError, r"not both"),
        (["--tokenizer", "/no/such/file"], ConfigError, r"--tokenizer: expected default, which made the file"),
    ],
)
def test_what_is_not_there_is_named(arguments: list[str], kind: type[CorpusmillError], message: str, run: Path) -> None:
    """A message that says what there is; the exit code of a wrong use for a wrong use."""
    with pytest.raises(kind, match=message):
        cat(run, *arguments)


def test_no_file_at_all(tmp_path: Path) -> None:
    """Wrong use, with what was expected."""
    with pytest.raises(ConfigError, match=r"expected one, or a folder that holds tokens\.arrow"):
        cat(tmp_path)


def test_another_tokenizer_is_refused(run: Path, tmp_path: Path) -> None:
    """One that loads, with the same special tokens, but gives other ids: its fingerprint is shown."""
    other = letter_tokenizer()
    other.add_special_tokens(["<|endoftext|>", "<|pad|>"])
    folder = save_tokenizer(tmp_path / "other", other, {"eos_token": "<|endoftext|>"})
    with pytest.raises(ConfigError, match="is another tokenizer than the one that made the file, default"):
        cat(run, "--tokenizer", str(folder))


def _small(folder: Path, **card: str) -> Path:
    header = bos_header(tokenizer=dataclasses.replace(CARD, bos="<b>", bos_id=2, **card))
    write_documents(folder / "documents.parquet", header)
    return write_small_file(folder / "tokens.arrow", header)


def test_without_the_tokenizer_ids_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog) -> None:
    """Ids between the borders, where a document begins and ends or goes on, and a word on what is missing."""
    path = _small(tmp_path)
    lines = said(capsys, path, "--row", "0")
    ids = TokenFile(path)[0]
    assert "the tokenizer small is not here" in caplog.text
    assert lines[3] == "    begins with <b> (id 2)"
    assert lines[4] == "| " + " ".join(map(str, ids[1:4]))
    assert lines[5] == "    ends with <e> (id 0)"
    assert lines[6].endswith("11 tokens, piece of a cut document (2 pieces)")
    assert lines[-1] == "    goes on in another sequence"


def test_the_runs_config_says_which_tokenizer(tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog) -> None:
    """Looked up above the file; where it is another one now, ids are shown with a warning."""
    (tmp_path / "pack").mkdir()
    folder = save_tokenizer(tmp_path / "letters", letter_tokenizer(), {"eos_token": "</s>"})
    (tmp_path / "config.yaml").write_text(f"pack:\n  tokenizer: {folder}\n", encoding="utf-8")
    said(capsys, _small(tmp_path / "pack"), "--row", "0")
    assert "letters" in caplog.text
    assert "So ids are shown" in caplog.text


@pytest.mark.parametrize("config", ["", "[]", "pack: 3", "pack: {tokenizer: [1]}", "{", "\xff"])
def test_a_strange_config_is_left_alone(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog
) -> None:
    """config.yaml is a common name."""
    (tmp_path / "config.yaml").write_bytes(config.encode("latin-1"))
    assert said(capsys, _small(tmp_path), "--row", "0")[0].startswith("=== sequence 0")
    assert "is not here" in caplog.text


def test_without_the_table_only_rows_are_known(tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog) -> None:
    """The file alone shows its sequences; a document cannot be looked up."""
    path = _small(tmp_path)
    path.with_name("documents.parquet").unlink()
    lines = said(capsys, path, "--row", "0")
    assert lines[1].startswith("--- document 0: sequence 0, places 0 to 4, 5 tokens")
    assert "without their ids and sources" in caplog.text
    with pytest.raises(InputError, match=r"needs documents.parquet beside the token file"):
        cat(path, "--document", "0")


def test_a_damaged_block_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of it is shown as if it were text; the other blocks are."""
    path = _small(tmp_path)
    data = bytearray(path.read_bytes())
    data[read_seal(path).bodies[1].start + 3] ^= 1
    path.write_bytes(data)
    assert said(capsys, path, "--row", "0")
    with pytest.raises(RunError, match=r"block 1.*corpusmill verify"):
        cat(path, "--row", "16")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sequence": (5, 7), "last_sequence": (5, 7)}, "document 5 does not lie in sequence 7, as it says"),
        ({"sequence": (5, 10**9), "last_sequence": (5, 10**9)}, "document 5 does not lie in sequence 1000000000"),
        ({"offset": (5, 3), "last_offset": (5, 3)}, "no document begins at 3 of sequence 3"),
        ({"pieces": (5, 10**15)}, "document 5 cannot have 1000000000000000 pieces"),
        ({"pieces": (5, 0)}, "document 5 cannot have 0 pieces"),
        ({"last_sequence": (5, -1)}, "document 5 does not lie in sequence -1"),
        ({"n_tokens": [None] * 60}, "column n_tokens is null"),
        ({"n_tokens": [4] * 5 + [None] * 55}, "document 5 has a place or an id that is null"),
        ({"doc_id": np.full(60, 10**15)}, "column doc_id is int64"),
    ],
)
def test_a_table_that_points_elsewhere(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    """The document is not shown out of another's text."""
    path = _small(tmp_path)
    write_documents(path.with_name("documents.parquet"), bos_header(), **changes)
    with pytest.raises(RunError, match=message):
        cat(path, "--document", "5")


def test_a_table_of_another_file(tmp_path: Path) -> None:
    """Fewer rows, no such columns, no parquet at all."""
    path = _small(tmp_path)
    table = path.with_name("documents.parquet")
    pq.write_table(pq.read_table(table).slice(1), table)
    with pytest.raises(RunError, match="59 rows, but the token file 60 documents"):
        cat(path)
    pq.write_table(pa.table({"a": np.arange(60)}), table)
    with pytest.raises(RunError, match="has no column doc_id"):
        cat(path)
    table.write_bytes(b"PAR1")
    with pytest.raises(RunError, match="cannot be read"):
        cat(path)


def test_an_id_that_was_packed_more_than_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog) -> None:
    """The first copy is shown, and the rows of the others are named."""
    path = _small(tmp_path)
    write_documents(path.with_name("documents.parquet"), bos_header(), id=["x", "y"] * 30, epoch=np.arange(60) % 2)
    assert said(capsys, path, "--document", "y")[0].startswith("--- document 1:")
    assert "copy 2" in said(capsys, path, "--document", "1")[1]
    assert "rows 1, 3, 5, 7" in caplog.text


def test_an_empty_file(tmp_path: Path) -> None:
    """Nothing was packed: said so."""
    write_small_file(tmp_path / "tokens.arrow", bos_header(0))
    with pytest.raises(InputError, match="no sequences: nothing was packed"):
        cat(tmp_path)

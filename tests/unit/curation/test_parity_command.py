"""`corpusmill parity`: its answers and exit codes."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from curation.errors import ConfigError, RunError
from curation.parity_command import add_parity
from tests.parity_variants import EOS, PAD, save, small, twin
from tests.token_files import small_bpe, small_header, write_small_file
from tokenization.probes import PROBES
from tokenization.tokenizer import Tokenizer, load_tokenizer


def run(*words: str | Path) -> int:
    """The exit code of the command."""
    parser = argparse.ArgumentParser()
    add_parity(parser.add_subparsers(required=True))
    arguments = parser.parse_args(["parity", *map(str, words)])
    return int(arguments.function(arguments))


def token_file(path: Path, tokenizer: Tokenizer) -> Path:
    """A file that says it was made by this tokenizer."""
    card = replace(tokenizer.card(), pad_id=small_header().tokenizer.pad_id)
    header = replace(small_header(), tokenizer=card, golden_texts=PROBES, golden_ids=tokenizer.golden_ids)
    return write_small_file(path, header)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A tokenizer, and a token file of it."""
    path, ours = small(tmp_path / "ours")
    return path, token_file(tmp_path / "tokens.arrow", ours)


def test_equal_to_a_file(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Golden ids and fingerprint are those of the file: 0."""
    assert run(*pair) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"equal: all {len(PROBES)} golden texts have the ids of the file"
    assert any(line.startswith("equal: fingerprint ") for line in lines)


def test_another_one_is_named(pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other ids: 1, with the place and the cause."""
    assert run(twin(tmp_path, "lower_case"), pair[1]) == 1

    out = capsys.readouterr().out
    assert out.startswith("DIFFERENT: ")
    assert "lower-cases text" in out
    assert "it is another tokenizer." in out


def test_one_merge_that_no_golden_text_shows(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two merges that change places and no id of the golden texts: the fingerprint tells, and it is said so."""
    data = json.loads(small_bpe())
    merges = data["model"]["merges"]
    merges[0], merges[5] = merges[5], merges[0]
    path = save(tmp_path / "other", data)

    assert run(path, pair[1]) == 1

    out = capsys.readouterr().out
    assert out.startswith("equal: all")
    assert "golden ids are equal, and something that changes other ids is not" in out


def test_a_tokenizer_without_the_files_end(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no such EOS, so it cannot be loaded as the file's: the golden ids are compared all the same."""
    data = json.loads(small_bpe().replace(EOS, "<|other|>"))

    assert run(save(tmp_path / "other", data, {}), pair[1]) == 1

    assert "cannot take the file's place" in capsys.readouterr().out


def test_against_a_trainers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 where equal, 1 where BOS differs; with --bos it is equal; --json holds all of it."""
    path, _ = small(tmp_path / "ours")
    trainer = twin(tmp_path, "bos")

    assert run(path, "--trainer", path) == 0
    assert run(path, "--trainer", trainer) == 1
    assert "DIFFERENT (bos):" in capsys.readouterr().out
    assert run(path, "--trainer", trainer, "--bos", PAD, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] is True
    assert found["comparison"]["reference"]["puts_before"] == [1]
    assert run(path, "--trainer", path, "--embedding-rows", "599") == 1


def test_texts_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--text adds texts, --limit bounds them, and the one that differs is named."""
    path, _ = small(tmp_path / "ours")
    trainer = twin(tmp_path, "added")
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("plain", "use <tool>")), encoding="utf-8")

    assert run(path, "--trainer", trainer, "--text", texts, "--limit", "1") == 0
    assert "and 1 texts" in capsys.readouterr().out
    assert run(path, "--trainer", trainer, "--text", texts) == 1
    assert "text 2: 'use <tool>'" in capsys.readouterr().out


def test_against_its_own_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else given: the library that reads the file."""
    assert run(small(tmp_path)[0]) == 0
    assert "its own file by tokenizers" in capsys.readouterr().out


def test_wrong_use(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """What is not there or cannot be loaded is wrong use; a damaged token file is a failure."""
    with pytest.raises(ConfigError, match="no tokenizer"):
        run(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="expected a token file, found nothing"):
        run(pair[0], tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="no tokenizer"):
        run(pair[0], "--trainer", tmp_path / "nowhere")
    (tmp_path / "bad.arrow").write_bytes(pair[1].read_bytes()[:-9])
    with pytest.raises(RunError):
        run(pair[0], tmp_path / "bad.arrow")
    with pytest.raises(SystemExit):
        run(pair[0], "--limit", "0")


def test_the_default_is_known(tmp_path: Path) -> None:
    """`default` is a tokenizer as any other."""
    assert run("default", token_file(tmp_path / "tokens.arrow", load_tokenizer())) == 0

"""`corpusmill train-ngram`: texts of every kind become a model that scores them."""

from __future__ import annotations

import argparse
import json
import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from curation.config import parse_config
from curation.errors import ConfigError, InputError, RunError
from curation.filters.perplexity.ngram import load_model, score_texts
from curation.filters.perplexity.ngrams import open_ngrams
from curation.launch import drive, start_run
from curation.text import buffers
from curation.train_ngram_command import add_train_ngram, training_texts

WORDS = ["le", "chat", "noir", "dort", "sur", "la", "chaise", "où", "élève", "français", "être", "maison"]


def sentences(n: int) -> list[str]:
    chance = random.Random(4)
    return [" ".join(chance.choice(WORDS) for _ in range(40)) for _ in range(n)]


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_train_ngram(parser.add_subparsers())
    parsed = parser.parse_args(["train-ngram", *arguments])
    return int(parsed.function(parsed))


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    """The same texts in each kind of file."""
    texts = sentences(100)
    rows = [{"text": text, "id": str(i)} for i, text in enumerate(texts)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    (tmp_path / "a.jsonl").write_bytes(lines)
    (tmp_path / "a.jsonl.zst").write_bytes(zstandard.compress(lines))
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    (tmp_path / "a.txt").write_text("\n\n".join(texts), "utf-8")
    return {name: tmp_path / f"a.{name}" for name in ("jsonl", "jsonl.zst", "parquet", "txt")}


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.zst", "parquet", "txt"])
def test_every_kind_of_file_gives_the_same_texts(kind: str, inputs: dict[str, Path]) -> None:
    """Files are read as a run reads them; plain text is cut at empty lines."""
    assert [text.strip() for text in training_texts([str(inputs[kind])])] == sentences(100)


def test_a_model_is_trained_and_scores(inputs: dict[str, Path], tmp_path: Path) -> None:
    """The file says what it was trained on, keeps to its size, and finds its language probable."""
    out = tmp_path / "out" / "fra.bin"
    assert run("--language", "fra", "--input", str(inputs["jsonl"]), "-o", str(out), "--max-mb", "0.05") == 0
    assert out.stat().st_size <= 54_000
    scorer = load_model(out)
    assert (scorer.model.language, scorer.model.order) == ("fra", 6)
    assert scorer.model.facts["documents"] == 100
    assert scorer.model.facts["scripts"] == {"latin": 1.0}
    found = score_texts(scorer, *buffers(pa.array(["le chat noir dort", "drot rion tach el"], pa.large_string())))
    assert found.nats[0] / math.log(2) / found.tokens[0] < 2 < found.nats[1] / math.log(2) / found.tokens[1]


def test_a_model_goes_through_arpa(inputs: dict[str, Path], tmp_path: Path) -> None:
    """Written as ARPA and read back, it is the same file but for what was said of its training."""
    one, two, arpa = tmp_path / "1.bin", tmp_path / "2.bin", tmp_path / "m.arpa"
    run("--language", "fra", "--input", str(inputs["txt"]), "-o", str(one), "--order", "3", "--arpa", str(arpa))
    run("--language", "fra", "--from-arpa", str(arpa), "-o", str(two))
    texts = buffers(pa.array(sentences(5), pa.large_string()))
    first, second = (score_texts(load_model(path), *texts) for path in (one, two))
    assert first.nats == pytest.approx(second.nats, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.bin", "--input", "a.jsonl"], "--language"),
        (["-o", "x.bin", "--language", "fra"], "--input"),
        (["-o", "x.bin", "--language", "fra", "--input", "a.jsonl", "--from-arpa", "b"], "either texts"),
        (["-o", "x.bin", "--language", "fra", "--input", "a.jsonl", "--max-mb", "0"], "--max-mb"),
        (["-o", "x.bin", "--language", "fra", "--input", "a.jsonl", "--max-mb", "0.001"], "from 0.05 to 1000"),
        (["-o", "/dev/null", "--language", "fra", "--input", "a.jsonl"], "/dev/null is no regular file"),
        (["-o", "x.bin", "--language", "../fra", "--input", "a.jsonl"], "--language"),
        (["-o", "x.bin", "--language", "xx", "--input", "a.jsonl"], "--language"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments: list[str], message: str) -> None:
    """What is missing or too much is named."""
    with pytest.raises(ConfigError, match=message):
        run(*arguments)


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [("short", [], "at least 10,000 characters"), ("word " * 5000, ["--order", "9"], "order from 2 to 8")],
)
def test_texts_that_make_no_model_are_refused(text: str, more: list[str], message: str, tmp_path: Path) -> None:
    """Too little text, or an order that no file holds; nothing is written."""
    (tmp_path / "a.txt").write_text(text, "utf-8")
    with pytest.raises(InputError, match=message):
        run("--language", "fra", "--input", str(tmp_path / "a.txt"), "-o", str(tmp_path / "x.bin"), *more)
    assert not (tmp_path / "x.bin").exists()


def test_a_model_is_found_by_the_labels_of_its_language(inputs: dict[str, Path], tmp_path: Path) -> None:
    """Whichever code of a language was given: in a folder of models it is the one that reads it."""
    assert run("--language", "fr", "--input", str(inputs["jsonl"]), "-o", str(tmp_path / "m" / "french.bin")) == 0
    assert open_ngrams(str(tmp_path / "m")).model_of("fra_Latn") == "fra"


def test_text_beyond_the_most_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What fits is trained on, even where the texts are one: a file with a document in each line has no empty one."""
    (tmp_path / "a.txt").write_text("\n".join(sentences(100)), "utf-8")
    assert len(list(training_texts([str(tmp_path / "a.txt")]))) == 1
    monkeypatch.setattr("quality_models.ngram_training.MOST_CHARACTERS", 12_000)
    assert run("--language", "fra", "--input", str(tmp_path / "a.txt"), "-o", str(tmp_path / "x.bin")) == 0
    assert load_model(tmp_path / "x.bin").model.facts["characters"] == 12_000
    assert "read 12,000 characters" in caplog.text
    monkeypatch.setattr("curation.train_ngram_command.BATCH_CHARACTERS", 1000)
    parts = list(training_texts([str(tmp_path / "a.txt")]))
    assert max(map(len, parts)) < 1300
    assert "".join(parts) == (tmp_path / "a.txt").read_text("utf-8")


def test_of_a_run_the_kept_documents_are_read(inputs: dict[str, Path], tmp_path: Path) -> None:
    """A folder of a run stands for what the run keeps; one that is not done is refused."""
    pipeline = start_run(parse_config("name: t\nsteps: [exact]\n"), [str(inputs["jsonl"])], tmp_path / "root")
    with pytest.raises(RunError, match="is not done"):
        list(training_texts([str(pipeline.run.folder)]))
    drive(pipeline, workers=1)
    assert list(training_texts([str(pipeline.run.folder)])) == sentences(100)


def test_an_input_that_is_not_there_is_named(tmp_path: Path) -> None:
    """As for a run."""
    with pytest.raises(InputError, match=r"nothing\.jsonl"):
        list(training_texts([str(tmp_path / "nothing.jsonl")]))

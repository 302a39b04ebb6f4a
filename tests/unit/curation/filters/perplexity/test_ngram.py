"""The kernel of n-gram models: the probabilities of its file, whatever the text."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from curation.filters.perplexity.ngram import (
    MOST_WINDOWS,
    WINDOW_BYTES,
    Scorer,
    Scores,
    load_model,
    load_models,
    prepared,
    score_texts,
    windows,
)
from curation.filters.perplexity.ngram_text import NORMALISATION, normal_characters
from curation.text import buffers
from quality_models.arpa import write_arpa
from quality_models.ngram_file import UNICODE, pack, quantised, write_ngram
from quality_models.ngram_smoothing import Estimated
from quality_models.ngram_training import train

WORDS = ["the", "quick", "brown", "fox", "straße", "中文", "日本", "über", "lazy", "1999", "naïve", "don't"]


def sentences(seed: int, n: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choice(WORDS) for _ in range(chance.randint(2, 12))) for _ in range(n)]


def trained(order: int, most_bytes: int = 16_000) -> Estimated:
    codes, offsets = normal_characters(*buffers(pa.array(sentences(1, 200), pa.large_string())))
    return train(codes, offsets, order=order, most_bytes=most_bytes)


@pytest.fixture(scope="module")
def model() -> Estimated:
    return trained(4)


@pytest.fixture(scope="module")
def scorer(model: Estimated) -> Scorer:
    return prepared(pack(model, "mis", NORMALISATION, {}))


def score(scorer: Scorer, texts: list[str], rows: list[int] | None = None) -> Scores:
    array = pa.array(texts, pa.large_string())
    return score_texts(scorer, *buffers(array), None if rows is None else np.array(rows, np.int64))


class Slow:
    """The model as dictionaries, read by the definition."""

    def __init__(self, model: Estimated) -> None:
        self.numbers = {chr(code): i for i, code in enumerate(model.characters.tolist(), 1)}
        self.order = model.order
        self.others = math.log(UNICODE - len(model.characters))
        self.p: dict[tuple[int, ...], float] = {}
        self.backoff: dict[tuple[int, ...], float] = {}
        below: list[tuple[int, ...]] = [()]
        for grams in model.grams:
            below = [(*below[p], w) for p, w in zip(grams.prefix.tolist(), grams.last.tolist(), strict=True)]
            self.p |= dict(zip(below, grams.log_p.tolist(), strict=True))
            self.backoff |= dict(zip(below, grams.log_backoff.tolist(), strict=True))

    def log_p(self, context: tuple[int, ...], last: int) -> float:
        if (*context, last) in self.p:
            return self.p[*context, last]
        return self.backoff.get(context, 0.0) + self.log_p(context[1:], last)

    def nats(self, text: str) -> float:
        """Of a text that is normalised."""
        ids = [self.numbers.get(char, 0) for char in f" {text}"]
        total = -sum(self.log_p(tuple(ids[max(0, i - self.order + 1) : i]), ids[i]) for i in range(1, len(ids)))
        return total + self.others * ids[1:].count(0)


@pytest.mark.parametrize("order", [2, 3, 4, 6])
def test_nats_are_those_of_a_slow_reading(order: int) -> None:
    """To 1e-4 for each character, but for texts where the fingerprint of a missing n-gram is that of another: few."""
    model = trained(order)
    scorer, slow = prepared(pack(model, "mis", NORMALISATION, {})), Slow(quantised(model))
    chance = random.Random(5)
    letters = sorted({char for text in sentences(1, 50) for char in text.replace("1999", "0000")} | set("qüß%ж"))
    broken = ["".join(chance.choice(letters) for _ in range(12)).strip() for _ in range(300)]
    texts = [" ".join(text.lower().split()) for text in [*sentences(7, 100), *broken]]
    found = score(scorer, texts)
    expected = np.array([slow.nats(text.replace("1999", "0000")) for text in texts])
    off = np.abs(found.nats - expected) > 1e-4 * np.maximum(found.tokens, 1)
    assert off.mean() < 0.03
    assert np.abs(found.nats - expected).max() < 16 * order


def arpa_nats(path: Path, text: str, order: int) -> float:
    """Of a normalised text, by an ARPA file that is read by the simplest means."""
    table = {}
    for line in path.read_text("utf-8").splitlines():
        parts = line.split("\t")
        if len(parts) > 1:
            table[tuple(parts[1].split(" "))] = (float(parts[0]), float(parts[2]) if len(parts) > 2 else 0.0)
    tokens = ["▁", *(char if (char,) in table else "<unk>" for char in text.replace(" ", "▁"))]
    total = 0.0
    for i in range(1, len(tokens)):
        context = tokens[max(0, i - order + 1) : i]
        while (*context, tokens[i]) not in table:
            total += table.get(tuple(context), (0.0, 0.0))[1]
            context = context[1:]
        total += table[*context, tokens[i]][0]
    return -total * math.log(10)


def test_the_arpa_file_says_what_the_kernel_says(model: Estimated, scorer: Scorer, tmp_path: Path) -> None:
    """To 1e-4 for each character, without other programs: what KenLM reads is what we score."""
    write_arpa(quantised(model), tmp_path / "model.arpa")
    texts = ["the quick brown fox", "中文 über don't lazy", "straße 0000 naïve", "foxfox uqick", "日本中文 the the"]
    found = score(scorer, texts)
    for text, nats, tokens in zip(texts, found.nats.tolist(), found.tokens.tolist(), strict=True):
        assert nats == pytest.approx(arpa_nats(tmp_path / "model.arpa", text, model.order), abs=1e-4 * tokens)


def test_rounding_costs_little(model: Estimated, scorer: Scorer) -> None:
    """Nats of the file and of the model before rounding: within half a step for each n-gram and back-off weight."""
    texts = sentences(8, 50)
    slow = Slow(model)
    found = score(scorer, texts)
    expected = np.array([slow.nats(text.replace("1999", "0000").casefold().replace("ss", "ß")) for text in texts])
    assert (np.abs(found.nats - expected) <= found.tokens * scorer.model.order * scorer.model.step / 2).all()
    assert found.nats.sum() == pytest.approx(expected.sum(), rel=0.02)


@pytest.mark.parametrize(
    ("text", "tokens", "characters", "n_bytes"),
    [
        ("", 0, 0, 0),
        (" \n ", 0, 3, 3),
        ("fox", 3, 3, 3),
        ("  The\n\nfox ", 7, 11, 11),
        ("中文", 2, 2, 6),
        ("e\u0301e\u0301", 2, 4, 6),
        ("ﬁ", 2, 1, 3),
        ("\x00\ufffd\u0301", 3, 3, 6),
    ],
)
def test_what_is_counted(text: str, tokens: int, characters: int, n_bytes: int, scorer: Scorer) -> None:
    """Tokens are normalised characters; characters and bytes are those of the text as it stands."""
    found = score(scorer, [text])
    assert (found.tokens[0], found.characters[0], found.bytes[0]) == (tokens, characters, n_bytes)
    assert math.isfinite(found.nats[0])
    assert (found.nats[0] > 0) == (tokens > 0)


def test_layout_says_nothing(scorer: Scorer) -> None:
    """Line breaks, runs of blanks, case, width and form of characters change no nats."""
    texts = ["the quick über fox 1999", "The  QUICK\nu\u0308ber\t fox\r\n2024 ", "ｔｈｅ　quick ÜBER fox ٣٤٥٦"]
    assert len({(float(nats), int(n)) for nats, n in zip(*score(scorer, texts)[:2], strict=True)}) == 1


def test_broken_text_is_less_probable(scorer: Scorer) -> None:
    """Known words cost fewer nats than their letters in disorder, and these fewer than unknown characters."""
    text = "the quick brown fox don't naïve"
    shuffled = "".join(random.Random(1).sample(text, len(text)))
    nats = score(scorer, [text, shuffled, "ж" * len(text)]).nats
    assert nats[0] * 2 < nats[1] < nats[2]
    assert nats[2] > 10 * len(text)


def test_results_do_not_depend_on_the_batch(scorer: Scorer) -> None:
    """Each text alone, all together, some rows, and a slice of an array: the same numbers, bit for bit."""
    texts = [*sentences(3, 20), "", "e\u0301tude", "中" * 9000, "fox " * 30_000, "\x00"]
    together = score(scorer, texts)
    for i, text in enumerate(texts):
        assert [field[0] for field in score(scorer, [text])] == [field[i] for field in together]
    rows = [22, 0, 21, 23, 4]
    chosen = score(scorer, texts, rows)
    assert all((field == whole[rows]).all() for field, whole in zip(chosen, together, strict=True))
    part = score_texts(scorer, *buffers(pa.array(texts, pa.string()).slice(5, 18)))
    assert all((field == whole[5:23]).all() for field, whole in zip(part, together, strict=True))


@pytest.mark.parametrize("unit", ["a", "é", "中", "😀", "a中é😀"])
@pytest.mark.parametrize("extra", [0, 1, 2, 3, 10_000, 1_000_000])
def test_windows_begin_and_end_at_characters(unit: str, extra: int) -> None:
    """Long texts are read in parts that lie where their length says, never inside a character, never overlapping."""
    text = (unit * ((MOST_WINDOWS * WINDOW_BYTES + extra) // len(unit.encode()) + 1)).encode()
    data = np.frombuffer(text, np.uint8)
    spans = windows(data, np.array([0]), np.array([len(data)]))
    assert len(spans.starts) == MOST_WINDOWS
    assert spans.starts[0] == 0
    assert spans.ends[-1] == len(data)
    assert (spans.starts[1:] >= spans.ends[:-1]).all()
    assert ((spans.ends - spans.starts) <= WINDOW_BYTES + 3).all()
    for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True):
        text[start:end].decode()


def test_long_texts_are_read_in_part(scorer: Scorer) -> None:
    """The bytes say how much was read; up to the limit all is."""
    whole, longer = "fox " * (MOST_WINDOWS * WINDOW_BYTES // 4), "fox " * (MOST_WINDOWS * WINDOW_BYTES)
    found = score(scorer, [whole, longer])
    assert found.bytes.tolist() == [MOST_WINDOWS * WINDOW_BYTES] * 2
    assert found.nats[1] == pytest.approx(found.nats[0], rel=0.01)


def test_letters_of_foreign_scripts_are_left_out(model: Estimated) -> None:
    """Where a model says what scripts it was trained on, others cost nothing and are counted off the bytes."""
    scorer = prepared(pack(model, "mis", NORMALISATION, {"scripts": {"latin": 0.9, "han": 0.1, "cyrillic": 0.0001}}))
    texts = ["the fox", "the fox ж", "жж", "the привет fox", "fox 中文", "e\u0301 ж"]
    found = score(scorer, texts)
    assert found.tokens.tolist() == [7, 8, 0, 8, 6, 2]
    assert found.bytes.tolist() == [7, 8, 0, 8, 10, 4]
    assert found.nats[2] == 0
    assert found.nats[4] > 0
    assert math.isfinite(found.nats[3])


def test_a_foreign_sign_for_many_letters_leaves_the_bytes_of_others(model: Estimated) -> None:
    """U+FDFA is 3 bytes and 15 letters: what it takes off is never what the scored text has."""
    scorer = prepared(pack(model, "mis", NORMALISATION, {"scripts": {"latin": 1.0}}))
    found = score(scorer, ["the quick brown fox " * 3 + "\ufdfa" * 4])
    assert found.bytes[0] == min(found.tokens[0], 60 + 12)
    assert found.nats[0] / found.bytes[0] < 2 * found.nats[0] / found.tokens[0]


def test_models_are_read_once_and_named(model: Estimated, tmp_path: Path) -> None:
    """A file is mapped once a process; its identity names language, checksum and rules."""
    path = tmp_path / "model.bin"
    written = write_ngram(pack(model, "mis", NORMALISATION, {}), path)
    assert load_model(path) is load_model(path)
    identity = load_model(path).identity
    assert identity.startswith(f"mis {written.checksum} normalisation {NORMALISATION}")


def test_a_model_of_other_text_is_refused(model: Estimated) -> None:
    """A model that was trained on text that was normalised in another way would judge wrongly."""
    with pytest.raises(ValueError, match="expected normalisation"):
        prepared(pack(model, "mis", NORMALISATION + 1, {}))


SAMPLES = {
    "eng": "The committee met on Tuesday to discuss the new rules for schools in the region.",
    "zho": "委员会星期二开会，讨论该地区学校的新规定，并听取了老师和家长的意见。",
    "jpn": "委員会は火曜日に会議を開き、この地域の学校の新しい規則について話し合いました。",
    "mul": "Der Ausschuss traf sich am Dienstag, um über die neuen Regeln für Schulen zu sprechen.",
}


@pytest.mark.parametrize("language", SAMPLES)
def test_shipped_models_know_their_language(language: str) -> None:
    """A plain sentence costs far less than its characters in disorder."""
    text = SAMPLES[language]
    shuffled = "".join(random.Random(2).sample(text, len(text)))
    found = score(load_models()[language], [text, shuffled])
    bits = found.nats / math.log(2) / found.tokens
    assert bits[0] < 8
    assert bits[0] + 1.5 < bits[1]

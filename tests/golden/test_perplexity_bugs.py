"""Bugs that other tools had with perplexity (../shared/notes/bug-log.md), each as a law that the shipped models keep."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.filters.perplexity import Perplexity, PerplexityConfig
from quality_models.ngram_file import read_ngram
from tests.fakes import batch_for

REPO = Path(__file__).resolve().parents[2]
NO_UNKNOWN = REPO / "tests/golden/models/no-unknown.bin"

FLUENT = {
    "eng_Latn": (
        "The old mill by the river is open again. The children come in the evening to help, and the baker sells bread "
        "to everybody who waits long enough. When the first rain falls in the autumn, the wheel begins to turn. "
    ),
    "zho_Hans": (
        "河边的小店上个月换了新的屋顶，负责人说明年还会继续。附近的孩子常来帮忙，老人们坐在门口聊天。"
        "秋天第一场雨下来的时候，大家都会想起从前的日子。"
    ),
    "rus_Cyrl": "Старая мельница на берегу реки снова открыта. Вечером дети приходят помогать, а пекарь продаёт хлеб всем, кто ждёт. ",
    "jpn_Jpan": "川のそばの小さな店は、先月あたらしい屋根になりました。近くの子どもたちがよく手伝いに来て、夕方まで話しています。",
}
LETTERS = {
    "eng_Latn": "abcdefghijklmnopqrstuvwxyz",
    "zho_Hans": "".join(map(chr, range(0x4E00, 0x9FA5))),
    "rus_Cyrl": "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "jpn_Jpan": "".join(map(chr, [*range(0x3041, 0x3097), *range(0x4E00, 0x9FA5)])),
}


def made(**settings: Any) -> Perplexity:
    return Perplexity(PerplexityConfig.model_validate(settings))


def judged(texts: list[str], labels: list[str | None], **settings: Any) -> list[tuple[dict[str, Any], str | None]]:
    """Scores and reason of each text."""
    step = made(**settings)
    scores = step.score(batch_for(step, texts, labels))
    return list(zip(scores.to_pylist(), step.decide(scores).reason_array(list(step.reasons)).to_pylist(), strict=True))


def random_letters(label: str, n: int) -> str:
    """Letters of a language's script in words of two to nine, as many as asked for."""
    dice = random.Random(f"letters of {label}")
    letters = "".join(dice.choice(LETTERS[label]) for _ in range(n))
    if label in ("zho_Hans", "jpn_Jpan"):
        return letters
    words, at = [], 0
    while at < n:
        size = dice.randint(2, 9)
        words.append(letters[at : at + size])
        at += size
    return " ".join(words)


@pytest.mark.parametrize("text", ["", " ", "a", "。", "\n\n", "\u3000", "\u0301", "\0"])
@pytest.mark.parametrize("label", [None, "und", "eng_Latn", "zho_Hans"])
def test_b091_too_short_has_no_score_and_a_reason(text: str, label: str | None) -> None:
    """Nothing of an empty text is nan, infinite or an exception; what becomes of it a policy says."""
    ((scores, reason),) = judged([text], [label])
    assert reason is None
    assert all(value is None or not isinstance(value, float) or math.isfinite(value) for value in scores.values())
    assert scores["tokens"] <= 1
    assert (scores["perplexity"] is None) == (scores["tokens"] == 0)
    assert judged([text], [label], short="drop")[0][1] == "perplexity.too_short"


def test_b093_the_whole_of_a_long_text_counts() -> None:
    """A tail of random letters raises the score, and is not cut off: here three thousand after a fluent beginning."""
    for label, paragraph in FLUENT.items():
        fluent = paragraph * (1200 // len(paragraph) + 1)
        clean, spoilt = judged([fluent, fluent + random_letters(label, 3000)], [label] * 2)
        assert clean[0]["share_scored"] == spoilt[0]["share_scored"] == 1, label
        assert spoilt[0]["bits_per_character"] > 1.6 * clean[0]["bits_per_character"], label
        assert clean[1] is None, label
        assert judged([fluent + random_letters(label, 12_000)], [label])[0][1] == "perplexity.too_high", label


def test_b093_a_very_long_text_is_read_in_all_its_parts() -> None:
    """Eight windows from beginning to end: junk in any quarter of a megabyte raises the score."""
    paragraph = FLUENT["eng_Latn"]
    quarter = paragraph * (250_000 // len(paragraph))
    junk = random_letters("eng_Latn", len(quarter))
    texts = ["".join(junk if place == bad else quarter for place in range(4)) for bad in range(-1, 4)]
    clean, *spoilt = judged(texts, ["eng_Latn"] * 5)
    for scores, _ in spoilt:
        assert 0.05 < scores["share_scored"] < 0.2
        assert scores["bits_per_character"] > 1.25 * clean[0]["bits_per_character"]


@pytest.mark.parametrize("label", FLUENT)
def test_b094_the_cut_of_a_text_hardly_moves_its_score(label: str) -> None:
    """1,024, 1,025 and 2,049 characters of one paragraph: within 3 %, and each character counted once."""
    paragraph = " ".join(FLUENT[label].split())
    joined = (paragraph + " ") * 40
    found = [judged([joined[:n]], [label])[0][0] for n in (1024, 1025, 2049)]
    bits = [scores["bits_per_character"] for scores in found]
    assert max(bits) / min(bits) < 1.03
    for n, scores in zip((1024, 1025, 2049), found, strict=True):
        assert scores["tokens"] == len(joined[:n].rstrip())


def test_b096_fluent_text_stays_and_random_characters_go_in_each_script() -> None:
    """Under one setting for all: the limits are those of the language."""
    for label, paragraph in FLUENT.items():
        (_, fluent), (_, noise) = judged([paragraph * 2, random_letters(label, 400)], [label] * 2)
        assert (fluent, noise) == (None, "perplexity.too_high"), label
        (_, fluent), (_, noise) = judged([paragraph * 2, random_letters(label, 400)], [None] * 2)
        assert (fluent, noise) == (None, "perplexity.too_high"), f"{label}, without its label"


@pytest.mark.parametrize("settings", [{}, {"engine": "ngram"}, {"max_perplexity": 5}])
def test_b107_a_process_opens_its_models_once(settings: dict[str, Any]) -> None:
    """However many steps, batches and documents: each model is read once, and nothing is kept of what was read."""
    first, second = made(**settings), made(**settings, min_tokens=9)
    first.ready()
    assert first.model_checksums() == second.model_checksums()
    for step in (first, second):
        assert step.score(batch_for(step, [FLUENT["eng_Latn"]] * 3, ["eng_Latn"] * 3)).num_rows == 3
    from curation.filters.perplexity.engines import open_engine

    assert open_engine(first.config) is open_engine(second.config)


MEMORY = """
import resource, sys
from curation.filters.perplexity import Perplexity, PerplexityConfig
from tests.fakes import batch_for
step = Perplexity(PerplexityConfig())
batch = batch_for(step, ["The old mill by the river is open again, and the bread is good. " * 12] * 1000, ["eng_Latn"] * 1000)
peaks = []
for _ in range(int(sys.argv[1])):
    step.score(batch)
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
print(peaks[1], peaks[-1])
"""


def test_b107_memory_does_not_grow_with_the_documents() -> None:
    """Twenty thousand documents take what two thousand take."""
    done = subprocess.run([sys.executable, "-c", MEMORY, "20"], cwd=REPO, capture_output=True, text=True, check=True)
    early, late = map(int, done.stdout.split())
    assert late <= early + 8, f"{early} MB after 2,000 documents, {late} MB after 20,000"


def test_a_model_that_gives_no_probability_has_a_reason() -> None:
    """The model of the golden case: `write_ngram` of `tiny_model(ENGLISH, "eng", order=2)` with `single[0, 0]` at -1e6."""
    assert read_ngram(NO_UNKNOWN).single[0, 0] == -1e6
    texts = ["the river runs behind the mill in the evening and nobody knows", "这些字它都没有见过。" * 10]
    (known, _), (unknown, reason) = judged(texts, ["eng_Latn"] * 2, model=str(NO_UNKNOWN))
    assert np.isfinite(known["perplexity"])
    assert unknown["perplexity"] is None
    assert reason == "perplexity.not_finite"

"""Votes are the weighted sum that `voters` describes, whoever votes and however parts are grouped."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import fasttext
import numpy as np
import numpy.typing as npt
import pytest

from curation.filters.language.fasttext import FastText
from curation.filters.language.langdetect import Langdetect
from curation.filters.language.parts import Parts
from curation.filters.language.scripts import SCRIPT_CODES, SHARED
from curation.filters.language.voters import IMPOSSIBLE, NO_LANGUAGE, OTHER, Panel, Voter, Weights, open_panel
from curation.filters.language.weighing import add_votes, likeliest, soften
from curation.text import Script
from quality_models.fasttext_file import read_fasttext
from quality_models.langdetect_profiles import read_profiles
from quality_models.language_codes import LANGUAGE_SCRIPTS, to_iso639_3
from quality_models.language_models import lid176

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

TEXTS = [
    ("eng", "the quick brown fox jumps over the lazy dog", Script.LATIN),
    ("deu", "der schnelle braune Fuchs springt über den faulen Hund", Script.LATIN),
    ("rus", "быстрая коричневая лиса прыгает через ленивую собаку", Script.CYRILLIC),
    ("bul", "бързата кафява лисица прескача мързеливото куче", Script.CYRILLIC),
    ("pes", "روباه قهوه‌ای چابک از روی سگ تنبل می‌پرد", Script.ARABIC),
    ("hin", "तेज भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है", Script.DEVANAGARI),
    ("eng", "a", Script.LATIN),
    ("eng", "12 34", Script.LATIN),
]


def parts_of(texts: list[tuple[str, str, Script]]) -> tuple[Bytes, Parts]:
    """The text of some parts one after another, and where each is."""
    raw = [text.encode() for _, text, _ in texts]
    offsets = np.cumsum([0, *map(len, raw)])
    letters = [sum(map(str.isalpha, text)) for _, text, _ in texts]
    scripts = np.array([script for *_, script in texts], np.uint8)
    parts = Parts(np.arange(len(raw)), offsets[:-1], offsets[1:], scripts, np.array(letters, np.int32))
    return np.frombuffer(b"".join(raw), np.uint8), parts


def some(parts: Parts, rows: slice) -> Parts:
    return Parts(parts.line[rows], parts.starts[rows], parts.ends[rows], parts.script[rows], parts.letters[rows])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with labels of languages and scripts, two of which mean Persian."""
    folder = tmp_path_factory.mktemp("model")
    rows = [f"__label__{code}_{SCRIPT_CODES[script]} {text}\n" for code, text, script in TEXTS[:6]]
    rows.append("__label__fas_Arab سلام بر شما دوستان\n")
    (folder / "train.txt").write_text("".join(rows * 20), encoding="utf-8")
    options = {"dim": 8, "bucket": 1000, "minn": 2, "maxn": 3, "epoch": 25, "lr": 0.5, "thread": 1, "verbose": 0}
    fasttext.train_supervised(str(folder / "train.txt"), **options).save_model(str(folder / "model.bin"))
    return folder / "model.bin"


@pytest.fixture(scope="module")
def panel(trained: Path) -> Panel:
    """Two real models and two whose answers follow from the length of a part: one knows a dialect and its language."""

    def made_up(n: int) -> Callable[[Bytes, Parts], Floats]:
        def answers(data: Bytes, parts: Parts) -> Floats:
            sizes = (parts.ends - parts.starts)[:, None]
            scores = np.sin(sizes * (1 + np.arange(n))) * 9
            shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            return np.ascontiguousarray(shares, np.float32)

        return answers

    labels = ["en", "arz", "ar", "ary", "de", "qya", "sr", NO_LANGUAGE]
    few = Voter("few", labels, Weights(0.3, 0.5, 1e-3, -4.0), made_up(len(labels)))
    one = Voter("one", ["ru"], Weights(0.7, 0.0, 2e-5, -6.0), lambda data, p: np.ones((len(p.line), 1), np.float32))
    return Panel(FastText(read_fasttext(trained)), Langdetect(read_profiles()), [few, one])


def slow_scores(panel: Panel, data: Bytes, parts: Parts) -> list[list[float]]:
    """The sum in the module's docstring, language by language."""
    answers = [voter.answers(data, parts) for voter in panel.voters]
    rows = []
    for part, (script, letters) in enumerate(zip(parts.script, parts.letters, strict=True)):
        row = []
        for language in panel.languages:
            score = 0.0
            for voter, answer in zip(panel.voters, answers, strict=True):
                given = [
                    float(share)
                    for label, share in zip(voter.labels, answer[part], strict=True)
                    if to_iso639_3(label) == language
                ]
                weight = voter.weights.at_20 + voter.weights.doubling * math.log2(max(letters, 1) / 20)
                said = math.log(sum(given) + voter.weights.floor) if given else voter.weights.unknown
                score += max(weight, 0.05) * said
            code = SCRIPT_CODES[Script(script)]
            written = language == NO_LANGUAGE or code in LANGUAGE_SCRIPTS.get(language, (code,))
            row.append(score if written else float(IMPOSSIBLE))
        rows.append(row)
    return rows


def test_scores_are_the_documented_sum(panel: Panel) -> None:
    """Weights by letters with their least, floors, unknown languages, labels of one language, scripts."""
    data, parts = parts_of(TEXTS)
    found = panel.scores(data, parts)
    assert found.dtype == np.float32
    assert found.shape == (len(TEXTS), len(panel.languages))
    np.testing.assert_allclose(found, slow_scores(panel, data, parts), rtol=1e-5, atol=2e-5)


def test_languages_are_all_that_any_model_knows(panel: Panel) -> None:
    """Sorted, each once: labels of one language are one."""
    assert panel.languages == sorted({to_iso639_3(label) for voter in panel.voters for label in voter.labels})
    assert {"qya", "ara", "fas", "eng"} <= set(panel.languages)
    assert "arz" not in panel.languages


def test_written_follows_the_scripts_of_languages(panel: Panel) -> None:
    """Serbian in two scripts, Russian in one, one of which nothing is known in any, as no language; none in other scripts."""
    where = {
        language: {script for script in SHARED if panel.written[script, panel.languages.index(language)]}
        for language in ("srp", "rus", "qya", NO_LANGUAGE)
    }
    assert where == {
        "srp": {Script.LATIN, Script.CYRILLIC},
        "rus": {Script.CYRILLIC},
        "qya": set(SHARED),
        NO_LANGUAGE: set(SHARED),
    }
    assert not panel.written[[script for script in Script if script not in SHARED]].any()


def test_no_answer_depends_on_company(panel: Panel) -> None:
    """Bit for bit the same in one call, part by part, in pairs, and with what is between them in the data."""
    data, parts = parts_of(TEXTS * 3)
    n = len(parts.line)
    for ask in (panel.scores, lambda d, p: np.stack([*panel.first(d, p), *panel.second(d, p)], axis=1)):
        whole = ask(data, parts)
        for size in (1, 2, 5):
            grouped = [ask(data, some(parts, slice(first, first + size))) for first in range(0, n, size)]
            assert np.array_equal(np.concatenate(grouped), whole)
        assert np.array_equal(ask(data, some(parts, slice(None, None, -1))), whole[::-1])


def test_no_parts(panel: Panel) -> None:
    """Nothing in, nothing out."""
    data, parts = parts_of([])
    assert panel.scores(data, parts).shape == (0, len(panel.languages))
    assert [len(answer) for answer in (*panel.first(data, parts), *panel.second(data, parts))] == [0] * 4


def test_first_and_second_name_a_language_or_none(panel: Panel) -> None:
    """Places in `languages`, and the probability; -1 and 0 where a model knows nothing of a part."""
    data, parts = parts_of(TEXTS)
    first, second = panel.first(data, parts), panel.second(data, parts)
    expected = [to_iso639_3(code) for code, _, _ in TEXTS[:6]]
    assert [panel.languages[place] for place in first[0][:6]] == expected
    assert [panel.languages[place] for place in second[0][:6]] == expected
    assert (second[0][7], second[1][7]) == (-1, 0)
    for place, probability in (first, second):
        assert place.dtype == np.int32
        assert probability.dtype == np.float32
        assert (probability[:6] > 0.3).all()
        assert probability.max() <= 1


def test_models_are_named_or_given_by_their_path(trained: Path) -> None:
    """py3langid by its name, our own, and any file in fastText's format; each votes."""
    panel = open_panel(trained, ("py3langid", "corpusmill", str(trained)), lid176())
    assert [voter.name for voter in panel.voters] == ["fasttext", "langdetect", "py3langid", "corpusmill", str(trained)]
    assert panel.voters[-1].weights == panel.voters[-2].weights == OTHER
    data, parts = parts_of(TEXTS)
    np.testing.assert_allclose(panel.scores(data, parts), slow_scores(panel, data, parts), rtol=1e-5, atol=3e-5)
    best = panel.scores(data, parts).argmax(axis=1)
    assert [panel.languages[place] for place in best[:6]] == [to_iso639_3(code) for code, _, _ in TEXTS[:6]]
    for voter in panel.voters[:3]:  # models of probabilities, and nothing of a part without letters
        answers = voter.answers(data, parts)
        np.testing.assert_allclose(answers[:6].sum(axis=1), 1, atol=2e-3)
    assert not panel.voters[1].answers(data, parts)[7].any()


def test_our_own_model_reads_folded_text(trained: Path) -> None:
    """In lower case and without punctuation; a model given by its path reads what is there."""
    panel = open_panel(trained, ("corpusmill", str(trained)), lid176())
    data, parts = parts_of([TEXTS[0], ("eng", "THE QUICK, BROWN FOX: JUMPS OVER (the) lazy dog!", Script.LATIN)])
    own, other = (voter.answers(data, parts) for voter in panel.voters[-2:])
    assert np.array_equal(own[0], own[1])
    assert np.array_equal(own[0], other[0])
    assert not np.array_equal(other[0], other[1])


@pytest.mark.parametrize("content", [None, b"", b"PK\3\4 no model of this kind", b"cut"])
def test_missing_and_foreign_files_are_errors(content: bytes | None, trained: Path, tmp_path: Path) -> None:
    """They name the file."""
    path = tmp_path / "glotlid.bin"
    if content is not None:
        path.write_bytes(trained.read_bytes()[:-100] if content == b"cut" else content)
    error = FileNotFoundError if content is None else ValueError
    for own, others in ((trained, (str(path),)), (path, ("corpusmill",))):
        with pytest.raises(error, match=r"glotlid\.bin"):
            open_panel(own, others, lid176())


@pytest.mark.parametrize("n", [1, 15, 16, 17, 55, 200])
def test_softening(n: int) -> None:
    """Softmax of scores / divisor, within 1e-6; zeros, and no answer, where the divisor is 0."""
    rng = np.random.default_rng(n)
    scores = (rng.normal(-200, 60, (40, n))).astype(np.float32)
    divisors = rng.uniform(1, 40, 40).astype(np.float32)
    divisors[::7] = 0
    best, probability = likeliest(scores, divisors)
    scaled = scores.astype(np.float64) / np.where(divisors, divisors, 1)[:, None]
    expected = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    expected[divisors == 0] = 0
    soften(scores, divisors)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert best.tolist() == np.where(divisors > 0, expected.argmax(axis=1), -1).tolist()
    np.testing.assert_allclose(probability, expected.max(axis=1), atol=1e-6)


def test_votes_of_a_wrong_shape_are_errors() -> None:
    """Nothing is written beside the totals."""
    totals, start, weights = np.zeros((2, 16), np.float32), np.ones(16, np.float32), np.ones(2, np.float32)
    answers, columns = np.zeros((2, 3), np.float32), np.array([0, 3, 15])
    add_votes(totals, answers, columns, start, weights)
    for wrong in (
        (totals[:1], answers, columns, start, weights),
        (totals, answers, columns + 1, start, weights),
        (totals, answers, columns - 1, start, weights),
        (totals, answers[:, :2], columns, start, weights),
        (totals, answers, columns, start[:15], weights),
    ):
        with pytest.raises(ValueError, match="votes: expected"):
            add_votes(*wrong)

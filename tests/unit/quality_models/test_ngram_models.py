"""The n-gram models that ship: all of them whole, small enough, and with a card."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quality_models import ngram_models
from quality_models.ngram_file import read_ngram
from quality_models.ngram_models import FOLDER, installed_ngrams
from quality_models.ngram_training import LARGE, MOST_CHARACTERS, least_count, train

MOST_BYTES = 20_000_000


def test_the_models_are_whole_and_small() -> None:
    """English, Chinese, Japanese and many others, 20 MB together at most."""
    paths = installed_ngrams()
    assert {"eng", "zho", "jpn", "mul"} <= set(paths)
    assert sum(path.stat().st_size for path in paths.values()) <= MOST_BYTES
    for language, path in paths.items():
        model = read_ngram(path)
        assert model.language == language
        assert model.facts["labels"]
        assert model.facts["scripts"]


def test_many_languages_are_known() -> None:
    """At least forty besides those with models of their own."""
    labels = read_ngram(installed_ngrams()["mul"]).facts["labels"]
    assert len({label.split("_")[0] for label in labels}) >= 40
    assert {"deu_Latn", "rus_Cyrl", "kor_Kore", "ara_Arab", "hin_Deva", "tha_Thai", "ell_Grek"} <= set(labels)


def test_the_card_names_every_file() -> None:
    """Sources and licences stand in the card."""
    card = (FOLDER / "corpusmill-ngram.md").read_text("utf-8")
    for path in installed_ngrams().values():
        assert path.name in card
        assert f"{path.stat().st_size:,}" in card


def test_missing_models_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package without its weights says so."""
    monkeypatch.setattr(ngram_models, "FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"corpusmill-ngram-\*\.bin"):
        installed_ngrams()


def test_too_much_text_is_refused() -> None:
    """Before any memory is taken for it."""
    codes = np.broadcast_to(np.uint32(97), MOST_CHARACTERS + 1)
    with pytest.raises(ValueError, match="at most 40,000,000 characters"):
        train(codes, np.array([0, len(codes)]), order=3, most_bytes=1000)


def test_rare_ngrams_of_large_texts_are_left_out() -> None:
    """Small texts keep all they have."""
    assert [least_count(n) for n in (0, LARGE - 1, LARGE)] == [1, 1, 2]

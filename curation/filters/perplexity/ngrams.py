"""The engine `ngram`: character n-gram models, one for each language and one for many, chosen by label.

A label is read by the model of that label, or of its language; text of which only the script is known, by the model of
the language that is written in it (Han: Chinese). All others are read by `mul`, if it was trained on any language of
their script: what it has never seen would surprise it whatever it says. Costs about 100 us for a text of 1 kB.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curation.filters.labels import UNDETERMINED, WRITTEN_IN, lookup_keys
from curation.filters.perplexity.engines import Judged
from curation.filters.perplexity.ngram import Scorer, load_model, load_models, score_texts
from curation.text import buffers
from quality_models.ngram_models import PREFIX

__all__ = ["MANY", "NgramEngine", "open_ngrams"]

log = logging.getLogger("corpusmill")

MANY = "mul"
"""The model of many languages."""
LANGUAGE_OF_SCRIPT = {"und_Hani": "zho", "und_Jpan": "jpn", "und_Kore": "kor"}
"""Whose model reads text of which only the script is known, where a script has one language, or one far before others."""


class NgramEngine:
    """Judges each text by the model that its label asks for.

    models: by language or label (`eng`, `zho_Hant`), and `mul`.
    """

    def __init__(self, models: Mapping[str, Scorer]) -> None:
        self.models = dict(models)
        self._names = [*self.models]
        many = self.models.get(MANY)
        trained_on = many.model.facts.get("labels") if many is not None else []
        self._scripts = None if trained_on is None else {_script(label) for label in trained_on}
        """Those that `mul` knows; None: it does not say, so all."""

    def identity(self) -> Mapping[str, str]:
        return {f"ngram {name}": scorer.identity for name, scorer in sorted(self.models.items())}

    def model_of(self, label: str) -> str | None:
        """Name of the model that reads a label; None where none does."""
        keys = [*lookup_keys(label)[:-1], LANGUAGE_OF_SCRIPT.get(label, "")]
        own = next((key for key in keys if key in self.models), None)
        if own is not None or MANY not in self.models or label == UNDETERMINED:
            return own
        return MANY if self._scripts is None or _script(label) in self._scripts else None

    def judge(self, texts: pa.LargeStringArray, labels: pa.StringArray) -> Judged:
        which = self._which(labels)
        data, offsets = buffers(texts)
        n = len(which)
        nats, tokens, n_bytes = np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
        for place, name in enumerate(self._names):
            rows = np.flatnonzero(which == place)
            if len(rows):
                read = score_texts(self.models[name], data, offsets, rows)
                nats[rows], tokens[rows], n_bytes[rows] = read.nats, read.tokens, read.bytes
        # Its tokens are its characters: each run of blanks is one, so that a text padded with blanks is no better.
        return Judged(np.array([*self._names, None], object)[which], nats, tokens, tokens, n_bytes)

    def _which(self, labels: pa.StringArray) -> npt.NDArray[np.int64]:
        """Place of each label's model among the names, -1 for none: int64[n]."""
        encoded = labels.dictionary_encode()
        names = [self.model_of(label) for label in encoded.dictionary.to_pylist()]
        places = np.array([-1 if name is None else self._names.index(name) for name in names], np.int64)
        found: npt.NDArray[np.int64] = places[encoded.indices.to_numpy(zero_copy_only=False)] if names else places
        return found


def open_ngrams(model: str | Mapping[str, str] | None) -> NgramEngine:
    """The models that ship (None); those in a folder or file, each for the language it names; or a file for each language.

    Raises:
        ValueError: a file is no model, or a folder holds none, or two for one language.
        OSError: a file cannot be read.
    """
    if model is None:
        return NgramEngine(load_models())
    if model == {}:
        raise ValueError("model: expected a file for each language, as `{eng: FILE, ...}`, found none")
    if not isinstance(model, str):
        named = {name: load_model(Path(path)) for name, path in model.items()}
        for name, scorer in named.items():
            if scorer.model.language.partition("_")[0] != name.partition("_")[0]:
                log.warning(
                    "perplexity.model.%s: %s says that it was trained for %s", name, model[name], scorer.model.language
                )
        return NgramEngine(named)
    path = Path(model)
    files = sorted(path.glob("*.bin")) if path.is_dir() else [path]
    if not files:
        raise ValueError(
            f"{path}: expected files *.bin, as `corpusmill train-ngram` writes them ({PREFIX}eng.bin), found none"
        )
    found: dict[str, Scorer] = {}
    for file in files:
        scorer = load_model(file)
        if scorer.model.language in found:
            raise ValueError(
                f"{path}: expected one model for each language, found two for {scorer.model.language}: give a file for each "
                "language instead, as `model: {eng: FILE, ...}`"
            )
        found[scorer.model.language] = scorer
    return NgramEngine(found)


def _script(label: str) -> str:
    code = label.partition("_")[2]
    return WRITTEN_IN.get(code, code)

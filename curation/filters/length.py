"""Length in any script: too short to say anything, too long to be one document, or no words at all.

Costs about 2 us for a 1 kB document (450 MB/s a core). Words are those of `curation.text`: in scripts
written without blanks each letter is one. To compare scripts, length is measured in **units**: one unit is
what one English word says. A word between blanks is one unit; a letter of an unspaced script is a fraction.

The fractions come from parallel texts (letters, or words, for each English word of the same text;
the labelled crawl text of the test data: 36 to 40 articles of XQuAD, CC-BY-SA-4.0, and 4 to 39 pages of the
Debian installation guide, the Debian FAQ, the Debian reference and the GIMP manual):

    what is counted                     XQuAD    install  GIMP     FAQ      taken
    Han letters, Chinese                1.66     1.49              1.63     1.6
    kana letters, Japanese, Han at 1.6           3.1      3.6      3.4      3.3
    Thai letters                        4.4                                 4.4
    Korean words                                 0.71              0.73     1
    words: ar 0.90, de 0.98, el 1.07, es 1.15, hi 1.13, ro 1.10, ru 0.91, tr 0.82, vi 1.39 (XQuAD)  1

So between spaced scripts a unit means the same within a factor of 1.4, and a fraction for each of them would
be more than thresholds like these need. Bopomofo takes the figure of kana, Yi that of Han, and all other
unspaced scripts (Lao, Khmer, Burmese, ...) that of Thai: no parallel text was at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator

from curation.records import ScoreColumn
from curation.text import UNSPACED_SCRIPTS, Script, buffers, profile
from curation.verdicts import Decision, Filter, StepConfig, decide_by_rules

__all__ = ["LETTERS_PER_UNIT", "Length", "LengthConfig"]

LETTERS_PER_UNIT: Mapping[Script, float] = {
    **dict.fromkeys(UNSPACED_SCRIPTS, 4.4),
    **dict.fromkeys((Script.HAN, Script.YI), 1.6),
    **dict.fromkeys((Script.HIRAGANA, Script.KATAKANA, Script.BOPOMOFO), 3.3),
}
"""Letters of an unspaced script that say what one English word says; see the module's table."""

_EXCESS = np.zeros(len(Script))
"""float64[n_scripts]: how much more than its units a letter adds to the count of words."""
for _script, _letters in LETTERS_PER_UNIT.items():
    _EXCESS[_script] = 1 - 1 / _letters


class LengthConfig(StepConfig):
    """Thresholds of length, in units (English words or what says as much).

    Gopher (Rae et al. 2021, table A1) keeps 50 to 100,000 words of English web text. Measured on the
    labelled crawl text, 50 units would drop 153 of 238 classical Chinese poems and 100,000 all six whole
    books and manuals, while 16 drops 184 of the 187 rows labelled very short and no good document.
    """

    min_units: float = Field(default=16, ge=0)
    """Dropped below. Set 50 for web text of which only full articles are wanted (Gopher)."""
    max_units: float = Field(default=1_000_000, ge=0)
    """Dropped above: longer than any one book, so a dump. The longest good document has 216,970."""

    @model_validator(mode="after")
    def _rising(self) -> LengthConfig:
        if self.max_units < self.min_units:
            raise ValueError(f"max_units ({self.max_units:g}) must not be less than min_units ({self.min_units:g})")
        return self


class Length(Filter):
    """Drops what is too short or too long, by the same measure in every script."""

    name: ClassVar[str] = "length"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "quality"
    summary: ClassVar[str] = "Drops texts that are too short or too long, measured alike in every script."
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {
        "length.no_words": "it has no word in any script: blank, or signs and punctuation only",
        "length.too_short": "it says less than min_units words of English would",
        "length.too_long": "it says more than max_units words of English would",
    }
    Config: ClassVar[type[StepConfig]] = LengthConfig
    config: LengthConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return (
            ScoreColumn("units", pa.float32(), "English words", "what it says, in words of English"),
            ScoreColumn("words", pa.int64(), "words", "words; in scripts without blanks, letters"),
            ScoreColumn("chars", pa.int64(), "characters", "code points"),
        )

    def thresholds(self) -> Mapping[str, Sequence[float]]:
        return {"units": [self.config.min_units, self.config.max_units]}

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        sizes = profile(*buffers(batch.column("text")))
        units = np.maximum(sizes.n_words - sizes.letters @ _EXCESS, 0)
        columns = [pa.array(units.astype(np.float32)), pa.array(sizes.n_words), pa.array(sizes.n_chars)]
        return pa.RecordBatch.from_arrays(columns, names=[score.name for score in self.score_columns])

    def decide(self, scores: pa.RecordBatch) -> Decision:
        units = scores.column("units").to_numpy(zero_copy_only=False)
        words = scores.column("words").to_numpy(zero_copy_only=False)
        hits = {
            "length.no_words": words == 0,
            "length.too_short": units < np.float32(self.config.min_units),
            "length.too_long": units > np.float32(self.config.max_units),
        }
        return decide_by_rules(scores.num_rows, list(self.reasons), hits)

"""What golden cases let pass of a draw of faults in the code that scores, as it was found on 2026-11-30: nobody has looked at them.

`python -m tests.mutation --cases --scoring N` draws anew, among the other mutants of a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["DRAWN", "Draw"]


class Draw(NamedTuple):
    """Faults of one step: how many there could be, how many were tried, and those that survived, one a line."""

    possible: int
    tried: int
    names: str

    @property
    def survivors(self) -> list[str]:
        return self.names.strip().split("\n")


DRAWN: Mapping[str, Draw] = {
    "length": Draw(
        4,
        4,
        """
curation/filters/length.py: Length.score: `0` -> 1
curation/filters/length.py: Length.score: `0` -> -1
""",
    ),
    "html_noise": Draw(
        12,
        12,
        """
curation/filters/html_noise.py: HtmlNoise.score: `1` -> 2
curation/filters/html_noise.py: HtmlNoise.score: `1` -> 0
""",
    ),
    "token_fit": Draw(
        49,
        49,
        """
curation/filters/labels.py: _main_script: `0` -> -1 (2.)
curation/filters/labels.py: _main_script: `kana >= KANA_SHARE * by_code[:, 0]`: >= -> >
curation/filters/token_fit/step.py: _ratio: `1` -> 0
curation/filters/labels.py: _main_script: `0` -> 1
curation/filters/labels.py: _main_script: `KANA_SHARE * by_code[:, 0]`: * -> /
curation/filters/labels.py: _main_script: `kana >= KANA_SHARE * by_code[:, 0]`: >= -> <
curation/filters/token_fit/step.py: TokenFit.score: `0` -> -1
curation/filters/token_fit/step.py: _ratio: `0` -> 1
curation/filters/token_fit/vocabulary.py: open_tokenizer: `0` -> 1
curation/filters/token_fit/step.py: TokenFit.score: `0` -> 1
curation/filters/token_fit/step.py: _ratio: `0` -> -1
curation/filters/token_fit/step.py: _ratio: `1` -> 2
curation/filters/token_fit/vocabulary.py: Opened.knows: `self.letters[s] >= LEAST_OF.get(s, LEAST_LETTERS)`: >= -> >
curation/filters/labels.py: _main_script: `0` -> 1 (2.)
curation/filters/labels.py: working_labels: `0` -> 1
curation/filters/token_fit/step.py: TokenFit.score: `end - begin`: - -> +
curation/filters/token_fit/vocabulary.py: open_tokenizer: `0` -> -1
curation/filters/labels.py: _main_script: `1` -> 2
curation/filters/labels.py: _main_script: `0` -> -1
""",
    ),
    "perplexity": Draw(
        116,
        30,
        """
curation/filters/perplexity/step.py: _columns: `bits / np.maximum(judged.bytes, 1)`: / -> *
curation/filters/perplexity/ngram.py: windows: `1` -> 2 (2.)
curation/filters/perplexity/ngram.py: windows: `sizes[rows] - WINDOW_BYTES`: - -> +
curation/filters/perplexity/ngram.py: windows: `first + WINDOW_BYTES`: + -> -
curation/filters/labels.py: _main_script: `1` -> 2
curation/filters/perplexity/step.py: _columns: `np.minimum(judged.bytes / np.maximum(sizes, 1), 1)`: minimum -> maximum
curation/filters/perplexity/step.py: _columns: `judged.tokens > 0`: > -> >=
curation/filters/perplexity/step.py: _columns: `1` -> 0 (2.)
curation/filters/perplexity/step.py: _columns: `0` -> 1
curation/filters/labels.py: _main_script: `0` -> -1 (2.)
curation/filters/perplexity/ngram.py: windows: `number * (sizes[rows] - WINDOW_BYTES)`: * -> /
curation/filters/perplexity/step.py: _columns: `~read`: without it
curation/filters/perplexity/ngram.py: windows: `sizes > MOST_WINDOWS * WINDOW_BYTES`: > -> >=
curation/filters/perplexity/ngram.py: windows: `1` -> 0 (2.)
curation/filters/perplexity/ngram.py: windows: `1` -> 0 (4.)
curation/filters/perplexity/ngram.py: windows: `starts[rows] + number * (sizes[rows] - WINDOW_BYTES) // (MOST_WINDO...`: + -> -
curation/filters/perplexity/step.py: _columns: `1` -> 0 (4.)
curation/filters/perplexity/ngram.py: score_texts: `192` -> 193
""",
    ),
    "safety_terms": Draw(
        95,
        25,
        """
curation/filters/safety_terms/expressions.py: _matches: `passed < len(literals) and literals[passed][4] <= start`: and -> or
curation/filters/safety_terms/step.py: SafetyTerms.score: `1` -> 2
curation/filters/safety_terms/expressions.py: _pieces: `text[last] & 192 == 128`: == -> !=
curation/filters/safety_terms/expressions.py: _pieces: `1` -> 0 (2.)
curation/filters/safety_terms/expressions.py: _pieces: `1` -> 2
curation/filters/safety_terms/step.py: _shown: `offsets[document] + MOST_SHOWN`: + -> -
curation/filters/safety_terms/step.py: _shown: `n + 1`: + -> -
curation/filters/safety_terms/expressions.py: _matches: `passed < len(literals)`: < -> >=
curation/filters/safety_terms/expressions.py: _matches: `1` -> 0
curation/filters/safety_terms/expressions.py: _matches: `literals[passed][3] < end`: < -> <=
curation/filters/safety_terms/expressions.py: _pieces: `1` -> 2 (2.)
curation/filters/safety_terms/expressions.py: _pieces: `0` -> -1
curation/filters/safety_terms/expressions.py: confirmed: `1` -> 2
curation/filters/safety_terms/weigh.py: weigh: `1` -> 2 (2.)
curation/filters/safety_terms/step.py: SafetyTerms.score: `1` -> 0
curation/filters/safety_terms/expressions.py: _matches: `1` -> 2
""",
    ),
    "language": Draw(
        563,
        25,
        """
curation/filters/language/document.py: _entries: `0` -> 1
curation/filters/language/identify.py: _repeats: `0` -> -1
curation/filters/language/document.py: _sample: `3` -> 2
curation/filters/language/document.py: language_spans: `1` -> 0 (4.)
curation/filters/language/identify.py: _ask_all: `parts.letters >= SURE_LETTERS`: >= -> <
curation/filters/language/document.py: _sample: `0` -> -1
curation/filters/language/identify.py: _groups: `1` -> 0
curation/filters/language/identify.py: _Page.prior: `1` -> 0 (3.)
curation/filters/language/identify.py: _vote: `word & (usual >= 0)`: & -> |
curation/filters/language/voters.py: Panel._placed: `0` -> -1
curation/filters/language/document.py: _inline: `1` -> 2
curation/filters/language/identify.py: identify: `0` -> 1 (6.)
curation/filters/language/identify.py: _Page.main: `language >= 0`: >= -> <
curation/filters/language/document.py: usual_form: `simplified >= traditional`: >= -> >
""",
    ),
}
"""By step."""

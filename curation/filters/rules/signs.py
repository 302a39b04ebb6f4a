"""Measures of the characters of a text. Blank characters are those of class SPACE, NEWLINE and CONTROL (`curation.text`).

    digits          characters of class NUMBER / characters that are not blank
    other_signs     characters that are neither letter, mark, number nor common punctuation / those that are not blank.
                    Common is what prose has: . , ; : ! ? quotation marks, ( ) - dashes, / % &, and their kin in every
                    script. Not common: # * = < > | \\ ~ _ @ $ + [ ] { }, symbols, emoji, U+FFFD, private characters
    upper_case      capitals / letters with case; undefined where less than half of the letters have case. Cherokee is
                    left out
    blanks          blank characters, line ends too / characters; undefined where all are blank
    brackets        ( ) [ ] { } and the wide, 【】 and 〔〕 ones / characters that are not blank
    curly_brackets  { and } for each 1,000 characters that are not blank
    links           characters in addresses, scheme://... or www...., up to a blank, a bracket, a quotation mark or what
                    is not ASCII, without the punctuation at their end / characters that are not blank
    emoji           characters of class EMOJI / characters that are not blank
    longest_run     the longest run of one character in a line / characters that are not blank

Shares of a text without a visible character are 0; blanks is undefined for an empty one.

Sources: NeMo Curator (digits, other_signs as NonAlphaNumeric, blanks, brackets as Parentheses, links as Urls),
Data-Juicer (other_signs as special_characters), C4 (curly_brackets: any is too many), DCLM (upper_case, by line).
NeMo and Data-Juicer take what is not in [A-Za-z0-9] or Python's isalnum for a sign, marks of Hindi and Thai among them.
All come from the parts' visit: no cost of their own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from curation.filters.rules.parts import Parts
from curation.filters.rules.sign_visit import Count
from curation.filters.rules.words import Measures, share
from curation.records import ScoreColumn

__all__ = ["COLUMNS", "measure"]

COLUMNS = (
    ScoreColumn("digits", pa.float32(), "share", "non-blank characters that are digits or other numbers"),
    ScoreColumn("other_signs", pa.float32(), "share", "non-blank characters that prose in any language seldom has"),
    ScoreColumn("upper_case", pa.float32(), "share", "letters with case that are capitals"),
    ScoreColumn("blanks", pa.float32(), "share", "characters that are blank"),
    ScoreColumn("brackets", pa.float32(), "share", "non-blank characters that are brackets"),
    ScoreColumn("curly_brackets", pa.float32(), "per 1,000 characters", "curly brackets"),
    ScoreColumn("links", pa.float32(), "share", "non-blank characters in addresses of the web"),
    ScoreColumn("emoji", pa.float32(), "share", "non-blank characters that are emoji"),
    ScoreColumn("longest_run", pa.float32(), "share", "non-blank characters in the longest run of one character"),
)


def measure(parts: Parts) -> Measures:
    """The columns of each document: arrays of n, masked where undefined."""
    signs, visible = parts.signs, parts.characters
    some = np.maximum(visible, 1)
    cased = signs[:, Count.UPPER] + signs[:, Count.LOWER]
    counts = {
        "digits": Count.NUMBER,
        "other_signs": Count.OTHER,
        "brackets": Count.BRACKET,
        "links": Count.LINK,
        "emoji": Count.EMOJI,
        "longest_run": Count.LONGEST_RUN,
    }
    return {
        **{name: (signs[:, count] / some).astype(np.float32) for name, count in counts.items()},
        "curly_brackets": (signs[:, Count.CURLY] * 1_000 / some).astype(np.float32),
        "upper_case": share(signs[:, Count.UPPER], cased, 2 * cased >= parts.letters.sum(axis=1)),
        "blanks": share(signs[:, Count.ALL] - visible, signs[:, Count.ALL], visible > 0),
    }

"""What the measures of words, lines, signs and repetition of a text should be, told slowly: one text, plain Python.

Characters are looked up in the tables of `curation.text`, and words are found by its `word_spans`; nothing of the kernels
of `curation.filters.rules` is used but the lists of signs. None stands for undefined.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa

from curation.filters.length import LETTERS_PER_UNIT
from curation.filters.rules import sign_table as lists
from curation.text import UNSPACED_SCRIPTS, CharClass, Script, buffers, word_spans
from curation.text.tables import FOLD_BLOCKS, FOLD_INDEX, KIND_BLOCKS, KIND_INDEX

Measures = dict[str, float | None]

BLANKS = {CharClass.SPACE, CharClass.NEWLINE, CharClass.CONTROL}
LINK = re.compile(r"""[^\x00-\x20\x7f-\U0010ffff"<>\[\](){}|\\^`]*""")
SCHEME = re.compile(r"[A-Za-z0-9+.-]{1,10}\Z")
NO_CASE = re.compile("[\u13a0-\u13fd\uab70-\uabbf]")
POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")


def class_of(character: str) -> CharClass:
    code = ord(character)
    return CharClass(int(KIND_BLOCKS[int(KIND_INDEX[code >> 6]) << 6 | code & 63]) & 15)


def script_of(character: str) -> Script:
    code = ord(character)
    return Script(int(KIND_BLOCKS[int(KIND_INDEX[code >> 6]) << 6 | code & 63]) >> 8)


def folded(character: str) -> str:
    code = ord(character)
    return chr(code + int(FOLD_BLOCKS[int(FOLD_INDEX[code >> 6]) << 6 | code & 63]))


def is_letter(character: str) -> bool:
    return class_of(character) == CharClass.LETTER


def is_blank(character: str) -> bool:
    return class_of(character) in BLANKS


def is_upper(character: str) -> bool:
    if not is_letter(character) or NO_CASE.match(character) or character in lists.SMALL_THAT_FOLD:
        return False
    return folded(character) != character


UPPER = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000 and is_upper(chr(code))]
LOWER = {folded(character) for character in UPPER} | set(lists.SMALL_THAT_FOLD)


def words_of(text: str) -> list[str]:
    raw = text.encode()
    spans = word_spans(*buffers(pa.array([text], pa.large_string())))
    return [raw[a:b].decode() for a, b in zip(spans.starts, spans.ends, strict=True)]


def letters_in(word: str) -> int:
    return sum(is_letter(character) for character in word)


def is_spaced(word: str) -> bool:
    """Not one letter of an unspaced script."""
    return not (is_letter(word[0]) and (script_of(word[0]) in UNSPACED_SCRIPTS or is_dead(word[0])))


def is_dead(character: str) -> bool:
    """A letter of an unspaced script that no one writes any more: role UNSPACED."""
    code = ord(character)
    return int(KIND_BLOCKS[int(KIND_INDEX[code >> 6]) << 6 | code & 63]) >> 4 & 15 == 3


def units_of(words: Sequence[str]) -> float:
    counts = Counter(1.0 if is_spaced(word) else 1 / LETTERS_PER_UNIT.get(script_of(word[0]), 1.0) for word in words)
    return sum(weight * count for weight, count in counts.items())


def is_single(word: str) -> bool:
    """One letter of a spaced script; of Latin, Greek and Cyrillic also with marks, and what is not seen, on it."""
    if not is_spaced(word) or letters_in(word) != 1:
        return False
    has_accents = script_of(word[0]) <= Script.CYRILLIC
    return len(word) == 1 or (has_accents and all(is_letter(c) or is_mark(c) for c in word))


def is_mark(character: str) -> bool:
    code = ord(character)
    return int(KIND_BLOCKS[int(KIND_INDEX[code >> 6]) << 6 | code & 63]) >> 4 & 15 in (4, 5)


def stripped(line: str) -> str:
    start, end = 0, len(line)
    while start < end and is_blank(line[start]):
        start += 1
    while end > start and is_blank(line[end - 1]):
        end -= 1
    return line[start:end]


def lines_of(text: str) -> list[str]:
    """Every line without the blanks at its ends; blank ones are empty."""
    lines = text.split("\n")
    return [stripped(line) for line in (lines[:-1] if lines[-1] == "" else lines)]


def ends_sentence(line: str, i: int) -> bool:
    """Whether the end mark at `i` ends a sentence."""
    rest = line[i + 1 :].lstrip(lists.CLOSERS)
    if not rest:
        return True
    if rest[0] in lists.SENTENCE_ENDS:
        return False
    return line[i] in lists.WIDE_ENDS or is_blank(rest[0])


def sentences_of(lines: Sequence[str]) -> tuple[list[int], int]:
    """Sentences that end in each line, and how many have no end mark."""
    ended, unended, is_open = [], 0, False
    for line in lines:
        if is_open and not (line and line[0] in LOWER and is_letter(line[0])):
            unended, is_open = unended + 1, False
        ended.append(0)
        for i, character in enumerate(line):
            if is_letter(character) or class_of(character) == CharClass.NUMBER:
                is_open = True
            if character in lists.SENTENCE_ENDS and is_open and ends_sentence(line, i):
                ended[-1] += 1
                is_open = False
        if is_open and is_quoted(line):
            ended[-1] += 1
            is_open = False
    return ended, unended + is_open


def is_quoted(line: str) -> bool:
    """Whether a quotation ends a line, as in Japanese, without a full stop."""
    return line.endswith(("」", "』"))


def ellipses_in(line: str) -> int:
    runs = [*re.findall(r"\.+|。+|・+", line)]
    return sum(len(run) >= 3 for run in runs) + len(re.findall("…+|⋯+|︙+", line))


def link_characters(line: str) -> int:
    total, seen = 0, 0
    for i, character in enumerate(line):
        if i < seen:
            continue
        if line.startswith("://", i) and len(line) > i + 3:
            scheme = SCHEME.search(line[max(seen, i - 10) : i])
            if scheme is None:
                continue
            first, body = i - len(scheme.group()), i + 3
        elif (
            character in "wW" and line[i : i + 4].lower() == "www." and line[i : i + 4].isascii() and len(line) > i + 4
        ):
            if i and line[i - 1].isascii() and line[i - 1].isalnum():
                continue
            first, body = i, i + 4
        else:
            continue
        address = LINK.match(line, body)
        assert address is not None
        seen = address.end()
        kept = address.group().rstrip("!'*,.:;?_")
        total += body + len(kept) - first if kept else 0
    return total


def longest_run(line: str) -> int:
    longest = 0
    for run in re.finditer(r"(.)\1*", line, re.DOTALL):
        if not is_blank(run.group(1)):
            longest = max(longest, len(run.group()))
    return longest


def last_signs(line: str) -> str:
    return line.rstrip(lists.CLOSERS)


def ends_in_ellipsis(line: str) -> bool:
    return last_signs(line).endswith(("...", "。。。", "・・・", "…", "⋯", "︙"))


def is_bulleted(line: str) -> bool:
    if not line or line[0] not in lists.BULLETS:
        return False
    return line[0] not in lists.SPACED_BULLETS or len(line) == 1 or is_blank(line[1])


def is_short(line: str) -> bool:
    width = Fraction(0)
    for character in line:
        if class_of(character) == CharClass.MARK:
            continue
        letters = LETTERS_PER_UNIT.get(script_of(character)) if is_letter(character) else None
        width += 6 / Fraction(str(letters)) if letters else 1
    return width <= 30


def is_removable(line: str, words: Sequence[str]) -> bool:
    if 2 * sum(map(is_upper, line)) > len(line):
        return True
    total = 0.0
    for word in words:
        if letters_in(word):
            total += units_of([word])
    return total < 1.5


def c4_keeps(line: str, words: Sequence[str]) -> bool:
    flat = [word_folded(word) for word in words]
    signs = last_signs(line)
    if not signs or (signs[-1] not in lists.SENTENCE_ENDS and not is_quoted(line)) or ends_in_ellipsis(line):
        return False
    total = 0.0
    for word in words:
        total += units_of([word])
    if total < 3 or any(len(word) > 1_000 for word in words) or "javascript" in flat:
        return False
    phrases = [tuple(phrase.split()) for phrase in POLICIES]
    return not any(tuple(flat[i : i + len(p)]) == p for p in phrases for i in range(len(flat)))


def word_folded(word: str) -> str:
    return "".join(map(folded, word))


def entropy_of(words: Sequence[str]) -> float | None:
    """Of the first 256 words by frequency, of the most that it could be."""
    if len(words) < 16:
        return None
    counts = Counter(map(word_folded, words[:256]))
    total = counts.total()
    return -sum(n / total * math.log(n / total) for n in counts.values()) / math.log(total)


def ngram_measures(words: Sequence[str]) -> Measures:
    flat, found = [word_folded(word) for word in words], {}
    total = sum(map(len, words))
    for n in range(1, 11):
        places = defaultdict(list)
        for i in range(len(flat) - n + 1):
            places[tuple(flat[i : i + n])].append(i)
        most = max(map(len, places.values()), default=0)
        if n < 5:
            covers = [0]
            for starts in places.values():
                if len(starts) == most > 1:
                    covers.append(covered(words, starts, n))
            found[f"top_{n}gram" if n > 1 else "top_word"] = max(covers) / max(total, 1)
        else:
            later = [start for starts in places.values() for start in starts[1:]]
            found[f"duplicate_{n}gram"] = covered(words, later, n) / max(total, 1)
    return dict(found)


def covered(words: Sequence[str], starts: Sequence[int], n: int) -> int:
    return sum(len(words[i]) for i in {start + k for start in starts for k in range(n)})


def duplicates(items: Sequence[tuple[str, int]]) -> tuple[float, float]:
    """Share of items, and of their characters, that equal an earlier one."""
    seen: set[str] = set()
    count = characters = 0
    for item, size in items:
        if item in seen:
            count, characters = count + 1, characters + size
        seen.add(item)
    return count / max(len(items), 1), characters / max(sum(size for _, size in items), 1)


def repeated_line_measures(lines: Sequence[str]) -> Measures:
    paragraphs: list[tuple[str, int]] = []
    before = ""
    for line in lines:
        if line:
            last = paragraphs.pop() if before else ("", 0)
            paragraphs.append((f"{last[0]}{line}\n", last[1] + len(line)))
        before = line
    of_lines = duplicates([(line, len(line)) for line in lines if line])
    of_paragraphs = duplicates(paragraphs)
    return {
        "duplicate_lines": of_lines[0],
        "duplicate_line_characters": of_lines[1],
        "duplicate_paragraphs": of_paragraphs[0],
        "duplicate_paragraph_characters": of_paragraphs[1],
    }


def ratio(part: float, whole: float, defined: bool = True) -> float | None:
    return part / whole if whole and defined else None


def word_measures(text: str, words: Sequence[str], lines: Sequence[str]) -> Measures:
    spaced = [word for word in words if is_spaced(word)]
    lettered = [word for word in spaced if letters_in(word)]
    units = units_of(words)
    is_spaced_text = 2 * len(spaced) >= len(words)
    return {
        "words": len(words),
        "units": units,
        "mean_word_length": ratio(sum(map(len, spaced)), len(spaced), is_spaced_text),
        "letter_words": ratio(sum(letters_in(word) > 0 for word in words), len(words)),
        "single_letter_words": ratio(sum(map(is_single, lettered)), len(lettered), is_spaced_text),
        "longest_word": max(map(len, words), default=0),
        "word_entropy": entropy_of(words),
        "hash_per_word": ratio(text.count("#"), units),
        "ellipsis_per_word": ratio(sum(map(ellipses_in, lines)), units),
    }


def line_measures(text: str, words: Sequence[str], lines: Sequence[str]) -> Measures:
    some = [line for line in lines if line]
    n, units = len(some), units_of(words)
    ended, unended = sentences_of(lines)
    letters = Counter(script_of(character) for character in text if is_letter(character))
    marked = 2 * (letters[Script.THAI] + letters[Script.LAO]) < max(letters.total(), 1)
    by_line = [words_of(line) for line in lines]
    kept = sum(count for line, mine, count in zip(lines, by_line, ended, strict=True) if line and c4_keeps(line, mine))
    removable = sum(len(mine) for line, mine in zip(lines, by_line, strict=True) if line and is_removable(line, mine))
    ends = sum(
        bool(last_signs(line)) and (last_signs(line)[-1] in lists.SENTENCE_ENDS or is_quoted(line)) for line in some
    )
    return {
        "bullet_lines": ratio(sum(map(is_bulleted, some)), n),
        "ellipsis_lines": ratio(sum(map(ends_in_ellipsis, some)), n),
        "end_mark_lines": ratio(ends, n, marked),
        "short_lines": ratio(sum(map(is_short, some)), n),
        "longest_line": max(map(len, some), default=0),
        "mean_line_length": ratio(sum(map(len, some)), n),
        "newlines_per_word": ratio(max(n - 1, 0), units),
        "sentences": sum(ended),
        "unended_sentences": ratio(unended, sum(ended) + unended, marked),
        "kept_sentences": kept,
        "removable_words": ratio(removable, len(words)),
    }


def sign_measures(text: str, lines: Sequence[str]) -> Measures:
    visible = [character for character in text if not is_blank(character)]
    n = max(len(visible), 1)
    word_signs = (CharClass.LETTER, CharClass.MARK, CharClass.NUMBER)
    other = sum(class_of(c) not in word_signs and c not in lists.COMMON_PUNCTUATION for c in visible)
    upper, lower = sum(map(is_upper, visible)), sum(c in LOWER and is_letter(c) for c in visible)
    return {
        "digits": sum(class_of(c) == CharClass.NUMBER for c in visible) / n,
        "other_signs": other / n,
        "upper_case": ratio(upper, upper + lower, 2 * (upper + lower) >= sum(map(is_letter, text))),
        "blanks": ratio(len(text) - len(visible), len(text), bool(visible)),
        "brackets": sum(c in lists.BRACKETS for c in visible) / n,
        "curly_brackets": sum(c in "{}" for c in visible) * 1_000 / n,
        "links": sum(map(link_characters, lines)) / n,
        "emoji": sum(class_of(c) == CharClass.EMOJI for c in visible) / n,
        "longest_run": max(map(longest_run, lines), default=0) / n,
    }


def measures_of(text: str) -> Measures:
    """Every measure of a text."""
    words, lines = words_of(text), lines_of(text)
    return {
        **ngram_measures(words),
        **repeated_line_measures(lines),
        **word_measures(text, words, lines),
        **line_measures(text, words, lines),
        **sign_measures(text, lines),
    }

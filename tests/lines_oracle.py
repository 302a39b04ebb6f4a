"""What lines made ready for language models should be, told slowly: regular expressions over one text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from curation.text.tables import KIND_BLOCKS, KIND_INDEX, CharClass, Role, Script

ADDRESS = re.compile(r'[^"`{}|\\^\[\])>]*')
TAG = re.compile(r"<[A-Za-z/!?](?=[\x00-\x7f])[^<>]*>")
ENTITY = re.compile(r"&#?[A-Za-z0-9]+;")
LINK = re.compile(r'\]\([^"`{}|\\^\[\])>]*\)')
JOINERS = "\u200c\u200d"
WIDE = r"[^\x00-\x7f]"
WORD = r"(?:[A-Za-z0-9]|[^\x00-\x7f])"
GROUP = re.compile(r"(?:[#$](?=[A-Za-z]|[^\x00-\x7f]))?(?:[A-Za-z0-9_./\\@:=-]|[^\x00-\x7f])+")
SCHEME = re.compile(r"[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*(?=://)")
CODE = re.compile(
    rf"{WORD}::{WORD}|\\(?:[A-Za-z]|{WIDE})|{WORD}=.|{WORD}@|@{WORD}",
    re.DOTALL,
)
SNAKE = re.compile(rf"{WORD}_{WORD}")
ROOTED = re.compile(rf"(?:^|[^A-Za-z0-9\x80-\U0010ffff])/{WORD}", re.DOTALL)


def kind(character: str) -> tuple[CharClass, Role, Script]:
    """Class, role and script of a character."""
    code = ord(character)
    value = int(KIND_BLOCKS[int(KIND_INDEX[code >> 6]) << 6 | code & 63])
    return CharClass(value & 15), Role(value >> 4 & 15), Script(value >> 8)


def is_ignorable(character: str) -> bool:
    return kind(character)[:2] == (CharClass.CONTROL, Role.IGNORABLE) and character not in JOINERS


def is_spaced(character: str) -> bool:
    """A letter of a script with blanks between words."""
    char_class, role, script = kind(character)
    return char_class == CharClass.LETTER and role == Role.LETTER and script != Script.HANGUL


def is_part(character: str) -> bool:
    return character > "\x7f" and (kind(character)[0] == CharClass.MARK or is_spaced(character))


def joins(text: str, i: int) -> bool:
    return 0 < i < len(text) - 1 and is_part(text[i - 1]) and is_part(text[i + 1])


def token_end(text: str, i: int) -> int:
    """Where the token at `i` ends."""
    while i < len(text):
        character = text[i]
        if character < "\x80":
            if character <= " " or character in "<\x7f":
                break
        elif not is_part(character) and not (character in JOINERS and joins(text, i)):
            break
        i += 1
    return i


class Writer:
    """What is left of a line."""

    def __init__(self) -> None:
        self.out = ""
        self.gap = False

    def put(self, text: str) -> None:
        self.out += (" " if self.gap and self.out else "") + text
        self.gap = False


def is_named(group: str, tag: bool) -> bool:
    """Whether a `.` in the group follows the name of a file or host, and a small letter follows it."""
    for match in re.finditer(r"([A-Za-z0-9]+)\.(?=[a-z])", group):
        run, before = match[1], group[: match.start()][-1:]
        if tag:
            parts = re.split(r"(?<=[a-z])(?=[A-Z])", run)
            before = before if len(parts) == 1 else ""
            run = parts[-1]
        foreign = before > "\x7f" and not re.search("[0-9]", run)
        if (len(run) > 1 or "/" in group[: match.start()]) and re.search("[A-Za-z]", run) and not foreign:
            return True
    return False


def judged(token: str, i: int) -> tuple[str, int]:
    """keep, drop or tag, and where the group at `i` ends."""
    match = GROUP.match(token, i)
    assert match
    group, end = match[0], match.end()
    addresses = [match.end() for match in SCHEME.finditer(group)]
    starts = "(?<![A-Za-z0-9\x80-\U0010ffff])" + ("|(?<=[0-9])|(?<=[a-z])(?=[A-Z])" if group[0] == "#" else "")
    addresses += [
        match.start()
        for match in re.finditer(rf"(?:{starts})(?i:www)\.{WORD}", token[i:])
        if match.start() < len(group)
    ]
    if addresses:
        found = ADDRESS.match(token, i + min(addresses))
        assert found
        return "drop", found.end()
    tag, seen = group[0] == "#", token[i : end + 1]
    slashes = group.count("/")
    drop = (
        group[0] == "$"
        or CODE.search(seen)
        or (SNAKE.search(group) and not tag)
        or (any(len(re.findall("[a-z][A-Z]", run)) > 1 for run in re.findall("[A-Za-z]+", group)) and not tag)
        or is_named(group, tag)
        or slashes > 2
        or (slashes == 2 and ROOTED.search(group))
        or (re.match(WORD, group[-1]) and token.startswith("()", end))
    )
    return ("drop" if drop else "tag" if tag else "keep"), end


def write_token(writer: Writer, token: str) -> None:
    """Write what is language of a token."""
    out, removed, lettered, tag = writer.out, False, False, False
    i = group_end = 0
    while i < len(token):
        character = token[i]
        if i >= group_end:
            tag = False
            if GROUP.match(token, i):
                verdict, group_end = judged(token, i)
                if verdict == "drop":
                    i, removed, writer.gap = group_end, True, True
                    continue
                tag = verdict == "tag"
        run = re.compile(r"[A-Za-z0-9]+").match(token, i)
        if run and tag:
            for piece in re.findall(r"[A-Za-z]+|[0-9]+", run[0]):
                for number, word in enumerate(re.split(r"(?<=[a-z])(?=[A-Z])", piece)):
                    if word.isdigit():
                        removed = writer.gap = True
                    else:
                        writer.gap |= number > 0
                        writer.put(word)
                        lettered = True
            i = run.end()
        elif run:
            if re.search("[0-9]", run[0]):
                removed = writer.gap = True
            else:
                writer.put(run[0])
                lettered = True
            i = run.end()
        elif character > "\x7f":
            writer.put(character)
            lettered, i = True, i + 1
        elif character in "!\"'(),-.:;?":
            if not (writer.gap and removed):
                writer.put(character)
            elif lettered and character in "!,.:;?":
                writer.out += character
            i += 1
        else:
            entity, link = ENTITY.match(token, i), LINK.match(token, i)
            known = entity if entity and len(entity[0]) <= 13 else link
            i, removed, writer.gap = (known.end() if known else i + 1), True, True
    if removed and not lettered:
        writer.out, writer.gap = out, True


def settled(line: str) -> str:
    return unicodedata.normalize("NFC", "".join(c for c in line if not is_ignorable(c)))


def cleaned(line: str) -> str:
    """The line without what has no language."""
    text, writer, i = settled(line), Writer(), 0
    while i < len(text):
        character = text[i]
        begins = is_spaced(character) or (kind(character)[0] == CharClass.MARK and (writer.gap or not writer.out))
        if character <= " " or character == "\x7f":
            writer.gap, i = True, i + 1
        elif character == "<":
            tag = TAG.match(text, i)
            writer.gap, i = True, (tag.end() if tag and len(tag[0].encode()) <= 1000 else i + 1)
        elif character < "\x80" or begins:
            end = token_end(text, i)
            write_token(writer, text[i:end])
            i = end
        else:
            if kind(character)[0] in (CharClass.LETTER, CharClass.MARK, CharClass.PUNCTUATION):
                writer.put(character)
            else:
                writer.gap = True
            i += 1
    return writer.out


def folded(clean: str) -> str:
    """A cleaned line in lower case, letters and marks only."""
    kept = (c.lower() if kind(c)[0] in (CharClass.LETTER, CharClass.MARK) or c in "'’-" else " " for c in clean)
    return re.sub(" +", " ", "".join(kept)).strip(" ")


def letters(clean: str) -> dict[int, int]:
    """Letters by script."""
    return dict(Counter(int(kind(c)[2]) for c in clean if kind(c)[0] == CharClass.LETTER))

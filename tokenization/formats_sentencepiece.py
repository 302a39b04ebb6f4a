"""SentencePiece's model files as the equal tokenizer.json: BPE and unigram, without its library.

The file is a protocol buffer (`sentencepiece_model.proto`), of which a few fields decide ids: the pieces with their
scores and kinds, the ids of special tokens, and how text is normalised. Rules of the conversion:

- BPE: every pair of pieces that makes a piece is a merge, in the order of scores (Kudo & Richardson 2018, `bpe_model.cc`);
  pairs that make the same piece: the longer left half first, which comes nearest to "the leftmost first".
- Control, unknown and byte pieces are never found in text; user-defined ones always are.
- The blank before each text and the removal of blanks happen in the normaliser, as there, so that they happen once a text.

Where ids can still differ from SentencePiece's: a text that is nothing but one user-defined symbol of a BPE model (it gets
no blank before it); rules of the normaliser for marks behind a letter like `²`, or in an order that is not Unicode's;
two ways of equal score in a unigram model, between which SentencePiece's rounding to 32 bits decides.

Costs 0.3 s for 32,000 pieces.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from tokenizers import normalizers

from tokenization.errors import TokenizerError

__all__ = ["Kind", "Model", "convert", "is_sentencepiece", "parse"]

UNIGRAM, BPE = 1, 2
LONGEST_PIECE = 10_000
"""Characters of a piece above which a file is no model: splitting a piece costs the square of its length."""
BLANK = "▁"


class Kind(IntEnum):
    """Kinds of pieces, by their numbers in the file."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    score: float
    kind: Kind


@dataclass(slots=True)
class Model:
    """What of a model file decides ids; the defaults are those of the file format."""

    pieces: list[Piece] = field(default_factory=list)
    model_type: int = UNIGRAM
    byte_fallback: bool = False
    blank_behind: bool = False
    """Whether the added blank stands behind the text and not before it."""
    bos: str = "<s>"
    eos: str = "</s>"
    pad: str = "<pad>"
    rules: str = ""
    """Name of the normaliser's rules, `nmt_nfkc` for instance."""
    charsmap: bytes = b""
    """The rules, compiled."""
    add_blank: bool = True
    remove_blanks: bool = True
    """Whether blanks at both ends, and all but one between, go."""
    escape_blanks: bool = True

    def named(self, *kinds: Kind) -> list[str]:
        """The pieces of these kinds, in the order of ids."""
        return [piece.text for piece in self.pieces if piece.kind in kinds]


def is_sentencepiece(raw: bytes) -> bool:
    """Whether a file begins as a model does: with a piece, which is field 1, a message, whose first field is its text."""
    return len(raw) > 4 and raw[0] == 0x0A and 0x0A in raw[2:4]


def parse(raw: bytes, where: str) -> Model:
    """Read a model file.

    Raises:
        TokenizerError: it is cut off, or no such file.
    """
    model = Model()
    try:
        for number, value in _fields(raw):
            if number == 1:
                model.pieces.append(_piece(_message(value)))
            elif number == 2:
                _read_trainer(model, _message(value))
            elif number == 3:
                _read_normaliser(model, _message(value))
    except (ValueError, IndexError, struct.error, TypeError) as error:
        raise TokenizerError(f"{where} cannot be read as a SentencePiece model: {error}.") from error
    if not model.pieces:
        raise TokenizerError(f"{where} cannot be read as a SentencePiece model: it holds no pieces.")
    return model


def _piece(message: bytes) -> Piece:
    text, score, kind = "", 0.0, 1
    for number, value in _fields(message):
        if number == 1:
            text = _message(value).decode()
        elif number == 2:
            (score,) = struct.unpack("<f", _message(value))
        elif number == 3:
            kind = _number(value)
    return Piece(text, score, Kind(kind))


def _read_trainer(model: Model, message: bytes) -> None:
    for number, value in _fields(message):
        if number == 3:
            model.model_type = _number(value)
        elif number == 24:
            model.blank_behind = bool(_number(value))
        elif number == 35:
            model.byte_fallback = bool(_number(value))
        elif number == 46:
            model.bos = _message(value).decode()
        elif number == 47:
            model.eos = _message(value).decode()
        elif number == 48:
            model.pad = _message(value).decode()


def _read_normaliser(model: Model, message: bytes) -> None:
    for number, value in _fields(message):
        if number == 1:
            model.rules = _message(value).decode()
        elif number == 2:
            model.charsmap = _message(value)
        elif number == 3:
            model.add_blank = bool(_number(value))
        elif number == 4:
            model.remove_blanks = bool(_number(value))
        elif number == 5:
            model.escape_blanks = bool(_number(value))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protocol buffer message: (number, varint, or the bytes of anything else)."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        wire = key & 7
        if wire == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        if wire == 2:
            size, place = _varint(message, place)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {place}")
        if place + size > len(message):
            raise ValueError(f"a field of {size} bytes at byte {place} of {len(message)}")
        yield key >> 3, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError(f"a number of more than ten bytes at byte {place}")


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number where text or a message must stand")
    return value


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise TypeError("text or a message where a number must stand")
    return value


def convert(raw: bytes, where: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The equal tokenizer.json as data, and the names of its eos, bos and pad tokens.

    Raises:
        TokenizerError: the file is damaged, or its settings have no equal there.
    """
    model = parse(raw, where)
    _refuse_what_has_no_equal(model, where)
    special = set(model.named(Kind.CONTROL, Kind.UNKNOWN))
    if model.model_type == BPE:
        special |= set(model.named(Kind.USER_DEFINED))
    added = [_added_token(index, piece) for index, piece in enumerate(model.pieces) if piece.text in special]
    data = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": _normaliser(model),
        "pre_tokenizer": _pre_tokeniser(model, where),
        "post_processor": None,
        "decoder": _decoder(model),
        "model": _bpe(model) if model.model_type == BPE else _unigram(model),
    }
    controls = model.named(Kind.CONTROL)
    names = {"eos_token": model.eos, "bos_token": model.bos, "pad_token": model.pad}
    return data, {key: name for key, name in names.items() if name in controls}


def _refuse_what_has_no_equal(model: Model, where: str) -> None:
    names = [piece.text for piece in model.pieces]
    longest = max(map(len, names))
    fault = ""
    if model.model_type not in (UNIGRAM, BPE):
        fault = f"model type {model.model_type} (1 is unigram, 2 is BPE)"
    elif model.blank_behind:
        fault = "blanks behind words (treat_whitespace_as_suffix)"
    elif Kind.UNUSED in {piece.kind for piece in model.pieces}:
        fault = "unused pieces"
    elif len(set(names)) < len(names) or "" in names:
        fault = "a piece that stands there twice, or is empty"
    elif longest > LONGEST_PIECE:
        fault = f"a piece of {longest:,} characters"
    elif changed := _changed_symbols(model):
        fault = f"a user-defined symbol that its own normaliser changes, {changed[0]!r}"
    elif len(model.named(Kind.UNKNOWN)) != 1:
        fault = f"{len(model.named(Kind.UNKNOWN))} unknown tokens"
    if fault:
        raise TokenizerError(
            f"{where}: a SentencePiece model with {fault}, which a tokenizer.json cannot say. Convert it with the "
            "trainer's own library, and give the tokenizer.json that it writes."
        )


def _changed_symbols(model: Model) -> list[str]:
    """User-defined symbols that are something else after the rules: SentencePiece spares them, a tokenizer.json cannot."""
    symbols = model.named(Kind.USER_DEFINED)
    if model.remove_blanks and any("  " in symbol or symbol != symbol.strip(" ") for symbol in symbols):
        return [symbol for symbol in symbols if " " in symbol]
    if not model.charsmap or not symbols:
        return []
    rules = normalizers.Precompiled(model.charsmap)
    return [symbol for symbol in symbols if rules.normalize_str(symbol) != symbol]


def _added_token(index: int, piece: Piece) -> dict[str, Any]:
    user_defined = piece.kind == Kind.USER_DEFINED
    return {
        "id": index,
        "content": piece.text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": user_defined,
        "special": not user_defined,
    }


def _normaliser(model: Model) -> dict[str, Any] | None:
    """In SentencePiece's order: rules, blanks at the beginning, the added blank, blanks between and at the end."""
    steps: list[dict[str, Any]] = []
    blank = BLANK if model.escape_blanks else " "
    if model.charsmap:
        rules = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.charsmap).decode()}
        # `Precompiled` looks at graphemes and misses most rules that join characters; the standard composition has them.
        steps += [{"type": "NFC"}, rules, {"type": "NFC"}] if "nfkc" in model.rules else [rules]
    if model.remove_blanks:
        steps += [_replace({"Regex": r"\A +"}, ""), _replace({"Regex": " {2,}"}, " ")]
    if model.add_blank:
        symbols = model.named(Kind.USER_DEFINED) if model.model_type == BPE else []
        if symbols:  # the library normalises the symbols too: to be found inside of texts they must stay as they are
            pattern = "|".join(re.escape(symbol) for symbol in symbols)
            steps.append(_replace({"Regex": rf"\A(?!(?:{pattern})\z)"}, blank))
        else:
            steps.append({"type": "Prepend", "prepend": blank})
    if model.escape_blanks:
        steps.append(_replace({"String": " "}, BLANK))
    if model.remove_blanks:
        steps.append(_replace({"Regex": rf"(?<!{blank}){blank}+\z"}, ""))
    return {"type": "Sequence", "normalizers": steps} if steps else None


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _pre_tokeniser(model: Model, where: str) -> dict[str, Any] | None:
    """Unigram models with bytes find `<0x0A>` as a word, with the best score of all: it is cut where no piece lies across."""
    if model.model_type != UNIGRAM or not model.byte_fallback:
        return None
    if any("<0" in text for text in model.named(Kind.NORMAL, Kind.USER_DEFINED)):
        raise TokenizerError(
            f"{where}: a unigram model with byte fallback and a piece across '<0': as a tokenizer.json it would read the "
            "text '<0x0A>' as a byte. Give the tokenizer.json that the trainer loads."
        )
    pattern = {"Regex": "<(?=0x[0-9A-F]{2}>)"}
    return {"type": "Split", "pattern": pattern, "behavior": "MergedWithPrevious", "invert": False}


def _decoder(model: Model) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if model.escape_blanks:
        steps.append(_replace({"String": BLANK}, " "))
    if model.byte_fallback:
        steps.append({"type": "ByteFallback"})
    steps.append({"type": "Fuse"})
    if model.add_blank:
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": steps}


def _bpe(model: Model) -> dict[str, Any]:
    (unknown,) = model.named(Kind.UNKNOWN)
    normal = {piece.text: piece.score for piece in model.pieces if piece.kind == Kind.NORMAL}
    merges = [
        (-score, index, split, text)
        for index, (text, score) in enumerate(normal.items())
        for split in range(len(text) - 1, 0, -1)
        if text[:split] in normal and text[split:] in normal
    ]
    # Sorting is stable: pieces of one score stay in the order of ids, halves of one piece the longer left one first.
    merges.sort(key=lambda merge: merge[:2])
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": model.byte_fallback,
        "ignore_merges": False,
        "vocab": {piece.text: index for index, piece in enumerate(model.pieces)},
        "merges": [[text[:split], text[split:]] for _, _, split, text in merges],
    }


def _unigram(model: Model) -> dict[str, Any]:
    """User-defined pieces get the score that `unigram_model.cc` gives them, which hardly any other path can beat."""
    scores = [piece.score for piece in model.pieces if piece.kind == Kind.NORMAL]
    best, worst = max(scores, default=0.0), min(scores, default=0.0)
    vocabulary = [
        [
            piece.text,
            max(worst, len(piece.text.encode()) * best - 0.1) if piece.kind == Kind.USER_DEFINED else piece.score,
        ]
        for piece in model.pieces
    ]
    kinds = [piece.kind for piece in model.pieces]
    return {
        "type": "Unigram",
        "unk_id": kinds.index(Kind.UNKNOWN),
        "vocab": vocabulary,
        "byte_fallback": model.byte_fallback,
    }

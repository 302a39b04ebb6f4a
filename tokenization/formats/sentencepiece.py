"""SentencePiece's model files as the equal tokenizer.json: BPE and unigram, without its library.

The file is a protocol buffer (`sentencepiece_model.proto`), of which a few fields decide ids: the pieces with their
scores and kinds, the ids of special tokens, and how text is normalised. Rules of the conversion:

- BPE: every pair of pieces that makes a piece is a merge, in the order of scores (Kudo & Richardson 2018, `bpe_model.cc`);
  pairs that make the same piece: the longer left half first, which comes nearest to "the leftmost first".
- Control, unknown and byte pieces are never found in text; user-defined ones always are.
- The blank before each text and the removal of blanks happen in the normaliser, as there, so that they happen once a text.

Where ids can still differ from SentencePiece's: a text that is nothing but one user-defined symbol of a BPE model (it gets
no blank before it); rules of the normaliser for marks in an order that is not Unicode's, or for the case of letters like `ǰ`;
two ways of equal score in a unigram model, between which SentencePiece's rounding to 32 bits decides.

Costs 0.3 s for 32,000 pieces.
"""

from __future__ import annotations

import base64
import re
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from tokenizers import normalizers

from tokenization.errors import TokenizerError
from tokenization.formats.protobuf import as_bytes, as_number, fields

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
        for number, value in fields(raw):
            if number == 1:
                model.pieces.append(_piece(as_bytes(value)))
            elif number == 2:
                _read_trainer(model, as_bytes(value))
            elif number == 3:
                _read_normaliser(model, as_bytes(value))
    except (ValueError, IndexError, struct.error, TypeError) as error:
        raise TokenizerError(f"{where} cannot be read as a SentencePiece model: {error}.") from error
    if not model.pieces:
        raise TokenizerError(f"{where} cannot be read as a SentencePiece model: it holds no pieces.")
    return model


def _piece(raw: bytes) -> Piece:
    text, score, kind = "", 0.0, 1
    for number, value in fields(raw):
        if number == 1:
            text = as_bytes(value).decode()
        elif number == 2:
            (score,) = struct.unpack("<f", as_bytes(value))
        elif number == 3:
            kind = as_number(value)
    return Piece(text, score, Kind(kind))


def _read_trainer(model: Model, raw: bytes) -> None:
    for number, value in fields(raw):
        if number == 3:
            model.model_type = as_number(value)
        elif number == 24:
            model.blank_behind = bool(as_number(value))
        elif number == 35:
            model.byte_fallback = bool(as_number(value))
        elif number == 46:
            model.bos = as_bytes(value).decode()
        elif number == 47:
            model.eos = as_bytes(value).decode()
        elif number == 48:
            model.pad = as_bytes(value).decode()


def _read_normaliser(model: Model, raw: bytes) -> None:
    for number, value in fields(raw):
        if number == 1:
            model.rules = as_bytes(value).decode()
        elif number == 2:
            model.charsmap = as_bytes(value)
            if model.charsmap:
                _check_rules(model.charsmap)
        elif number == 3:
            model.add_blank = bool(as_number(value))
        elif number == 4:
            model.remove_blanks = bool(as_number(value))
        elif number == 5:
            model.escape_blanks = bool(as_number(value))


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
        steps += _rules(model)
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


def _rules(model: Model) -> list[dict[str, Any]]:
    """`Precompiled` looks at graphemes, not at characters, which is made good for the rules that SentencePiece ships.

    It misses most rules that join characters: the standard composition, before and after, has them. And of a grapheme of
    less than six bytes it keeps what becomes of the first character: so a character that the rules delete goes between.
    """
    steps: list[dict[str, Any]] = [{"type": "NFC"}] if "nfkc" in model.rules else []
    if "nmt" in model.rules:
        behind = r"(?<=[\x{80}-\x{7FF}])(?=[\p{M}\x{200C}\x{200D}\x{FF9E}\x{FF9F}])"
        steps += [_replace({"String": "\r\n"}, "\r\1\n"), _replace({"Regex": behind}, "\1")]
    steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.charsmap).decode()})
    return [*steps, {"type": "NFC"}] if "nfkc" in model.rules else steps


def _check_rules(charsmap: bytes) -> None:
    """The size of a double-array trie, the trie, the texts that it points at. The library dies of a damaged one.

    Raises:
        ValueError: a place outside.
    """
    size = int.from_bytes(charsmap[:4], "little")
    units = np.frombuffer(charsmap[4 : 4 + size], "<u4").astype(np.int64)
    texts = charsmap[4 + size :]
    if len(charsmap) < 4 + size or not len(units) or not texts.endswith(b"\0"):
        raise ValueError("rules of the normaliser that are cut off")
    texts.decode()
    places = np.arange(len(units)) ^ ((units >> 10) << ((units & 512) >> 6))
    leaves = units >> 31 == 1
    if (places[~leaves] | 255).max(initial=0) >= len(units) or (units[leaves] & 0x7FFFFFFF).max(initial=0) >= len(
        texts
    ):
        raise ValueError("rules of the normaliser that point outside")


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

"""The trainer's tokenizer, loaded as a trainer loads it: with everything its files switch on, wanted or not.

    a folder                transformers' AutoTokenizer where that is installed, else what is in the folder
    a tokenizer.json        the library `tokenizers`, with the file's post-processor and truncation
    a SentencePiece .model  the library `sentencepiece`
    tiktoken or tekken      the library `tiktoken`, with the pattern and special tokens that the pipeline has found for it

The pipeline itself switches all of that off (`tokenizer`); here it stays on, so that a double BOS, an added blank or a
hidden truncation is seen. Names on a model hub are not downloaded, and no code in a folder is run.

Costs: transformers needs 2 to 5 s to import; encoding 0.5 to 3 MB/s, by the library.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenization.errors import TokenizerError
from tokenization.parity.causes import Cause, Encode, Side
from tokenization.parity.ids import Ids

__all__ = ["MissingLibraryError", "TrainerTokenizer", "load_stock", "load_trainer", "other_ways"]

_FOLDER_FILES = ("tokenizer.json", "tokenizer_config.json", "config.json")
"""One of these in a folder, and transformers may know how to load it."""


class MissingLibraryError(TokenizerError):
    """The library that a trainer reads such a file with is not installed."""


class TrainerTokenizer(ABC):
    """What the comparison asks of a tokenizer. `loaded` is what a trainer gets; `plain` the ids of the text alone."""

    how: str
    """Library, version, class."""
    vocab_size: int
    """With added tokens."""
    max_id: int
    eos_id: int | None = None
    bos_id: int | None = None
    unk_id: int | None = None
    special_ids: frozenset[int] = frozenset()
    special_names: tuple[str, ...] = ()
    embedding_rows: int | None = None
    """What config.json beside it says of the model's vocabulary."""

    @abstractmethod
    def loaded(self, texts: Sequence[str]) -> list[Ids]:
        """Ids as the trainer gets them, with whatever is put around them, cut where the file says so."""

    @abstractmethod
    def plain(self, texts: Sequence[str]) -> list[Ids]:
        """Ids of the texts alone: nothing added, nothing cut, text that spells a special token is text."""

    @abstractmethod
    def decode(self, ids: list[int]) -> str:
        """The text of some ids."""

    def merges(self) -> Sequence[str] | None:
        """Merges in order, as `a b`."""
        return None

    def side(self) -> Side:
        """What the search for causes may ask."""
        return Side(self.decode, self.merges, self.unk_id)


class _Stock(TrainerTokenizer):
    """A tokenizer of the library `tokenizers`, as its file says; only padding, which depends on the batch, is off."""

    def __init__(self, backend: Any, how: str, folder: Path) -> None:
        from tokenizers import Tokenizer

        from tokenization.definition import refuse_gaps

        vocabulary = backend.get_vocab(with_added_tokens=True)
        refuse_gaps(vocabulary, folder)
        self._loaded = backend
        self._loaded.no_padding()
        self._plain = Tokenizer.from_str(backend.to_str())
        self._plain.no_truncation()
        self._plain.encode_special_tokens = True
        self.how = how
        self.vocab_size, self.max_id = len(vocabulary), max(vocabulary.values())
        special = {i: token.content for i, token in backend.get_added_tokens_decoder().items() if token.special}
        self.special_ids, self.special_names = frozenset(special), tuple(special.values())
        model = self._data["model"]
        self.unk_id = model.get("unk_id", vocabulary.get(model.get("unk_token") or ""))
        named = _named_ids(folder, vocabulary)
        self.eos_id, self.bos_id = named["eos_token"], named["bos_token"]

    @cached_property
    def _data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._plain.to_str())
        return found

    def loaded(self, texts: Sequence[str]) -> list[Ids]:
        return [tuple(encoding.ids) for encoding in self._loaded.encode_batch(list(texts))]

    def plain(self, texts: Sequence[str]) -> list[Ids]:
        encodings = self._plain.encode_batch_fast(list(texts), add_special_tokens=False)
        return [tuple(encoding.ids) for encoding in encodings]

    def decode(self, ids: list[int]) -> str:
        return str(self._plain.decode(ids, skip_special_tokens=False))

    def merges(self) -> Sequence[str] | None:
        merges = self._data["model"].get("merges")
        return None if merges is None else [one if isinstance(one, str) else " ".join(one) for one in merges]


class _Transformers(TrainerTokenizer):
    """What AutoTokenizer makes of a folder."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        import transformers

        try:
            found = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False, **settings
            )
        except Exception as error:  # whatever the class of a model raises about its files
            raise TokenizerError(
                f"{folder}: transformers {transformers.__version__} cannot load it: {error}."
            ) from error
        self._tokenizer: Any = found
        self.how = f"transformers {transformers.__version__} {type(found).__name__}"
        vocabulary = found.get_vocab()
        self.vocab_size, self.max_id = len(found), max(vocabulary.values())
        self.eos_id, self.bos_id, self.unk_id = found.eos_token_id, found.bos_token_id, found.unk_token_id
        added = {i: token.content for i, token in found.added_tokens_decoder.items() if token.special}
        self.special_ids = frozenset(added) | frozenset(found.all_special_ids)
        self.special_names = tuple({*added.values(), *found.all_special_tokens})

    @property
    def identity(self) -> tuple[str, bool, Any]:
        """Two with the same are the same tokenizer."""
        return self.how, bool(self._tokenizer.is_fast), getattr(self._tokenizer, "legacy", True)

    def loaded(self, texts: Sequence[str]) -> list[Ids]:
        return [tuple(ids) for ids in self._tokenizer(list(texts), verbose=False)["input_ids"]]

    def plain(self, texts: Sequence[str]) -> list[Ids]:
        found = self._tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False)
        return [tuple(ids) for ids in found["input_ids"]]

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def merges(self) -> Sequence[str] | None:
        if not self._tokenizer.is_fast:
            return None
        merges = json.loads(self._tokenizer.backend_tokenizer.to_str())["model"].get("merges")
        return None if merges is None else [one if isinstance(one, str) else " ".join(one) for one in merges]


class _SentencePiece(TrainerTokenizer):
    """The library `sentencepiece`: it puts nothing around a text, and never reads control tokens in it."""

    def __init__(self, file: Path) -> None:
        import sentencepiece

        try:
            self._processor: Any = sentencepiece.SentencePieceProcessor(model_file=str(file))
        except (RuntimeError, OSError) as error:
            raise TokenizerError(f"{file} cannot be read as a SentencePiece model: {error}.") from error
        self.how = f"sentencepiece {sentencepiece.__version__}"
        self.vocab_size = self._processor.vocab_size()
        self.max_id = self.vocab_size - 1
        self.eos_id, self.bos_id, self.unk_id = (
            index if index >= 0 else None
            for index in (self._processor.eos_id(), self._processor.bos_id(), self._processor.unk_id())
        )

    def loaded(self, texts: Sequence[str]) -> list[Ids]:
        return [tuple(ids) for ids in self._processor.encode(list(texts), out_type=int)]

    plain = loaded

    def decode(self, ids: list[int]) -> str:
        return str(self._processor.decode(ids))


def load_trainer(path: str | Path) -> TrainerTokenizer:
    """Load a tokenizer as a trainer does.

    Args:
        path: `default`, a folder, a tokenizer.json, or a SentencePiece .model.

    Raises:
        TokenizerError: it is missing or unreadable, or the library for its kind is not installed.
    """
    path = _place(path)
    if path.is_dir() and find_spec("transformers") is not None and any((path / n).is_file() for n in _FOLDER_FILES):
        found: TrainerTokenizer = _Transformers(path)
    else:
        found = load_stock(path)
    found.embedding_rows = _embedding_rows(path if path.is_dir() else path.parent)
    return found


def load_stock(path: str | Path) -> TrainerTokenizer:
    """The same by the library that reads the file itself: `tokenizers` or `sentencepiece`; never transformers.

    Raises:
        TokenizerError: as `load_trainer`.
    """
    path = _place(path)
    if not path.is_dir():
        return _load_file(path)
    if (path / "tokenizer.json").is_file():
        return _load_file(path / "tokenizer.json")
    for vocabulary, merges in (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")):
        if (path / vocabulary).is_file() and (path / merges).is_file():
            return _byte_level(path / vocabulary, path / merges)
    models = sorted(path.glob("*.model*"))
    if models:
        return _load_file(models[0])
    found = ", ".join(sorted(one.name for one in path.iterdir())[:8]) or "nothing"
    raise TokenizerError(
        f"{path}: expected tokenizer.json, vocab.json with merges.txt, or a SentencePiece .model; found {found}."
    )


def other_ways(path: str | Path, taken: TrainerTokenizer) -> Iterator[tuple[Cause, Encode]]:
    """Other ways to load the same files, each with what it means if that one gives the pipeline's ids.

    A way that does not load explains nothing and is left out.
    """
    path = _place(path)
    if not path.is_dir():
        return
    ways: list[tuple[str, str, Callable[[], TrainerTokenizer]]] = []
    if isinstance(taken, _Transformers):
        legacy = bool(taken.identity[2])
        ways += [
            ("legacy", f"with legacy={not legacy}", lambda: _Transformers(path, legacy=not legacy)),
            ("slow_fast", "with use_fast=False", lambda: _Transformers(path, use_fast=False)),
        ]
        if (path / "tokenizer.json").is_file():
            ways.append(("slow_fast", "its tokenizer.json alone", lambda: load_stock(path)))
    for model in sorted(path.glob("*.model*")):
        ways.append(("slow_fast", f"its {model.name} alone", lambda model=model: _load_file(model)))  # type: ignore[misc]
    for name, what, load in ways:
        try:
            way = load()
        except (TokenizerError, ImportError):
            continue
        if isinstance(way, _Transformers) and isinstance(taken, _Transformers) and way.identity == taken.identity:
            continue
        sentence = (
            f"the trainer's folder gives other ids by {taken.how} than {what} by {way.how}, which gives the pipeline's."
        )
        remedy = "Load it as the model was trained; or write what the trainer has with save_pretrained, and give the pipeline that."
        yield Cause(name, sentence, remedy), _encoder(way)


def _encoder(way: TrainerTokenizer) -> Encode:
    return lambda text: way.plain([text])[0]


def _place(path: str | Path) -> Path:
    if str(path) == "default":
        from tokenization.tokenizer import DEFAULT

        return DEFAULT
    if not Path(path).exists():
        raise TokenizerError(
            f"no tokenizer {str(path)!r}: expected `default`, a folder, a tokenizer.json, or a SentencePiece .model. "
            "Names on a model hub are not downloaded."
        )
    return Path(path)


def _load_file(file: Path) -> TrainerTokenizer:
    """By content, as the pipeline tells kinds: Llama 3 calls its tiktoken file tokenizer.model."""
    from tokenization.formats.sentencepiece import is_sentencepiece
    from tokenization.formats.tiktoken import is_ranks

    try:
        raw = file.read_bytes()
    except OSError as error:
        raise TokenizerError(f"{file} cannot be read: {error.strerror or error}.") from error
    if is_ranks(raw):
        from tokenization.parity.tiktoken import load_ranks

        return load_ranks(file, raw)
    if raw.lstrip()[:1] != b"{" or is_sentencepiece(raw):
        if find_spec("sentencepiece") is None:
            raise MissingLibraryError(
                f"{file}: the package sentencepiece, which a trainer reads it with, is not installed."
            )
        return _SentencePiece(file)
    data = _read(file)
    if isinstance(data.get("vocab"), list) and isinstance(data.get("config"), dict):
        from tokenization.parity.tiktoken import load_tekken

        return load_tekken(file, data)
    return _tokenizer_json(file)


def _tokenizer_json(file: Path) -> TrainerTokenizer:
    from importlib.metadata import version

    from tokenizers import Tokenizer

    try:
        backend = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises plain Exception for any fault of the file
        raise TokenizerError(f"{file} cannot be read as a Hugging Face tokenizer.json: {error}.") from error
    return _Stock(backend, f"tokenizers {version('tokenizers')}", file.parent)


def _named_ids(folder: Path, vocabulary: Mapping[str, int]) -> dict[str, int | None]:
    """Ids of the `eos_token` and `bos_token` that tokenizer_config.json names."""
    said = _read(folder / "tokenizer_config.json")
    found: dict[str, int | None] = {}
    for key in ("eos_token", "bos_token"):
        name = said.get(key)
        name = name.get("content") if isinstance(name, dict) else name
        found[key] = vocabulary.get(name) if isinstance(name, str) else None
    return found


def _embedding_rows(folder: Path) -> int | None:
    """`vocab_size` of the model in a folder, as its config.json has it."""
    said = _read(folder / "config.json")
    text = said.get("text_config")
    rows = said.get("vocab_size", text.get("vocab_size") if isinstance(text, dict) else None)
    return rows if isinstance(rows, int) else None


def _read(file: Path) -> dict[str, Any]:
    """A JSON object, empty where there is no such file.

    Raises:
        TokenizerError: it is no JSON object.
    """
    if not file.is_file():
        return {}
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{file} is not valid JSON: {error}.") from error
    if not isinstance(data, dict):
        raise TokenizerError(f"{file}: expected a JSON object, found {type(data).__name__}.")
    return data


def _byte_level(vocabulary: Path, merges: Path) -> TrainerTokenizer:
    """GPT-2's two files."""
    from importlib.metadata import version

    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    try:
        backend = Tokenizer(models.BPE.from_file(str(vocabulary), str(merges)))
    except Exception as error:  # the library raises plain Exception for any fault of the files
        raise TokenizerError(f"{vocabulary} and {merges.name} cannot be read as a BPE: {error}.") from error
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return _Stock(backend, f"tokenizers {version('tokenizers')}", merges.parent)

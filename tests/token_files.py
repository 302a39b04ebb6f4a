"""Small token files and small tokenizers for tests: made in milliseconds, with several blocks and all traps."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tokenization.layout import Block, Header, TokenizerCard
from tokenization.rules import Checked
from tokenization.seal import Seal, add_seal
from tokenization.token_file import TokenFileWriter
from tokenization.tokenizer import DEFAULT

CARD = TokenizerCard(
    name="small",
    fingerprint="f" * 64,
    vocab_size=100,
    max_id=99,
    eos="<e>",
    eos_id=0,
    pad="<p>",
    pad_id=1,
    bos=None,
    bos_id=None,
    library="none",
)
SEQ_LEN, PER_BLOCK = 16, 16


def small_header(sequences: int = 40, **changes: Any) -> Header:
    """Header of a file whose sequences each hold documents of 5 and 7 tokens, and 4 of padding."""
    settings: dict[str, Any] = {
        "run_id": "run",
        "config_digest": "0" * 8,
        "strategy": "best_fit",
        "split": "all",
        "shuffle_seed": None,
        "mix": (),
        "seq_len": SEQ_LEN,
        "tokenizer": CARD,
        "golden_texts": ("a",),
        "golden_ids": ((2,),),
        "documents": 2 * sequences,
        "tokens": 12 * sequences,
        "sequences": sequences,
        "pieces": 2 * sequences,
        "unk_share": 0.0,
        "block_sequences": PER_BLOCK,
        "lost_share": 0.0,
    }
    return Header(**{**settings, **changes})


def small_block(header: Header, number: int) -> Block:
    """Block `number` of such a file."""
    n_rows = header.rows_of_block(number)
    tokens = np.random.default_rng(number).integers(2, 100, (n_rows, SEQ_LEN)).astype(header.dtype)
    tokens[:, [4, 11]] = header.tokenizer.eos_id
    tokens[:, 12:] = header.tokenizer.pad_id
    rows = np.arange(2 * n_rows, dtype=np.int64) + number * 2 * header.block_sequences
    borders = np.arange(0, 2 * n_rows + 1, 2, dtype=np.int32)
    return Block(tokens, borders, np.tile(np.array([5, 7], np.int32), n_rows), rows)


BOS_CARD = dataclasses.replace(CARD, bos="<b>", bos_id=2)


def bos_header(sequences: int = 40, **changes: Any) -> Header:
    """Header of a file where documents begin with a BOS: every two sequences hold three, the second of them cut."""
    assert sequences % 2 == 0
    counts = {"documents": 3 * sequences // 2, "pieces": 2 * sequences, "tokens": 14 * sequences}
    return small_header(sequences, **{"tokenizer": BOS_CARD, "strategy": "concat", **counts, **changes})


def bos_block(header: Header, number: int) -> Block:
    """Block `number` of such a file: documents of 5, 19 (11 and 8) and 4 tokens, and 4 of padding."""
    n_rows = header.rows_of_block(number)
    tokens = np.random.default_rng(number).integers(3, 100, (n_rows, SEQ_LEN)).astype(header.dtype)
    tokens[::2, [0, 5]] = tokens[1::2, 8] = header.tokenizer.bos_id
    tokens[::2, 4] = header.tokenizer.eos_id
    tokens[1::2, [7, 11]] = header.tokenizer.eos_id
    tokens[1::2, 12:] = header.tokenizer.pad_id
    rows = np.tile(np.array([0, 1, 1, 2]), n_rows // 2) + np.repeat(np.arange(n_rows // 2) * 3, 4)
    borders = np.arange(0, 2 * n_rows + 1, 2, dtype=np.int32)
    lengths = np.tile(np.array([5, 11, 8, 4], np.int32), n_rows // 2)
    return Block(tokens, borders, lengths, rows + number * 3 * header.block_sequences // 2)


def write_small_file(path: Path, header: Header | None = None) -> Path:
    """Write such a file: by default three blocks, the last one shorter."""
    header = header or small_header()
    block = small_block if header.tokenizer.bos_id is None else bos_block
    with TokenFileWriter(path, header) as writer:
        for number in range(header.n_blocks):
            writer.write(block(header, number))
    return path


def write_documents(path: Path, header: Header, **changes: Any) -> Path:
    """The document table of a small file; a change is a whole column, or a row and its value."""
    if header.tokenizer.bos_id is None:
        places = [(5, 0, 0, 1, 0, 0), (7, 0, 5, 1, 0, 5)]
        sequences = np.repeat(np.arange(header.sequences), 2)
    else:
        places = [(5, 0, 0, 1, 0, 0), (19, 0, 5, 2, 1, 0), (4, 1, 8, 1, 1, 8)]
        sequences = np.repeat(np.arange(0, header.sequences, 2), 3)
    rows = np.arange(header.documents)
    n_tokens, sequence, offset, pieces, last_sequence, last_offset = np.array(places).T[:, rows % len(places)]
    columns: dict[str, Any] = {
        "row": rows,
        "doc_id": [i.to_bytes(16, "big") for i in range(header.documents)],
        "id": [f"document-{i}" for i in range(header.documents)],
        "source": ["crawl.jsonl"] * header.documents,
        "language": ["eng_Latn"] * header.documents,
        "n_tokens": n_tokens,
        "sequence": sequence + sequences,
        "offset": offset,
        "pieces": pieces,
        "last_sequence": last_sequence + sequences,
        "last_offset": last_offset,
    }
    for name, change in changes.items():
        if isinstance(change, tuple):
            columns[name][change[0]] = change[1]
        else:
            columns[name] = change
    pq.write_table(pa.table(columns), path)
    return path


class RecklessWriter(TokenFileWriter):
    """Seals whatever it is given: a writer with a fault."""

    def _checked(self, block: Block, where: str) -> Checked:
        return Checked()

    def _finish(self) -> None:
        self.seal = add_seal(self.path, [block.result() for block in self._blocks], self._position)


def write_recklessly(path: Path, header: Header, change: Callable[[Block], Block] | None = None) -> Path:
    """A small file with whatever header, whose block 1 was changed, and with a good seal."""
    with RecklessWriter(path, header) as writer:
        for number in range(small_header(40).n_blocks):
            block = small_block(small_header(), number)
            writer.write(change(block) if change and number == 1 else block)
    return path


def reseal(data: bytes, seal: Seal, path: Path) -> Path:
    """Write a file of these bytes, of which none moved since `seal` was made, with checksums that fit them."""
    path.write_bytes(data[: seal.end.end] + data[seal.footer.start :])
    parts = (
        [dataclasses.replace(r, sha256=sha256(data[r.start : r.end]).hexdigest()) for r in regions]
        for regions in (seal.heads, seal.bodies)
    )
    blocks = list(zip(*parts, strict=True))
    add_seal(path, blocks, seal.end.start)
    return path


def save_tokenizer(folder: Path, tokenizer: Tokenizer, config: Mapping[str, Any] | None) -> Path:
    """A folder as Hugging Face's `save_pretrained` writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def word_tokenizer() -> Tokenizer:
    """Whole words, an unknown token, and special tokens that stand in the vocabulary as words."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[SEP]": 1, "a": 2, "b": 3, "[": 4}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["[SEP]"])
    return tokenizer


def unigram_tokenizer() -> Tokenizer:
    """SentencePiece's unigram model, where `</s>` lies in the vocabulary with the best score of all."""
    scores = {"<unk>": 0.0, "<s>": 0.0, "</s>": 0.0, "▁": -2.0, "a": -3.0, "b": -3.0}
    scores |= dict.fromkeys("</s>", -5.0)
    tokenizer = Tokenizer(models.Unigram(list(scores.items()), unk_id=0, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.add_tokens(["<tool>"])
    return tokenizer


def letter_tokenizer(letters: str = "abcdefghijklmnopqrstuvwxyz ") -> Tokenizer:
    """BPE over these letters only, without unknown token and without bytes: every other character vanishes."""
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken("</s>", special=True)])
    return tokenizer


def small_bpe() -> str:
    """tokenizer.json of the default tokenizer with its first 600 tokens only: loads in a millisecond."""
    data: dict[str, Any] = json.loads((DEFAULT / "tokenizer.json").read_text(encoding="utf-8"))
    model = data["model"]
    model["vocab"] = {token: index for token, index in model["vocab"].items() if index < 600}
    model["merges"] = [pair for pair in model["merges"] if "".join(pair) in model["vocab"]]
    return json.dumps(data)

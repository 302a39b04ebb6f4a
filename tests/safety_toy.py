"""A BERT of a few thousand weights, and rows that it can learn in seconds: the training of safety models in miniature."""

from __future__ import annotations

import json
import random
from pathlib import Path

from quality_models.safety_training_rows import Row

LABELS = ("gambling", "hate")
PLAIN = "the cat sits on a mat and we walk home after rain with some bread for tea".split()
TELLING = {"gambling": "casino bet jackpot".split(), "hate": "scum vermin".split()}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *PLAIN, *(word for words in TELLING.values() for word in words)]


def toy_base(folder: Path, layers: int = 2) -> Path:
    """A folder in transformers' format with random weights."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel

    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=32, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=64, pad_token_id=0, initializer_range=0.2,
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def toy_rows(n: int, seed: int = 0) -> list[Row]:
    """A row has a label where one of its words tells it; a third has none."""
    draw = random.Random(seed)
    rows = []
    for at in range(n):
        words = [draw.choice(PLAIN) for _ in range(draw.randint(2, 8))]
        labels = [[], ["gambling"], ["hate"], ["gambling", "hate"], [], ["gambling"]][at % 6]
        for label in labels:
            for _ in range(3):
                words.insert(draw.randrange(len(words)), draw.choice(TELLING[label]))
        lang = ("zh", "eng", "klingon", "eng")[at % 4]
        rows.append(
            Row(" ".join(words), tuple(labels), lang, f"group {seed} {at // 2}", licence="CC0", where=f"toy:{at}")
        )
    return rows


def write_rows(rows: list[Row], path: Path) -> Path:
    """As JSON lines."""
    lines = [
        {"text": row.text, "labels": list(row.labels), "lang": row.lang, "pattern": row.group, "licence": row.licence}
        for row in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path

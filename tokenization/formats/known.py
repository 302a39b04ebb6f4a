"""Vocabularies whose files do not say how they split text: what their makers' code says, by the checksum of the file.

The patterns are facts of those models; each stands in its maker's own code (tiktoken, llama-models, Qwen).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CLASSES", "KNOWN", "Recipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a list of tokens leaves out."""

    name: str
    count: int
    """Tokens without special ones."""
    pattern: str | None
    """What one word is; None: GPT-2's, which the library has built in."""
    special: tuple[tuple[str, int], ...]
    """Names and ids, in the order of ids."""
    eos: str | None
    bos: str | None = None
    pad: str | None = None
    normalizer: str | None = None
    ignore_merges: bool = True
    """Whether what is a token as a whole is taken whole."""


def _numbered(first: int, *names: str) -> tuple[tuple[str, int], ...]:
    return tuple((name, first + index) for index, name in enumerate(names))


def _reserved(name: str, first: int, count: int) -> list[str]:
    return [f"<|{name}_{index}|>" for index in range(first, first + count)]


_ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_BLANKS}"
_QWEN = rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_BLANKS}"
# As tiktoken has it since 0.8: blanks at the end of a text that hold a line break are one word, not two.
_CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\z|\s*[\r\n]|\s+(?!\S)|\s"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDINGS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDINGS}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_BLANKS}"
)
_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")

_LLAMA3_SPECIAL = (
    *("<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>"),
    *(
        "<|finetune_right_pad_id|>",
        "<|step_id|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eom_id|>",
        "<|eot_id|>",
    ),
    *("<|python_tag|>", "<|image|>", *_reserved("reserved_special_token", 2, 244)),
)
_LLAMA4_SPECIAL = (
    *("<|begin_of_text|>", "<|end_of_text|>", *_FIM),
    *("<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>"),
    *_reserved("text_post_train_reserved_special_token", 0, 6),
    *("<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>"),
    *_reserved("text_post_train_reserved_special_token", 8, 61),
    *("<|image_start|>", "<|image_end|>", *_reserved("vision_reserved_special_token", 0, 2)),
    *("<|tile_x_separator|>", "<|tile_y_separator|>", *_reserved("vision_reserved_special_token", 2, 4)),
    *("<|image|>", "<|vision_reserved_special_token_6|>", "<|patch|>"),
    *_reserved("vision_reserved_special_token", 7, 1041),
    *_reserved("reasoning_reserved_special_token", 0, 8),
    *("<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"),
)
_N_LLAMA4 = 2048

GPT2 = Recipe("gpt2", 50_256, None, (("<|endoftext|>", 50_256),), "<|endoftext|>", ignore_merges=False)
R50K = Recipe("r50k_base", 50_256, None, (("<|endoftext|>", 50_256),), "<|endoftext|>")
P50K = Recipe("p50k_base", 50_280, None, (("<|endoftext|>", 50_256),), "<|endoftext|>")
CL100K = Recipe(
    "cl100k_base",
    100_256,
    _CL100K,
    (*_numbered(100_257, "<|endoftext|>", *_FIM), ("<|endofprompt|>", 100_276)),
    "<|endoftext|>",
)
O200K = Recipe(
    "o200k_base", 199_998, _O200K, (("<|endoftext|>", 199_999), ("<|endofprompt|>", 200_018)), "<|endoftext|>"
)
LLAMA3 = Recipe(
    "llama3",
    128_000,
    _LLAMA3,
    _numbered(128_000, *_LLAMA3_SPECIAL),
    eos="<|end_of_text|>",
    bos="<|begin_of_text|>",
    pad="<|finetune_right_pad_id|>",
)
LLAMA4 = Recipe(
    "llama4",
    200_000,
    _O200K,
    _numbered(200_000, *_LLAMA4_SPECIAL, *_reserved("reserved_special_token", 0, _N_LLAMA4 - len(_LLAMA4_SPECIAL))),
    eos="<|end_of_text|>",
    bos="<|begin_of_text|>",
    pad="<|finetune_right_pad|>",
)
QWEN = Recipe(
    "qwen",
    151_643,
    _QWEN,
    _numbered(151_643, "<|endoftext|>", "<|im_start|>", "<|im_end|>", *_reserved("extra", 0, 205)),
    eos="<|endoftext|>",
    normalizer="NFC",
)
QWEN2 = Recipe("qwen2", 151_643, _QWEN, (), "<|endoftext|>", normalizer="NFC", ignore_merges=False)
PLAIN_BPE = Recipe("vocab.json", 0, None, (), None, ignore_merges=False)

CLASSES: dict[str, Recipe] = {"GPT2Tokenizer": PLAIN_BPE, "RobertaTokenizer": PLAIN_BPE, "Qwen2Tokenizer": QWEN2}
"""`tokenizer_class` beside a vocab.json (without `Fast`) -> what it leaves out."""
KNOWN: dict[str, Recipe] = {
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783": GPT2,  # encoder.json
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": R50K,
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": P50K,
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": CL100K,
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": O200K,
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": LLAMA3,
    "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed": LLAMA4,
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": QWEN,
}
"""SHA-256 of the file -> what it leaves out."""

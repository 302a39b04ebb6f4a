"""The frozen probe texts: their ids stand in every token file, so that a trainer can check its own tokenizer.

Each text is here because tokenizers have differed on its like. The list is frozen: a change of it is a new
format of the token file.
"""

from __future__ import annotations

__all__ = ["PROBES"]

PROBES: tuple[str, ...] = (
    "",
    " ",
    "hello world",
    " hello world",
    "Hello World! It's 3 o'clock, they'll say we've DON'T'd.",
    "two  spaces,   three,\tone tab,\t\ttwo\r\nand\rline\n\nends \n \n",
    "trailing blanks   ",
    "\n\n\n\n\n\n\n",
    "                                ",
    "0 1 12 123 1234 12345 3.14159 1,000,000 1e-9 0xFF ½ ² ٣ ३ 三",
    "def f(x):\n    return {'a': x[0] != None, \"b\": x**2}  # why?\n\n\n    pass\n",
    '<div class="a">&nbsp;&amp;</div> https://example.org/a?b=c&d=%20#e mail@example.org',
    "$E = mc^2$ \\frac{a}{b} \\left( ... \\right) ------ ====== ______ ......",
    "今天天气很好，我们去公园吧。「引号」《书名》——……",
    "今天天氣很好，我們去公園吧。臺灣、體、鹽",
    "今日はいい天気ですね。カタカナとひらがな、漢字ー々〆",
    "오늘은 날씨가 좋네요. 한국어 띄어쓰기",
    "Grüße, Straße, façade, naïve, œuvre, ﬁne ﬂow, Ĳssel, İstanbul",
    "Съешь же ещё этих мягких французских булок. Ґанок, їжак",
    "Γειά σου Κόσμε, αρχαῖα ἑλληνικά",
    "السلام عليكم، مرحبا بالعالم ١٢٣ لا إله",
    "שלום עולם, עִבְרִית",
    "नमस्ते दुनिया, क्षत्रिय ज्ञान १२३",
    "สวัสดีชาวโลก ภาษาไทยไม่มีช่องว่าง",
    "வணக்கம் உலகம் தமிழ் மொழி",
    "Xin chào thế giới, tiếng Việt có dấu",
    "မင်္ဂလာပါ ကမ္ဘာ ភាសាខ្មែរ ລາວ",
    "გამარჯობა, հայերեն, አማርኛ, ᚠᚢᚦ, 𓂀, 𠮷野家",
    "cafe\u0301 A\u030a o\u0308 \u1100\u1161\u11a8 é Å ö 각",
    "\u0301\u0302\u0303 lone combining marks",
    "👋🏽 👩‍👩‍👧‍👦 🇯🇵🇫🇷 ❤️ ☺︎ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "full width ＡＢＣ１２３　（全角）, half width ｱｲｳ ﾊﾟ, ①②③ ㎏ ℡ ︰",
    "zero\u200bwidth\u200djoin\u2060er\ufeff, soft\u00adhyphen, nbsp\u00a0here, \u2028line\u2029para",
    "\u202eright to left\u202c \u0007bell \u0000nul \u001b[0m \x7f",
    "\ufffd \uffff \U0010ffff \ue000",
    "a<|endoftext|>b <|im_start|>user<|im_end|> <s> </s> [INST] [/INST] [CLS] [SEP] [MASK] <unk> <pad> <|pad|>",
    "<|endoftext|>",
    "</s>",
    "<0x0A> ▁under ĠGPT Ċ ##ing @@",
    "a" * 300,
    "=" * 300,
    "字" * 100,
    "ababababab" * 20 + "!" * 50,
)
"""At least one text for every script that the test data holds, and for every known trap."""

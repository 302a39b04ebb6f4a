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
    # Further scripts: one that a vocabulary does not know is where bytes, unknown tokens and losses are told apart.
    "বাংলা ভাষা, ਪੰਜਾਬੀ, ગુજરાતી, ଓଡ଼ିଆ, తెలుగు, ಕನ್ನಡ, മലയാളം, සිංහල",
    "བོད་སྐད། ᠮᠣᠩᠭᠣᠯ ᏣᎳᎩ ᐃᓄᒃᑎᑐᑦ ܣܘܪܝܝܐ ދިވެހި ⵜⴰⵎⴰⵣⵉⵖⵜ ꦗꦮ ᬩᬮᬶ ߒߞߏ ꆈꌠ ㄅㄆㄇ 𞤀𞤣𞤤𞤢𞤥 𐎀𐎁 𝔘𝕏",
    # Blanks and lines, at both ends and in runs of every length: where a prefix blank or a folded blank shows.
    " a b  c   d    e     f      g       h        i         j          k           l            m                z",
    "\n\nleading lines",
    " \n\t indented",
    "blanks behind a line\n  ",
    "\ta\t\tb\t\t\tc\t\t\t\td \t e\u3000f\u2003g\u00a0\u00a0h\r\n\r\n\r\ni\x0b\x0cj\x85k",
    "▁a ▁▁b▁c ▁",
    # Normalisers: composed and not, half and full width, letters that look alike.
    "か\u3099ハ\u309aﾊﾟﾋﾞ ～〜 ｡｢｣ ㍿㌔ ⑳ ⅷ Å Å ≠ =\u0338",
    "a\u0323\u0302 \u1ea5 u\u031b\u0301 \u1112\u1161\u11ab \u09c7\u09be \u0f73 ²\u0301 ª\u0300",
    "'S 'ſ 'Ll ’s DON’T I'M K ſt ǅ ŉ ß ẞ ﬁ İ ı",
    # Numbers, code, markup.
    "007 1234567890 12345678901234567890 １２３４５ ١٢٣٤٥ १२३४५ ๑๒๓ 10:30 2026-11-29 v2.0.1 1.5e10 -40°C $9.99 50%",
    'if (x <= y && *p++ != 0) {\n\t\treturn f(x, y)->z[i] ?: ~0u;\n\t}\n#define A(b) ((b)<<2)\n{"k": [1, 2.5, null, "\\u00e9\\n"]}\n',
    "# Title\n\n* item\n    1. **bold** _it_ `code`\n\n| a | b |\n|---|---|\n> quote\n```py\nx\n```\n[l](http://a.b/c_d?e=f#g)",
    # What spells a special token, with words and blanks at both sides: it must stay text.
    "<s>hello</s> hello  <s> x </s>\n<bos>a<eos> <|begin_of_text|>x<|end_of_text|> <|eot_id|>\n",
    "<｜begin▁of▁sentence｜>x<｜end▁of▁sentence｜> [BOS][EOS] <|startoftext|> <SPECIAL_20>[REF][REFERENCE_DOC_1] <extra_id_0> <0xFF><0x0A>",
    # Long runs: other kinds of loops than the ones above.
    "_" * 129 + "1" * 130 + "-" * 65 + "." * 66 + "~" * 33,
    " " * 130 + "x" + "\t" * 70 + "y" + "\n" * 70 + "z",
    "😀" * 33 + "\u0301" * 33 + "ー" * 33 + "ไ" * 33,
)
"""At least one text for every script that the test data holds, and for every known trap."""

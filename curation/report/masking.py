"""Personal data in crawled text masked, the length kept: addresses, numbers, accounts of messengers.

For excerpts: a few hundred characters at a time, microseconds each; every pattern is bounded. It masks too much rather than
too little: what a reader of a report must judge is the sentence, never whom it is about. Whatever is masked becomes bullets,
one a character, so that places in the text stay right. Who cuts a text masks first, with a margin: an address at the cut is
still an address.
"""

from __future__ import annotations

import re

__all__ = ["MASK", "mask"]

MASK = "\N{BULLET}"

# What stands between the digits of one number: blanks, marks, and what is not seen at all.
_HIDDEN = "\u00ad\u200b-\u200f\u2060\ufe0e\ufe0f\u20e3\ufeff"
_BETWEEN = rf"[ \u00a0\u2000-\u200a\u202f\u3000().\uff08\uff09\uff0d\uff0e·・•∙*_~–—★☆\-{_HIDDEN}]"
_DIGIT = r"[\d①-⑨⓪⓿❶-❾➀-➈➊-➒⑴-⑼⒈-⒐🄋🄌]"
_WORD_DIGIT = "[〇零一二三四五六七八九壹贰貳叁參肆伍陆陸柒捌玖幺]"

# Where words are not spaced, a letter may stand right before and behind a number that is no part of it.
_UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)

_EMAIL = re.compile(
    r"[^\s@<>()\[\]\"',;:]{1,64}[ \u3000]?[@\uff20][ \u3000]?[\w-]{1,63}(?:[ \u3000]?[.\uff0e\u3002][ \u3000]?[\w-]{1,63}){1,4}"
    r"|[\w.+-]{1,64} ?[(\[\uff08\u3010{] ?(?i:at) ?[)\]\uff09\u3011}] ?[\w-]{1,63}"
    r"(?: ?(?:\.|[(\[\uff08\u3010{] ?(?i:dot) ?[)\]\uff09\u3011}]) ?[\w-]{1,63}){1,4}"
)
_AT = re.compile(r"[@\uff20]|[(\[\uff08\u3010{] ?(?i:at) ?[)\]\uff09\u3011}]")
_NUMBER = re.compile(
    rf"(?:(?<![\w.,%])|(?<={_UNSPACED})|(?<=[_*]))[+\uff0b]?[(\uff08]?{_DIGIT}(?:{_BETWEEN}{{0,4}}{_DIGIT}){{6,29}}[Xx]?"
    rf"(?:(?![\w%])|(?={_UNSPACED})|(?=_))"
)
_WORD_NUMBER = re.compile(rf"{_WORD_DIGIT}(?:{_BETWEEN}{{0,2}}(?:{_WORD_DIGIT}|\d)){{6,29}}")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_NOT_A_PHONE = re.compile(
    r"(?:1[0-9]|20)\d\d[-./ ]?[01]?\d[-./ ][0-3]?\d(?:[ T][0-2]?\d)?"  # 2024-05-20, 2024.5.20 14
    r"|[0-3]?\d[-./][01]?\d[-./](?:1[0-9]|20)\d\d"  # 20.05.2024
    r"|(?:1[0-9]|20)\d\d ?[-\u2013/] ?(?:1[0-9]|20)\d\d"  # 1914-1918
    r"|\d+\.\d+"  # a decimal
)

# Links whose end is somebody's account.
_LINK = re.compile(
    r"(?<![A-Za-z0-9])(?:t(?:elegram)?[ \u3000]?[.\uff0e\u3002][ \u3000]?(?:me|dog)|wa[.\uff0e]me|(?:api|chat)\.whatsapp\.com"
    r"|line\.me|lin\.ee|u\.wechat\.com|qm\.qq\.com|join\.skype\.com|discord(?:app)?\.(?:gg|com/invite)"
    r"|open\.kakao\.com|zalo\.me|signal\.(?:me|group)|instagram\.com|facebook\.com|fb\.me|m\.me"
    r"|vk\.com|(?:twitter|x)\.com)"
    r"(?P<account>[ \u3000]?[/\uff0f?][ \u3000]?[!#-;=?-~０-９Ａ-Ｚａ-ｚ＿]{1,120})",
    re.IGNORECASE,
)
# A handle in Latin letters ends where other letters begin: what follows is the sentence.
_HANDLE = re.compile(
    rf"(?:(?<![\w@\uff20.])|(?<={_UNSPACED}))[@\uff20]"
    rf"(?P<account>[A-Za-z0-9_.\-０-９Ａ-Ｚａ-ｚ＿{_HIDDEN}]{{2,40}}|[\w.·\-{_HIDDEN}]{{2,20}})"
    r"|(?<=\w)[@\uff20](?:[A-Za-z0-9_]{4,40})"
)

# The name of a messenger, what may stand between it and an account, the account.
_SIGN = r"[\s:：=＝>→＞（(\[【「『〔/／|｜+＋~～,，.。、…\-—–_❤♥️☎✆📞📱💬✈▶☞👉👈&]"
_LABEL = (
    "(?i:id|no|num(?:ber)?|account|user(?:name)?|群|号码|号|號碼|號|账号|帐号|帳號|同|加|搜|是|為|为|联系|聯繫"
    "|アカウント|아이디|номер)"
)
_ACCOUNT = rf"[0-9A-Za-z_０-９Ａ-Ｚａ-ｚ①-⑨⓪][0-9A-Za-z_.０-９Ａ-Ｚａ-ｚ＿①-⑨⓪{_HIDDEN}\-]{{3,40}}"
_SPACED_ACCOUNT = rf"{_DIGIT}(?:{_BETWEEN}{{0,3}}{_DIGIT}){{3,29}}"
_CJK_MESSENGER = (
    "微[ .·]?信|薇[ .·]?信|威信|微❤️?|微♥️?|徽信|嶶信|溦信|卫星号?|V信|v信|Ｖ信|扣扣|企鹅号?|Q群|q群|球球"
    "|飞机号?|飛機|纸飞机|紙飛機|电报|電報|蝙蝠号?|賴|赖|ライン|カカオ|カカオトーク|テレグラム"
    "|薇|喂|威|韦|徽|扣|乞鹅|企鹅|라인|카톡|카카오톡|텔레그램|텔레|위챗|ไลน์"
)
_MESSENGER = (
    rf"(?:{_CJK_MESSENGER}"
    r"|(?<![A-Za-z])(?:(?i:v[ .\-]?x|w[ .\-]?x|we[ -]?chat|weixin|q[ .]?q|telegram|tele|whats[ -]?app|skype|kakao(?:talk)?"
    r"|viber|zalo|discord|snapchat|kik|wickr|session|potato|qq群|ватсап|вотсап|телеграмм?|вайбер|телега|тг)"
    r"|TG|tg|Tg|ＴＧ|LINE|Line|line|Ｌｉｎｅ|ＬＩＮＥ|ＱＱ|ＶＸ|ＷＸ|ICQ|IG|Ig|ig|Signal|signal)(?![a-z]))"
)
_CONTACT = re.compile(
    rf"(?P<messenger>{_MESSENGER})(?P<between>(?:{_SIGN}|{_LABEL}|{_MESSENGER}){{0,8}}[@\uff20]?)"
    rf"(?P<account>{_SPACED_ACCOUNT}|{_ACCOUNT})"
)
_ONE_CHARACTER = re.compile("[薇喂威韦徽扣]")
_CODE = re.compile(r"(?=.*[A-Za-zＡ-Ｚａ-ｚ])(?:\D*\d){2}|(?:\D*\d){6}")
_COMMON_WORD = re.compile(r"line|tele|kik|session|potato|signal|ig\b|Signal|Ig\b")
_PLAIN_WORD = re.compile(r"[a-z\-.]+|[A-Z]?[a-z\-.]+|[A-Z\-.]+")
_POINTS_AT = re.compile(r"[:：=＝>→＞@＠（(\[【+＋👉☞]|id|号|號|加|搜|아이디|номер|群|账|帐|帳", re.IGNORECASE)


def mask(text: str) -> str:
    """Put bullets for what leads to a person; the length stays, and so do the marks that show what it was.

    E-mail addresses, also spelt `name (at) host`; numbers of 7 to 30 digits of any script, circled ones too, with at most
    four separators or characters that are not seen between them (phones, bank cards, identity cards), which are neither a
    date, nor a range of years, nor a decimal number; seven Chinese numerals or more in a row; `@handles`; the account in links
    such as t.me/...; and what stands behind the name of a messenger where it looks like an account.
    """
    if _AT.search(text):
        text = _EMAIL.sub(_mask_address, text)
    text = _LINK.sub(_mask_account, text)
    text = _HANDLE.sub(lambda match: match.group()[0] + MASK * (len(match.group()) - 1), text)
    text = _CONTACT.sub(_mask_contact, text)
    text = _IBAN.sub(lambda match: re.sub(r"[A-Z0-9]", MASK, match.group()), text)
    text = _WORD_NUMBER.sub(lambda match: re.sub(rf"{_WORD_DIGIT}|\d", MASK, match.group()), text)
    return _NUMBER.sub(_mask_number, text)


def _mask_address(match: re.Match[str]) -> str:
    return "".join(c if c in "@.\uff20 \u3000" else MASK for c in match.group())


def _mask_account(match: re.Match[str]) -> str:
    start = match.start("account") - match.start()
    whole = match.group()
    return whole[:start] + "".join(c if c in " \u3000/\uff0f?." else MASK for c in whole[start:])


def _mask_contact(match: re.Match[str]) -> str:
    """`LINE the`, `WeChat users` and `line 1234` name no account: a word is one only if something points at it.

    A single character is part of many words: behind it stands an account only if it mixes letters and digits, or is long.
    """
    if _ONE_CHARACTER.fullmatch(match["messenger"]) and not _CODE.match(match["account"]):
        return match.group()
    is_word = _PLAIN_WORD.fullmatch(match["account"]) or _COMMON_WORD.match(match.group())
    if is_word and not _POINTS_AT.search(match["between"]):
        return match.group()
    start = match.start("account") - match.start()
    whole = match.group()
    return whole[:start] + re.sub(r"\S", MASK, whole[start:])


def _mask_number(match: re.Match[str]) -> str:
    text = match.group()
    return text if _NOT_A_PHONE.fullmatch(text.lstrip("(\uff08")) else re.sub(rf"{_DIGIT}|[Xx]", MASK, text)

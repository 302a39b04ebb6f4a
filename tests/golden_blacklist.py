"""The blacklist of the golden cases of `blacklisted`, and those cases.

    python -m tests.golden_blacklist        # writes both anew: after a change of what signatures are

The texts are those of the cases of `perplexity` that were made up in eighteen languages.
"""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from curation.blacklist import Blacklist, append
from curation.blacklist.entries import SIGNING
from curation.blacklist.signature import sign_texts, signing_text
from curation.ids import text_id
from tests.blacklists import FACTS, addresses, texts

CASES = Path(__file__).parent / "golden" / "cases"
FOLDER = Path("tests/golden/models/blacklist")
AT = datetime(2030, 1, 1, tzinfo=timezone.utc)
HAND = "example.net"
WORDS = {
    "en": " And so it goes on.", "de": " So geht es weiter.", "fr": " Et ainsi de suite.", "es": " Y así sigue todo.",
    "ru": " Так всё и идёт.", "zh": "就这样。", "zh-Hant": "就這樣。", "ja": "以上です。", "ko": " 그렇게 계속된다.",
    "ar": " وهكذا.", "hi": " और यही चलता है।", "th": " ก็เป็นเช่นนั้น", "vi": " Cứ thế mà đi.", "el": " Και έτσι συνεχίζεται.",
    "tr": " Böyle devam eder.", "it": " E così via.", "pl": " I tak dalej.", "pt": " E assim por diante.",
}  # fmt: skip
LISTED = ("en", "de", "fr", "zh", "ja", "ko", "ar", "th", "ru", "hi")


def fluent() -> dict[str, str]:
    """A text in each language."""
    cases = map(json.loads, (CASES / "perplexity.jsonl").read_text(encoding="utf-8").splitlines())
    return {case["lang"]: case["text"] for case in cases if case["id"] == f"fluent-{case['lang']}"}


def write_list() -> Blacklist:
    """Texts with and without signature, pages, domains; one that was taken back and one that has expired."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    known = fluent()
    ids = [text_id(known[lang]) for lang in LISTED]
    signed = pa.table({"signature": sign_texts([known[lang] for lang in LISTED])})
    table = texts(range(len(ids)), reason="rescore.noise", score=[float(i) for i in range(len(ids))])
    table = table.set_column(1, "key", pa.array(ids, pa.binary(16))).append_column("signature", signed["signature"])
    append(FOLDER, table.replace_schema_metadata({SIGNING: signing_text()}), FACTS)
    append(FOLDER, addresses("url", ["https://example.org/bad?page=1"], evidence=3), FACTS)
    append(FOLDER, addresses("domain", ["spam.example"], evidence=60), FACTS)
    append(FOLDER, addresses("domain", [HAND]), FACTS)
    append(FOLDER, addresses("domain", ["sub.weak.example", "weak.example"], evidence=[2, 80]), FACTS)
    gone = addresses("domain", ["old.example"], expires=datetime(2029, 1, 1, tzinfo=timezone.utc), evidence=99)
    append(FOLDER, gone, FACTS)
    append(
        FOLDER, table.slice(9, 1).select(["kind", "key", "reason"]).append_column("removed", pa.array([True])), FACTS
    )
    append(FOLDER, addresses("url", ["https://example.org/once"], evidence=1), FACTS)
    (FOLDER / "latest.json").unlink()
    return Blacklist.open(FOLDER, at=AT)


def cases(blacklist: Blacklist) -> list[dict[str, Any]]:
    """The cases, in order."""
    known = fluent()
    config = {
        "path": str(FOLDER),
        "version": blacklist.version,
        "digest": blacklist.digest,
        "at": "2030-01-01T00:00:00Z",
    }
    found: list[dict[str, Any]] = []

    def add(name: str, lang: str, text: str, reason: str | None, why: str, **more: Any) -> None:
        case = {"id": f"{name}-{lang}", "lang": lang, "text": text, "keep": reason is None}
        case |= {"reason": reason and f"blacklisted.{reason}", "source": "made up for this test", "why": why}
        settings = {**config, **more.pop("config", {})}
        found.append({**case, "config": settings, **more})

    for lang in LISTED[:9]:
        add("exact", lang, known[lang], "text", "This very text is on the list.", scores={"text_listed": True})
        why = "A listed text with one sentence more is the same page a week later."
        add("longer", lang, known[lang] + WORDS[lang], "near", why, scores={"text_listed": False})
    for lang in sorted(known.keys() - set(LISTED)):
        add("other", lang, known[lang], None, "A text that nobody has listed.", scores={"agreement": None})
    add("taken-back", "hi", known["hi"], None, "It was listed, and then taken back.")
    add("taken-back-longer", "hi", known["hi"] + WORDS["hi"], None, "The text that it copies was taken back.")
    half = known["en"][: len(known["en"]) // 2]
    add("half", "en", half, None, "Half of a listed text is another text: its Jaccard with it is 0.5.")
    add("near-off", "en", known["en"] + WORDS["en"], None, "Near copies are not asked for.", config={"near": False})
    strict = {"threshold": 1.0}
    add("strict", "en", known["en"] + WORDS["en"], None, "The threshold wants all places to agree.", config=strict)
    add("version-0", "en", known["en"], None, "Version 0 holds nothing.", config={"version": 0, "digest": ""})
    add("empty", "und", "", None, "A text without words is near to nothing.")
    text = "A page about bread."
    for name, url, reason, why, more in (
        ("page", "http://user@EXAMPLE.org:80/bad?page=1#top", "url", "The same page in another spelling.", {}),
        ("other-page", "https://example.org/bad?page=2", None, "Another query is another page.", {}),
        (
            "evidence",
            "https://example.org/bad?page=1",
            None,
            "Three documents are less than four.",
            {"min_evidence": 4},
        ),
        ("once", "https://example.org/once", "url", "One judged document is as many as the default asks for.", {}),
        ("domain", "https://shop.spam.example/x", "domain", "A domain stands for all below it.", {}),
        ("beside", "https://notspam.example/x", None, "It only ends in the same letters.", {}),
        ("by-hand", f"https://{HAND}/", "domain", "An entry by hand has no count and needs none.", {"min_evidence": 9}),
        ("parent", "https://sub.weak.example/", "domain", "The domain above has enough.", {"min_evidence": 50}),
        ("expired", "https://old.example/", None, "The entry has expired.", {}),
        ("no-address", "mailto:a", None, "It has no host.", {}),
    ):
        add(name, "en", text, reason, why, url=url, config=more)
    return found


def by_hand(made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cases that stand in the file and are not made here, held against the list as it is now."""
    now = {key: made[0]["config"][key] for key in ("version", "digest")}
    known = {case["id"] for case in made}
    lines = (CASES / "blacklisted.jsonl").read_text(encoding="utf-8").splitlines()
    rest = [case for case in map(json.loads, lines) if case["id"] not in known]
    return [{**case, "config": {**case["config"], **now}} for case in rest]


if __name__ == "__main__":
    rows = cases(write_list())
    rows += by_hand(rows)
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (CASES / "blacklisted.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

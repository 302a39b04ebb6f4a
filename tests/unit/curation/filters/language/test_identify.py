"""Languages of parts: who is asked, what the page lends, and that nothing depends on other documents."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.filters.language.cjk import CJK_LABELS
from curation.filters.language.identify import BY_SCRIPT, SAMPLE, UNDETERMINED, Found, Labels, identify
from curation.filters.language.scripts import DECIDED, SCRIPT_CODES, SHARED
from curation.filters.language.voters import NO_LANGUAGE, Panel, open_panel
from curation.text import Script, buffers
from curation.text.tables import CharClass
from quality_models.language_codes import LANGUAGE_SCRIPTS
from quality_models.language_models import CORPUSMILL, lid176
from tests.lines_oracle import kind

CASES = Path(__file__).parents[4] / "golden/cases/language.jsonl"

GERMAN = [
    "Der Bus hält im Winter nur an der Brücke, weil die Straße dahinter vereist ist.",
    "Wer zum Markt will, fährt deshalb mit dem Nachbarn oder geht zu Fuß durch den Wald.",
    "Die Fährfrau hat im Herbst das Ruder übernommen, weil ihr Vater nicht mehr gut sieht.",
    "Am Abend sitzen die Leute vor der Mühle und erzählen, was sie am Fluss gesehen haben.",
]
ENGLISH = [
    "The ferry runs only twice a day in winter, so people buy food for the whole week.",
    "The baker keeps a list of those who cannot come, and his son brings them bread.",
]


@cache
def panel() -> Panel:
    return open_panel(CORPUSMILL, ("py3langid", "corpusmill"), lid176())


@cache
def labels() -> Labels:
    return Labels(panel())


def look(*documents: str) -> Found:
    return identify(panel(), labels(), *buffers(pa.array(documents, pa.large_string())))


def parts_of(found: Found, document: int = 0) -> list[tuple[int, str, float]]:
    """Line, label and confidence of each part of a document; lines count from the document's first."""
    rows = np.flatnonzero(found.document == document)
    first = found.lines.spans.offsets[document]
    return [
        (int(found.parts.line[row] - first), labels().names[found.label[row]], float(found.confidence[row]))
        for row in rows
    ]


def line_labels(*lines: str) -> list[str]:
    """Label of the first part of each line of one document, empty where a line has none."""
    given: dict[int, str] = {}
    for line, label, _ in parts_of(look("\n".join(lines))):
        given.setdefault(line, label)
    return [given.get(line, "") for line in range(len(lines))]


# -- labels --------------------------------------------------------------------------------------------


def test_labels_are_numbered_once() -> None:
    """Every label stands once; those of `cjk` come first, in its order; und is among them."""
    names = labels().names
    assert len(set(names)) == len(names)
    assert tuple(names[: len(CJK_LABELS)]) == CJK_LABELS
    assert names[labels().und] == UNDETERMINED


def test_scripts_of_one_language_have_its_label() -> None:
    """Such a script gives its label; scripts of several languages, and of Chinese, Japanese and Korean, give none."""
    for script in Script:
        number = int(labels().decided[script])
        assert labels().names[number] == DECIDED.get(script, "")
        assert number == 0 or labels().by_script[number]


def test_shared_scripts_have_a_label_for_each_of_their_languages() -> None:
    """A language of the panel has a label in each script that it is written in, and in no other."""
    for script in Script:
        for place, language in enumerate(panel().languages):
            number = int(labels().of[script, place])
            code = SCRIPT_CODES.get(script, "")
            if language == NO_LANGUAGE:
                assert number in (0, labels().und), "what a model knows to be no language has no name"
            elif script in SHARED and code in LANGUAGE_SCRIPTS.get(language, (code,)):
                assert labels().names[number] == f"{language}_{code}"
                assert not labels().by_script[number]
            else:
                assert number == 0


def test_labels_know_their_language() -> None:
    """Labels of one code are one language, whatever their script; the number is the panel's where it knows the code."""
    codes: dict[int, set[str]] = {}
    for name, language in zip(labels().names, labels().language.tolist(), strict=True):
        code = name.partition("_")[0]
        codes.setdefault(language, set()).add(code)
        if code in panel().languages:
            assert panel().languages[language] == code
        else:
            assert language >= len(panel().languages)
    assert all(len(one) == 1 for one in codes.values())


# -- who is asked ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", DECIDED, ids=lambda s: s.name)
def test_a_script_of_one_language_asks_no_model(script: Script) -> None:
    """Its letters are the answer, as sure as the script is; the models' views are left empty."""
    letters = [chr(code) for code in range(0x370, 0x1E960) if _script(code) == script][:40]
    found = look(" ".join("".join(letters[i : i + 5]) for i in range(0, len(letters), 5)))
    assert {label for _, label, _ in parts_of(found)} == {DECIDED[script]}
    assert found.confidence.tolist() == [np.float32(BY_SCRIPT)] * len(found.label)
    assert (found.fasttext[0] == -1).all()
    assert (found.langdetect[0] == -1).all()


def _script(code: int) -> Script | None:
    char_class, _, script = kind(chr(code))
    return script if char_class == CharClass.LETTER else None


@pytest.mark.parametrize(
    ("line", "label"),
    [
        (GERMAN[0], "deu_Latn"),
        (ENGLISH[0], "eng_Latn"),
        ("Стари млин поред реке поново је отворен, а деца увече долазе да помогну.", "srp_Cyrl"),
        ("Старият мост беше затворен през зимата, но сега децата отново минават по него.", "bul_Cyrl"),
        ("کتابخانه قدیمی شهر دوباره باز شده است و هر خواننده می‌تواند کتاب بگیرد.", "fas_Arab"),
        ("די אַלטע מיל בײַם טײַך איז ווידער אָפֿן, און די קינדער קומען העלפֿן.", "yid_Hebr"),
        ("नदी किनारको पुरानो पसल फेरि खुलेको छ र केटाकेटीहरू साँझ त्यहाँ सघाउन आउँछन्।", "nep_Deva"),
        ("নদীৰ পাৰৰ পুৰণি দোকানখন আকৌ খুলিছে আৰু ল'ৰা-ছোৱালীবোৰে সহায় কৰিবলৈ আহে।", "asm_Beng"),
        ("ልጆቹ ጠዋት ወደ ትምህርት ቤት በእግራቸው ይሄዳሉ፤ ማታም ወደ ቤታቸው ይመለሳሉ።", "amh_Ethi"),
    ],
)
def test_sentences_alone(line: str, label: str) -> None:
    """A sentence in a script that languages share, without a page around it: models know it, in its script."""
    ((_, found, confidence),) = parts_of(look(line))
    assert found == label
    assert confidence > 0.6


def test_a_language_is_named_in_the_script_that_is_there() -> None:
    """No language is named in a script that it is not written in, whatever a model says."""
    texts = [json.loads(line)["text"] for line in CASES.read_text(encoding="utf-8").splitlines()]
    found = look(*texts)
    for script, number in zip(found.parts.script.tolist(), found.label.tolist(), strict=True):
        name = labels().names[number]
        assert name == UNDETERMINED or name.partition("_")[2] == SCRIPT_CODES[Script(script)]


def test_nothing_known_is_undetermined() -> None:
    """Letters of scripts that nobody knows: und, with no confidence, and no view of any model."""
    found = look("ᚠᚢᚦᚨᚱᚲ ᚷᚹᚺᚾᛁᛃ ᛈᛇᛉᛊᛏᛒ ᛖᛗᛚᛜᛞᛟ", "", "12345", "\n\n")
    assert parts_of(found) == [(0, UNDETERMINED, 0.0)]
    assert found.fasttext[0].tolist() == found.langdetect[0].tolist() == [-1]


# -- what the page lends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("short", ["Hotel Taxi", "Restaurant", "Information", "Museum, Park", "Kontakt"])
def test_short_lines_borrow_from_the_page(short: str) -> None:
    """A line of words that many languages share is in the language of the page around it."""
    assert line_labels(*GERMAN, short) == ["deu_Latn"] * 5
    assert line_labels(short, *GERMAN) == ["deu_Latn"] * 5


def test_short_lines_borrow_from_other_pages_as_well() -> None:
    """The same line is English in an English page."""
    assert line_labels(*ENGLISH * 2, "Hotel Taxi") == ["eng_Latn"] * 5


@pytest.mark.parametrize("place", range(5))
def test_a_sentence_in_another_language_keeps_its_own(place: int) -> None:
    """What has evidence of its own is not overruled by the page."""
    lines = [*GERMAN]
    lines.insert(place, ENGLISH[0])
    assert line_labels(*lines) == ["eng_Latn" if i == place else "deu_Latn" for i in range(5)]


@pytest.mark.parametrize("n_before", [1, 3, 12, 60])
def test_languages_after_the_sample_are_found(n_before: int) -> None:
    """langdetect sees only a sample of a long page, but a paragraph in another language is found wherever it is."""
    before = GERMAN * n_before
    after = GERMAN * 2
    assert sum(map(len, before)) > SAMPLE or n_before < 12
    assert line_labels(*before, *ENGLISH, *after) == ["deu_Latn"] * len(before) + ["eng_Latn"] * 2 + ["deu_Latn"] * 8


def test_a_near_language_after_the_sample_is_found() -> None:
    """The same for languages of one family: Ukrainian after a long Russian text."""
    russian = ["По воскресеньям в здании работает буфет, где можно выпить чаю и поговорить с соседями."] * 40
    ukrainian = ["Щовечора тут збираються діти, яким бабусі розповідають казки про річку та її мешканців."] * 4
    assert line_labels(*russian, *ukrainian) == ["rus_Cyrl"] * 40 + ["ukr_Cyrl"] * 4


def test_the_page_lends_only_what_the_script_can_be() -> None:
    """A short word in Cyrillic within a German page is not German."""
    found = line_labels(*GERMAN, "Москва", "Ελλάδα")
    assert found[:4] == ["deu_Latn"] * 4
    assert found[4] == UNDETERMINED or found[4].endswith("_Cyrl")
    assert found[5] == "ell_Grek"


# -- documents do not see each other -----------------------------------------------------------------------


POOL = [
    "",
    "Hotel Taxi",
    "ok",
    "\n".join(GERMAN),
    "\n".join([*GERMAN, "Hotel Taxi", *ENGLISH]),
    "\n".join(ENGLISH * 20),
    "\n".join([*GERMAN * 10, *ENGLISH * 3]),
    "ბავშვები დილით სკოლაში ფეხით მიდიან\nok",
    "请把 pull request 合并到 main branch",
    "Москва\nКиев",
    "Qwrtz plkmn vbxdf hjklw zzqrt mnbvc",
    "12\n\n34",
]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(range(len(POOL))), max_size=8))
def test_a_document_is_judged_as_if_it_were_alone(chosen: list[int]) -> None:
    """Labels and confidences of its parts are, to the bit, those that the document has alone."""
    found = look(*(POOL[i] for i in chosen))
    for place, i in enumerate(chosen):
        assert parts_of(found, place) == alone()[i]


@pytest.mark.parametrize("at_once", [1, 3, 7])
def test_how_many_parts_are_worked_on_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """To the bit: documents are judged whole, however few of their parts fit."""
    words = "\n".join("zlorp blim gatto haus rzecz kuća perro".split() * 3)
    documents = [*POOL, words, words]
    whole = look(*documents)
    monkeypatch.setattr("curation.filters.language.identify.AT_ONCE", at_once)
    assert [parts_of(look(*documents), i) for i in range(len(documents))] == [
        parts_of(whole, i) for i in range(len(documents))
    ]


@cache
def alone() -> list[list[tuple[int, str, float]]]:
    return [parts_of(look(text)) for text in POOL]


def test_no_documents() -> None:
    """Nothing in, nothing out, with types."""
    found = look()
    assert len(found.label) == len(found.document) == len(found.confidence) == 0
    assert found.label.dtype == np.int32
    assert found.confidence.dtype == np.float32


def test_kanji_alone_stay_open_in_a_page_of_both_languages() -> None:
    """A heading that Chinese and Japanese write alike is undecided among lines of both, and Japanese among Japanese."""
    chinese = "这家图书馆每天早上九点开门，很多人觉得这样很方便。"
    japanese = "この図書館は毎朝九時に開きますので、とても便利だと思います。"
    heading = "会社概要"
    both = [chinese, chinese, heading, japanese, chinese]
    for lines, expected in ((both, UNDETERMINED), ([japanese, heading, japanese], "jpn_Jpan")):
        found = look("\n".join(lines))
        assert CJK_LABELS[found.cjk.label[lines.index(heading)]] == expected

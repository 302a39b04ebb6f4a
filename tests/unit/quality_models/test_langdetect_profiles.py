"""langdetect's profiles and normalisation: what its own code makes of them, and damaged files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from quality_models.langdetect_profiles import BLANK, pack, read_profiles


def installed() -> Path:
    spec = find_spec("langdetect")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small langdetect: two languages."""
    for name in ("af", "zh-cn"):
        (tmp_path / "profiles").mkdir(exist_ok=True)
        shutil.copy(installed() / "profiles" / name, tmp_path / "profiles" / name)
    (tmp_path / "utils").mkdir()
    shutil.copy(installed() / "utils" / "messages.properties", tmp_path / "utils")
    return tmp_path


def test_frequencies_are_those_of_langdetect() -> None:
    """Every sequence, every language, every probability; longer sequences are left out, as langdetect never asks."""
    from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    profiles = read_profiles()
    assert profiles.labels == tuple(sorted(factory.langlist))
    known = {pack(gram): row for gram, row in factory.word_lang_prob_map.items() if len(gram) <= 3}
    assert profiles.grams.tolist() == sorted(known)
    table = np.zeros((len(known), len(profiles.labels)))
    table[np.repeat(np.arange(len(known)), np.diff(profiles.offsets)), profiles.languages] = profiles.frequencies
    theirs = np.array([known[gram] for gram in sorted(known)])
    assert (table == theirs[:, [factory.langlist.index(label) for label in profiles.labels]]).all()


def test_every_character_is_read_as_langdetect_reads_it() -> None:
    """All code points but surrogates, which text cannot hold: NGram.normalize."""
    from langdetect.utils.ngram import NGram

    normal = read_profiles().normal.tolist()
    NGram.normalize("a")
    # Beyond the last block that it treats, sampled: the rest takes 2 s.
    codes = [*range(0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, 61)]
    assert [code for code in codes if ord(NGram.normalize(chr(code))) != normal[code]] == []
    assert normal[0] == normal[ord("7")] == BLANK


def test_letters_and_marks_are_composed_as_langdetect_composes_them() -> None:
    """All pairs of a Vietnamese letter and a mark: NGram.normalize_vi."""
    from langdetect.utils.ngram import NGram

    composed = read_profiles().composed.tolist()
    assert len(composed) == len(NGram.TO_NORMALIZE_VI_CHARS) * len(NGram.DMARK_CLASS)
    assert all(NGram.normalize_vi(chr(letter) + chr(mark)) == chr(whole) for letter, mark, whole in composed)


def test_a_folder_of_ones_own(folder: Path) -> None:
    """Other profiles may be read; hidden files are left alone."""
    (folder / "profiles" / ".hidden").write_text("no profile")
    assert read_profiles(folder).labels == ("af", "zh-cn")


def test_the_package_is_not_imported() -> None:
    """Reading its files runs none of its code."""
    program = "import sys; from quality_models.langdetect_profiles import read_profiles as r; r(); print('langdetect' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a langdetect profile"),
        (b"\xff\xfe", "expected a langdetect profile"),
        (b"[]", "expected a langdetect profile"),
        (b'{"freq": {"a": 1}, "n_words": [1, 1, 1]}', "KeyError: 'name'"),
        (b'{"freq": {"a": 1}, "n_words": [1, 1], "name": "xx"}', r"n_words \[1, 1\]"),
        (b'{"freq": {"a": 1}, "n_words": [0, 1, 1], "name": "xx"}', "ZeroDivisionError"),
        (b'{"freq": {"a": "b"}, "n_words": [1, 1, 1], "name": "xx"}', "expected a langdetect profile"),
        (
            b'{"freq": {"a": 2}, "n_words": [1, 1, 1], "name": "xx"}',
            "expected counts from 1 to n_words, found 2 for 'a'",
        ),
        (b'{"freq": {"a": 0}, "n_words": [1, 1, 1], "name": "xx"}', "found 0"),
        (b'{"freq": {"a": 1}, "n_words": [1, 1, 1], "name": "af"}', "different languages"),
        (json.dumps({"freq": [1], "n_words": [1, 1, 1], "name": "xx"}).encode(), "freq a list"),
    ],
)
def test_damaged_profiles_are_named(folder: Path, content: bytes, message: str) -> None:
    """ValueError with the file, what was expected and what was found."""
    (folder / "profiles" / "xx").write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_profiles(folder)
    assert str(folder / "profiles") in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "none of the keys"), (b"\xff", "expected ASCII"), (b"NGram.LATIN1_EXCLUDE=\\u00", "expected ASCII")],
)
def test_damaged_messages_are_named(folder: Path, content: bytes, message: str) -> None:
    """Also the file that says how characters are read."""
    (folder / "utils" / "messages.properties").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_profiles(folder)


def test_missing_files_are_named(tmp_path: Path) -> None:
    """FileNotFoundError with the path."""
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        read_profiles(tmp_path)

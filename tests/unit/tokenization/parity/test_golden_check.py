"""A trainer's check of its own tokenizer against the golden ids of a token file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer as Backend

from tests.parity_variants import small, twin
from tests.token_files import small_header
from tokenization.errors import TokenizerError
from tokenization.layout import Header
from tokenization.parity import check_golden
from tokenization.probes import PROBES
from tokenization.tokenizer import Tokenizer

REPO = Path(__file__).resolve().parents[4]


def header_of(tokenizer: Tokenizer) -> Header:
    """A file that this tokenizer made."""
    return replace(
        small_header(),
        tokenizer=tokenizer.card(),
        golden_texts=PROBES,
        golden_ids=tokenizer.golden_ids,
    )


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return small(tmp_path_factory.mktemp("ours"))[1]


def as_a_trainer(path: Path) -> Callable[[str], list[int]]:
    """`encode` of the library, with all that the file says."""
    backend = Backend.from_file(str(path))
    return lambda text: list(backend.encode(text).ids)


def test_the_same_tokenizer_is_equal(ours: Tokenizer, tmp_path: Path) -> None:
    """The stock library, called as a trainer calls it; special tokens that it reads in text are no difference."""
    path, _ = small(tmp_path)

    found = check_golden(as_a_trainer(path), header_of(ours))

    assert found.equal, found.message()
    assert found.special > 0
    assert found.notes
    found.raise_if_different()


@pytest.mark.parametrize("name", ["bos", "eos"])
def test_what_encode_adds_is_a_note(ours: Tokenizer, tmp_path: Path, name: str) -> None:
    """BOS and EOS around every text change no id of the text; they are said where the file has them not."""
    found = check_golden(as_a_trainer(twin(tmp_path, name)), header_of(ours))

    assert found.equal, found.message()
    assert any("every text" in note for note in found.notes) is (name != "eos"), found.notes


@pytest.mark.parametrize(("name", "where"), [("double_bos", "before"), ("double_eos", "behind")])
def test_what_encode_adds_twice_is_a_fault(ours: Tokenizer, tmp_path: Path, name: str, where: str) -> None:
    """A template puts BOS and the tokenizer once more: no id of the text differs, and a training would see it doubled."""
    found = check_golden(as_a_trainer(twin(tmp_path, name)), header_of(ours))

    assert (found.differing, found.equal) == (0, False)
    with pytest.raises(TokenizerError, match=f"twice {where} every text: .*double BOS"):
        found.raise_if_different()


@pytest.mark.parametrize("found", [None, ["Ġa", "b"], {"input_ids": ["a"]}, [[1, 2]], {"ids": [1]}, 7])
def test_what_gives_no_ids_is_named(ours: Tokenizer, found: object) -> None:
    """Tokens as text, a batch, nothing: a message that says what is expected, no error of another library."""
    with pytest.raises(TokenizerError, match=r"Expected its ids, a list of whole numbers"):
        check_golden(lambda text: found, header_of(ours))


def test_ids_come_in_any_library_s_form(ours: Tokenizer) -> None:
    """A list, an array, an encoding, a mapping with `input_ids`."""
    header = header_of(ours)

    def golden(text: str) -> list[int]:
        return list(header.golden_ids[header.golden_texts.index(text)])

    for shape in (golden, lambda t: np.array(golden(t)), lambda t: {"input_ids": golden(t)}):
        assert check_golden(shape, header).equal
    assert check_golden(lambda text: SimpleNamespace(ids=golden(text)), header).equal


def test_a_bos_that_the_file_has_is_missed(ours: Tokenizer, tmp_path: Path) -> None:
    """Documents with a BOS, and a tokenizer that puts none."""
    path, _ = small(tmp_path)
    header = header_of(ours)
    header = replace(header, tokenizer=replace(header.tokenizer, bos="<s>", bos_id=599))

    notes = check_golden(as_a_trainer(path), header).notes

    assert any("begins with '<s>' (599)" in note for note in notes), notes


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("lower_case", "lower-cases"),
        ("nfkc", "NFKC"),
        ("prefix_space", "puts a blank before"),
        ("truncation", "after 40 tokens"),
        ("shifted", "moved by +3"),
    ],
)
def test_the_cause_is_named(ours: Tokenizer, tmp_path: Path, name: str, cause: str) -> None:
    """From the golden ids and the trainer's own function alone."""
    found = check_golden(as_a_trainer(twin(tmp_path, name)), header_of(ours), vocab_size=600)

    assert not found.equal
    assert cause in found.message()
    with pytest.raises(TokenizerError, match="golden texts have other ids"):
        found.raise_if_different()


def test_our_normaliser_and_not_theirs(tmp_path: Path) -> None:
    """Theirs on the changed text gives the file's ids: the file was made with a normaliser."""
    from tokenization.tokenizer import load_tokenizer

    lower = load_tokenizer(twin(tmp_path, "lower_case"), fast=False)
    path, _ = small(tmp_path / "plain")

    found = check_golden(as_a_trainer(path), header_of(lower))

    assert "lower-cases text" in found.message()


def test_the_place_is_named(ours: Tokenizer, tmp_path: Path) -> None:
    """Text, token, both ids and, where somebody can decode, what they stand for."""
    path = twin(tmp_path, "renumbered")
    backend = Backend.from_file(str(path))

    found = check_golden(as_a_trainer(path), header_of(ours), decode=lambda ids: str(backend.decode(ids)))

    assert found.difference is not None
    first = found.difference
    assert {first.ours.at(first.token).split()[0], first.theirs.at(first.token).split()[0]} == {"301", "302"}
    assert first.where.startswith("golden text ")
    assert f"token {first.token} is" in found.message()


def test_another_model_is_told_by_its_size(ours: Tokenizer) -> None:
    """GPT-2's size is a name."""
    found = check_golden(lambda text: [b + 300 for b in text.encode()], header_of(ours), vocab_size=50_257)

    assert "50,257 with the trainer (GPT-2)" in found.message()


def test_another_library_is_the_last_guess(ours: Tokenizer) -> None:
    """Bug B139: an upgrade changes ids; the file names the version that made it."""
    golden = dict(zip(PROBES, ours.golden_ids, strict=True))
    changed = PROBES[9]

    found = check_golden(
        lambda text: [*golden[text][:-1], 5] if text == changed else golden.get(text, (7,)),
        header_of(ours),
        library="tokenizers 99.0",
    )

    assert found.differing == 1
    assert f"made with {ours.card().library}, this is tokenizers 99.0" in found.message()


def test_a_trainer_needs_no_pipeline() -> None:
    """Importing the check loads no tokenizer library, no curation, no pydantic."""
    script = (
        "import sys; import tokenization.parity, tokenization.reader\n"
        "heavy = {'tokenizers', 'fastokens', 'curation', 'pydantic', 'transformers', 'torch', 'sentencepiece', 'numba'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPO, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_hostile_text_is_escaped(ours: Tokenizer) -> None:
    """A message holds no control character, whatever the text."""
    header = replace(header_of(ours), golden_texts=("\x1b[2J\u202eabc",), golden_ids=((2, 3),))

    message = check_golden(lambda text: [2, 4], header, decode=lambda ids: "\x1b" * len(ids)).message()

    assert message.isprintable(), message


def any_encode(value: Any) -> Callable[[str], Any]:
    return lambda text: value


def test_numpy_ids_are_ids(ours: Tokenizer) -> None:
    """Whatever sequence of integers a library gives."""
    import numpy as np

    header = replace(header_of(ours), golden_texts=("a",), golden_ids=((66,),))

    assert check_golden(any_encode(np.array([66], np.uint16)), header).equal

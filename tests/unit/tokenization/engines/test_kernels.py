"""Kernels are compiled once and kept where they can be; reading in words reads what is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from tokenization.engines import kernels
from tokenization.engines.kernels import SLACK, at, cache_folder, kernel, load64, store64


@kernel
def _read(data: Any, words: Any, out: Any) -> Any:
    for i in range(len(out)):
        out[i] = load64(data, i)
    store64(data, 1, np.uint64(0x0807060504030201))
    return at(words, 1)


def test_words_are_read_and_written_at_any_place() -> None:
    """Little-endian, aligned or not; an element has the type of its array."""
    data, words, out = np.arange(SLACK, dtype=np.uint8), np.array([1, 2**63], np.uint64), np.empty(9, np.uint64)
    before = data.tobytes()
    assert _read(data, words, out) == 2**63
    assert [int(word) for word in out] == [int.from_bytes(before[i : i + 8], "little") for i in range(9)]
    assert data.tobytes() == before[:1] + bytes(range(1, 9)) + before[9:]


@pytest.fixture
def anew() -> Any:
    """Forget the folder before and after."""
    cache_folder.cache_clear()
    yield
    cache_folder.cache_clear()


def test_the_cache_lies_where_it_can_be_written(anew: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numba's own setting first; folders that cannot be made are passed over; without any there is no cache."""
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "asked"))
    assert Path(str(cache_folder())).parent == tmp_path / "asked"
    cache_folder.cache_clear()
    monkeypatch.setattr(kernels, "_candidates", lambda: iter([blocked, tmp_path / "second"]))
    assert Path(str(cache_folder())).parent == tmp_path / "second"
    cache_folder.cache_clear()
    monkeypatch.setattr(kernels, "_candidates", lambda: iter([blocked]))
    assert cache_folder() is None
    assert kernel(lambda x: x + 1)(1) == 2


def test_a_folder_that_others_can_write_holds_no_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The private folder in the temporary directory is used only if nobody else can put files there."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    private = tmp_path / f"corpusmill-{os.getuid()}"
    assert private in list(kernels._candidates())
    private.chmod(0o777)
    assert private not in list(kernels._candidates())


def test_all_kernels_are_compiled_by_one_command() -> None:
    """`python -m tokenization`, for images and before tests."""
    command = [sys.executable, "-m", "tokenization"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("kernels ready in ")


def test_importing_the_tokenizer_imports_no_numba() -> None:
    """It takes half a second, and a reader of the card needs none."""
    code = "import sys, tokenization.tokenizer as t; t.load_tokenizer().card(); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.slow
def test_kernels_stay_inside_of_their_arrays(tmp_path: Path) -> None:
    """With every access checked, those of `at` and of the words too, their tests find nothing outside."""
    checked = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    outside = "import numba, numpy; from tokenization.engines.kernels import at; numba.njit(lambda x: at(x, 0))(numpy.zeros(0))"
    ran = subprocess.run([sys.executable, "-c", outside], env=checked, capture_output=True, text=True, check=False)
    assert "IndexError: index is out of bounds" in ran.stderr
    tests = [
        str(Path(__file__).with_name(name)) for name in ("test_merges.py", "test_bytes_kernel.py", "test_round_trip.py")
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "not time", *tests]
    ran = subprocess.run(command, env=checked, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:]

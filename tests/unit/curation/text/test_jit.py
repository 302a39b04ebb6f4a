"""Machine code is kept where it can be, never where it is stale, and never stops an import."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest

from curation.text import jit


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with one module, as an installed package is one."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "module.py").write_text("ONE = 1\n")
    return folder


@pytest.fixture(autouse=True)
def no_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Every test finds its folders anew, in folders of its own."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    jit.cache_folder.cache_clear()
    jit._digest.cache_clear()
    yield
    jit.cache_folder.cache_clear()
    jit._digest.cache_clear()


def block(path: Path) -> None:
    """Make a folder impossible, for root too: a file has its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")


def test_candidates_in_order(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numba's setting, beside the module, the user's cache, a private temporary folder, and at last none."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "chosen"))
    places = [tmp_path / "chosen", package / "__pycache__", tmp_path / "home" / ".cache" / "corpusmill"]
    for place in places:
        found = jit.cache_folder.__wrapped__(package)
        assert found is not None
        assert place == Path(found).parent
        if place.exists():
            place.rename(place.with_name(place.name + "-moved"))
        block(place)
    found = jit.cache_folder.__wrapped__(package)
    assert found is not None
    assert (tmp_path / "tmp") == Path(found).parent.parent
    assert Path(found).parent.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "home" / ".cache" / "corpusmill"))
    assert jit.cache_folder.__wrapped__(package) is None


def test_a_temporary_folder_that_others_can_write_is_refused(package: Path, tmp_path: Path) -> None:
    """Cached kernels are code: they are not taken from where another user could have put them."""
    block(package / "__pycache__")
    block(tmp_path / "home")
    private = Path(str(jit.cache_folder.__wrapped__(package))).parent
    private.chmod(0o777)

    assert jit.cache_folder.__wrapped__(package) is None


def test_an_account_without_home(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No home directory is no error."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    block(package / "__pycache__")

    assert (tmp_path / "tmp") in Path(str(jit.cache_folder.__wrapped__(package))).parents


def test_a_changed_source_is_another_folder(package: Path) -> None:
    """Kernels inline functions of other modules and tables: any change in the folder makes the cache stale."""
    folders = {jit.cache_folder.__wrapped__(package)}
    for name, content in (("module.py", "ONE = 2\n"), ("other.py", ""), ("table.tsv", "a\tb\n")):
        (package / name).write_text(content)
        jit._digest.cache_clear()
        folders.add(jit.cache_folder.__wrapped__(package))

    assert len(folders) == 4


def test_kernels_run_with_and_without_a_cache(package: Path, tmp_path: Path) -> None:
    """A kernel gives the same whether its code can be kept or not."""
    (package / "module.py").write_text(
        "from curation.text.jit import kernel\n\n@kernel\ndef double(x):\n    return 2 * x\n"
    )
    for kept in (True, False):
        spec = importlib.util.spec_from_file_location("module", package / "module.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.double(21) == 42
        files = list(package.rglob("*.nbi"))
        assert kept == bool(files)
        if kept:
            (package / "__pycache__").rename(tmp_path / "away")
            block(package / "__pycache__")
            block(tmp_path / "home")
            (tmp_path / "tmp").rmdir()
            jit.cache_folder.cache_clear()

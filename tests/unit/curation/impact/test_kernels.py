"""Which compiled kernels another version of the code is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.impact.code import Sources
from curation.impact.kernels import _cache, share_kernels

FILES = {
    "curation/__init__.py": "",
    "curation/judge.py": "",
    "curation/text/__init__.py": "",
    "curation/text/jit.py": "kernel = None\n",
    "curation/text/words.py": "from curation.text.jit import kernel\n",
    "curation/filters/__init__.py": "FILTERS = {}\n",
    "curation/filters/a/__init__.py": "",
    "curation/filters/a/fast.py": "from curation.text.jit import kernel\nfrom curation.filters.a import limits\n",
    "curation/filters/a/limits.py": "LIMIT = 1\n",
    "curation/filters/a/table.tsv": "1\n",
}


def _tree(folder: Path, **changed: str) -> Sources:
    files = {**FILES, **changed}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Sources(folder)


def _compile(sources: Sources) -> None:
    """What numba would leave."""
    for name in ("text/words", "filters/a/fast"):
        module = sources.folder / "curation" / f"{name}.py"
        for kind in ("nbi", "1.nbc"):
            path = _cache(module) / f"{module.stem}.f-3.py311.{kind}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{module.stem} {kind}")


@pytest.mark.parametrize(
    ("file", "text", "shared"),
    [
        (None, "", {"words", "fast"}),
        ("curation/filters/a/limits.py", "LIMIT = 2\n", {"words"}),
        ("curation/filters/a/table.tsv", "2\n", {"words"}),
        ("curation/filters/a/fast.py", "# moved by a line\n" + FILES["curation/filters/a/fast.py"], {"words"}),
        ("curation/text/words.py", "from curation.text.jit import kernel\nX = 1\n", {"fast"}),
        ("curation/text/jit.py", "kernel = 1\n", set()),
        ("curation/filters/b.py", "x = 1\n", {"words", "fast"}),
    ],
)
def test_kernels_are_shared_where_all_that_they_hold_is_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str | None, text: str, shared: set[str]
) -> None:
    """The module to the byte, what it imports, and the tables beside it."""
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    here, there = _tree(tmp_path / "here"), _tree(tmp_path / "there", **({file: text} if file else {}))
    _compile(here)
    assert share_kernels(here, there) == len(shared)
    found = set(there.folder.rglob("*.nb?"))
    assert {path.name.partition(".")[0] for path in found} == shared
    for path in found:
        module = next(there.folder.rglob(f"{path.name.partition('.')[0]}.py"))
        assert path.parent == _cache(module)
        assert path.read_text() == f"{module.stem} {'nbi' if path.suffix == '.nbi' else '1.nbc'}"


def test_what_the_other_code_has_compiled_itself_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linking twice changes nothing either."""
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    here, there = _tree(tmp_path / "here"), _tree(tmp_path / "there")
    _compile(here)
    own = _cache(there.folder / "curation/text/words.py") / "words.f-3.py311.nbi"
    own.parent.mkdir(parents=True)
    own.write_text("own")
    assert share_kernels(here, there) == 2
    assert share_kernels(here, there) == 2
    assert own.read_text() == "own"


def test_the_folder_is_the_one_that_numba_uses() -> None:
    """Of a real kernel."""
    from curation.text import words
    from curation.text.jit import kernel  # noqa: F401

    module = Path(words.__file__)
    dispatchers = [one for one in vars(words).values() if type(one).__name__ == "CPUDispatcher"]
    paths = {Path(one._cache._cache_path) for one in dispatchers if hasattr(one._cache, "_cache_path")}
    if not paths:
        pytest.skip("no kernel of curation.text.words is cached here")
    assert _cache(module) in paths

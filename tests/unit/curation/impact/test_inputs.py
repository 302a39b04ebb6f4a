"""The sample, copied under the name of its content."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from curation.errors import InputError
from curation.impact.inputs import take_sample
from curation.impact.prune import prune


def _sample(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.jsonl").write_text(text)
    return folder


def test_equal_samples_are_one_wherever_they_lie(tmp_path: Path) -> None:
    """By names and contents, not by place or time; another content is another sample."""
    one = take_sample(_sample(tmp_path / "one", a='{"text": "a"}\n', b='{"text": "b"}\n'), tmp_path / "root")
    two = take_sample(_sample(tmp_path / "two", a='{"text": "a"}\n', b='{"text": "b"}\n'), tmp_path / "root")
    three = take_sample(_sample(tmp_path / "three", a='{"text": "a"}\n', b='{"text": "c"}\n'), tmp_path / "root")
    assert one.files == two.files
    assert one.sha256 == two.sha256 != three.sha256
    assert [Path(path).name for path in one.files] == ["a.jsonl", "b.jsonl"]
    assert len({Path(path).stat().st_mtime_ns for path in (*one.files, *three.files)}) == 1


def test_the_card_is_read_and_no_document(tmp_path: Path) -> None:
    """Nor is a note beside it."""
    folder = _sample(tmp_path / "one", a='{"text": "a"}\n')
    (folder / "README.md").write_text("# About")
    (folder / "sample.json").write_text(json.dumps({"name": "mine", "about": "Of a crawl.", "population": 900}))
    sample = take_sample(folder, tmp_path / "root")
    assert (sample.name, sample.about, sample.population) == ("mine", "Of a crawl.", 900)
    assert [Path(path).name for path in sample.files] == ["a.jsonl"]


@pytest.mark.parametrize("card", ["{", "[]", '"x"'])
def test_a_broken_card_is_refused(tmp_path: Path, card: str) -> None:
    """With its path."""
    folder = _sample(tmp_path / "one", a='{"text": "a"}\n')
    (folder / "sample.json").write_text(card)
    with pytest.raises(InputError, match=r"sample\.json"):
        take_sample(folder, tmp_path / "root")


def test_a_file_several_and_a_glob_are_samples(tmp_path: Path) -> None:
    """Files of one name in two folders are two files."""
    one, two = _sample(tmp_path / "one", a='{"text": "a"}\n'), _sample(tmp_path / "two", a='{"text": "b"}\n')
    assert len(take_sample(one / "a.jsonl", tmp_path / "root").files) == 1
    assert len(take_sample([one, two / "a.jsonl"], tmp_path / "root").files) == 2
    assert len(take_sample(str(tmp_path / "*" / "a.jsonl"), tmp_path / "root").files) == 2


def test_a_sample_that_is_not_there_or_holds_nothing_is_refused(tmp_path: Path) -> None:
    """Before anything is judged."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="does not exist"):
        take_sample(tmp_path / "none", tmp_path / "root")
    with pytest.raises(InputError, match="holds no files"):
        take_sample(tmp_path / "empty", tmp_path / "root")


def test_a_sample_that_is_used_again_is_of_use_now_and_stays(tmp_path: Path) -> None:
    """However old the copy is: it is read as long as this process lives."""
    folder = _sample(tmp_path / "one", a='{"text": "a"}\n')
    copy = take_sample(folder, tmp_path / "root").folder
    os.utime(copy, (1000, 1000))
    assert take_sample(folder, tmp_path / "root").folder == copy
    assert copy.stat().st_mtime > 1000
    prune(tmp_path / "root", (), keep=0)
    assert (copy / "0000" / "a.jsonl").exists()


def test_a_copy_that_was_cut_is_made_anew(tmp_path: Path) -> None:
    """As is one that is gone."""
    folder = _sample(tmp_path / "one", a='{"text": "a"}\n')
    copy = Path(take_sample(folder, tmp_path / "root").files[0])
    copy.write_text("x")
    assert Path(take_sample(folder, tmp_path / "root").files[0]).read_text() == '{"text": "a"}\n'
    copy.unlink()
    assert Path(take_sample(folder, tmp_path / "root").files[0]).read_text() == '{"text": "a"}\n'
    assert sorted(path.name for path in (tmp_path / "root" / "samples").iterdir()) == [copy.parents[1].name]

"""The command `python -m tests.gate`: what it says, what it writes, what it refuses."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from tests.gate import __main__ as command
from tests.gate.corpora import CORPORA, OWN, digest_of, files_of
from tests.gate.families import FAMILIES, Gold, families_of
from tests.gate.figures import Figure, Figures
from tests.gate.floors import Floor, Floors, broken, family_of, read, vanished, write
from tests.gate.judge import NO_MODEL, Result, absent, digests, groups_of, judge, run_cases
from tests.gate.noise import noise_of

KEPT = "length.good_kept.zh"


class Bench:
    """The command over a corpus of one file, with figures that a test sets."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data, self.floors = folder / "data", folder / "floors.json"
        (self.data / "2_text").mkdir(parents=True)
        self.corpus = self.data / "2_text" / "gold.jsonl.zst"
        self.corpus.write_bytes(b"gold")
        self.figures: Figures = {KEPT: Figure(90, 100)}
        self.cases: str | None = ""
        write(Floors({"2_text": str(digest_of("2_text", self.data))}, {KEPT: Floor(0.9, 0.01, 100, 0.9)}), self.floors)
        monkeypatch.setattr(command, "judge", self._judge)
        monkeypatch.setattr(command, "FAMILIES", {name: FAMILIES[name] for name in ("length", "near")})

    def _judge(self, families: Collection[str], data: Path, *, cases: bool) -> Result:
        assert set(families) <= {"length"}
        return Result(dict(self.figures) if families else {}, self.cases if cases else None, {"length": 1.0})

    def __call__(self, *words: str) -> int:
        return command.main([*words, "--data", str(self.data), "--floors", str(self.floors)])


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


ONLY = ("--only", "length")


def test_figures_at_their_floors_open_the_gate(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """And it says how many there were."""
    assert bench(*ONLY) == 0
    assert "gate: open; 1 figures hold" in capsys.readouterr().out


def test_a_figure_below_its_floor_closes_it(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """With both, and where to read on."""
    bench.figures = {KEPT: Figure(80, 100)}
    assert bench(*ONLY) == 1
    said = capsys.readouterr().out
    assert f"{KEPT}: 0.800000 (80 of 100) is below its floor of 0.9 less 0.01" in said
    assert "docs/how-to/keep-the-gate.md" in said


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({}, "has a floor, and nothing measures it any more"),
        ({KEPT: Figure(90, 100), "length.new.a": Figure(1, 1)}, "length.new.a: is new and has no floor"),
    ],
)
def test_figures_that_come_and_go_close_it(
    bench: Bench, capsys: pytest.CaptureFixture[str], figures: Figures, said: str
) -> None:
    """Nothing vanishes silently, and nothing new is without a floor."""
    bench.figures = figures
    assert bench(*ONLY) == 1
    assert said in capsys.readouterr().out


def test_golden_cases_close_it(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """With what pytest said; an update is refused then, too. Families whose gold is not there are named."""
    bench.cases = "FAILED test_filter[length-empty]"
    assert bench() == 1
    said = capsys.readouterr().out
    assert "FAILED test_filter[length-empty]" in said
    assert "NOT JUDGED: near: no 3_neardup at" in said
    assert bench("--update") == 1


def test_another_corpus_closes_it_and_judges_nothing(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Its figures say nothing of the filters. An update takes it only if it is named."""
    bench.corpus.write_bytes(b"fool's gold")
    before = bench.floors.read_bytes()
    assert bench(*ONLY) == 1
    assert bench(*ONLY, "--update") == 1
    assert "gold 2_text has another SHA-256" in capsys.readouterr().err
    assert bench.floors.read_bytes() == before
    assert bench(*ONLY, "--update", "--corpus", "2_text") == 0
    assert bench(*ONLY) == 0


def test_an_update_raises(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """And says from what to what; floors that were not judged stay."""
    bench.figures = {KEPT: Figure(95, 100), "length.new.a": Figure(1, 2)}
    other = {"near.recall.x": Floor(0.5, 0, 2, 0.5)}
    floors = read(bench.floors)
    write(Floors(floors.corpora, {**floors.floors, **other}), bench.floors)
    assert bench(*ONLY, "--update") == 0
    said = capsys.readouterr().out
    assert f"raised: {KEPT} 0.9 -> 0.95" in said
    assert "added: length.new.a 0.5" in said
    assert {name: one.floor for name, one in read(bench.floors).floors.items()} == {
        KEPT: 0.95,
        "length.new.a": 0.5,
        "near.recall.x": 0.5,
    }


def test_an_update_lowers_for_a_reason_only(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused, it writes nothing, not even what rose; with a reason, that and the day stand beside the floor."""
    bench.figures = {KEPT: Figure(80, 100), "length.new.a": Figure(1, 2)}
    before = bench.floors.read_bytes()
    assert bench(*ONLY, "--update") == 1
    assert "floors fall only with --lower FIGURE --reason WHY" in capsys.readouterr().out
    assert bench.floors.read_bytes() == before
    assert bench(*ONLY, "--update", "--lower", "length.good_kept.*", "--reason", "short poems are few") == 0
    reason = read(bench.floors).floors[KEPT].reason
    assert reason is not None
    assert reason.endswith(": short poems are few")
    assert bench(*ONLY) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "lenght"], "no family 'lenght' (did you mean 'length'?)"),
        (["--lower", KEPT], "belong to --update"),
        (["--update", "--lower", KEPT], "for a reason only"),
        (["--update", "--lower", KEPT, "--reason", " "], "for a reason only"),
        (["--update", "--reason", "why"], "name them with --lower"),
        (["--only", "length", "--update", "--lower", KEPT, "--reason", "why"], "nothing fell"),
    ],
)
def test_wrong_use_is_said(bench: Bench, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    """Exit code 2, one line, nothing written."""
    before = bench.floors.read_bytes()
    assert bench(*words) == 2
    assert message in capsys.readouterr().err
    assert bench.floors.read_bytes() == before


# -- parts of it ------------------------------------------------------------------------------------


def test_the_shipped_floors_are_of_the_families_that_there_are() -> None:
    """And each corpus that they need is pinned."""
    floors = read()
    assert {name.partition(".")[0] for name in floors.floors} == set(FAMILIES)
    assert set(floors.corpora) == set(CORPORA)
    assert {corpus for family in FAMILIES.values() for corpus in family.corpora} == set(CORPORA)


def test_families_know_their_filters() -> None:
    """So a changed filter is judged by those alone that it has a part in."""
    assert [family.name for family in families_of("perplexity")] == ["quality", "perplexity"]
    assert families_of("exact") == []


def test_a_digest_is_of_names_and_bytes(tmp_path: Path) -> None:
    """Nothing else in the folder; and none of a corpus that is not there."""
    folder = tmp_path / "2_text"
    folder.mkdir()
    assert digest_of("2_text", tmp_path) is None
    (folder / "gold.jsonl.zst").write_bytes(b"a")
    one = digest_of("2_text", tmp_path)
    (folder / "MANIFEST.md").write_bytes(b"a")
    assert digest_of("2_text", tmp_path) == one
    (folder / "crawl-0.zst").write_bytes(b"a")
    assert digest_of("2_text", tmp_path) != one
    assert any(path.name == "safety_phrases.tsv" for path in files_of(OWN, tmp_path))


def test_what_is_missing_is_said_by_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gold that is not there, and the one package that some machines cannot have."""
    assert absent(["near"], tmp_path, {"3_neardup": None})["near"].startswith(f"no 3_neardup at {tmp_path}")
    monkeypatch.setattr("tests.gate.judge.find_e5", lambda: None)
    found = {"2_text": "ab", "5_safety": "cd", OWN: "ef"}
    assert absent(["length", "safety", "safety_terms"], tmp_path, found) == {"safety": NO_MODEL}


def test_sentences_of_ours_are_judged_anywhere(tmp_path: Path) -> None:
    """What this repository holds itself needs no test data: the lists see through disguises there, too, and drop no look-alike."""
    nowhere = tmp_path / "nowhere"
    own = [name for name, family in FAMILIES.items() if family.corpora == (OWN,)]
    assert own == ["safety_own", "safety_terms_own"]
    found = digests(own, nowhere)
    assert dict(found) == {OWN: read().corpora[OWN]}
    assert "safety_terms_own" not in absent(own, nowhere, found)
    figures = FAMILIES["safety_terms_own"].figures(Gold(nowhere))
    assert broken(read(), figures) == {}
    assert vanished(read(), figures, ["safety_terms_own"]) == []


def test_families_of_test_data_use_no_others() -> None:
    """What is of the repository's own sentences alone stands in no family that is left out without the test data."""
    alone = ("look-alikes", "disguised", "adverts", "innocent_kept", "strong_terms")
    needy = [name for name in read().floors if FAMILIES[family_of(name)].corpora != (OWN,)]
    assert [name for name in needy if any(what in name.split(".")[1:] for what in alone)] == []


def test_groups_are_judged_whole() -> None:
    """Families that share scores go to one process, most costly groups first."""
    groups = groups_of(["html_noise", "safety", "quality", "near"])
    assert groups == [("safety",), ("quality", "html_noise"), ("near",)]


def test_nothing_to_judge_is_no_error(tmp_path: Path) -> None:
    """Without test data there are the golden cases."""
    assert judge([], tmp_path, cases=False) == Result()


@pytest.mark.parametrize(
    ("figure", "n", "noise"),
    [
        ("near.recall.0.9", 6000, 0.0),
        ("quality.junk_dropped.porn ad", 14, 0.0),
        ("quality.good_kept.zh", 1446, 0.000692),
        ("safety.recall.suite zh", 42, 0.04762),
        ("length.good_kept.xx", 1, 1.0),
        ("length.good_kept.xx", 0, 0.0),
    ],
)
def test_noise_is_so_many_texts(figure: str, n: int, noise: float) -> None:
    """Rounded up, so that so many texts pass; at most all of them."""
    assert noise_of(figure, n) == noise


@pytest.mark.parametrize(("test", "said"), [("assert 1 == 1", ""), ("assert 1 == 2", "assert 1 == 2")])
def test_golden_cases_say_what_fails(tmp_path: Path, test: str, said: str) -> None:
    """The end of what pytest says; nothing where all hold."""
    (tmp_path / "test_cases.py").write_text(f"def test_it() -> None: {test}", encoding="utf-8")
    found = run_cases(tmp_path / "test_cases.py")
    assert said in found
    assert bool(found) == bool(said)

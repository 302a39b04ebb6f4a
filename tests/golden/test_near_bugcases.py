"""What went wrong in other tools' near-duplicate removal, from the public bug log: one test a number.

Cases with files lie beside the test data; what is right stands in their `cases.jsonl`, in a form for programs. The
others are built here. Jaccards are counted by the gold's oracle, which shares no code with the step.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from curation.dedup.against import earlier_parts
from curation.dedup.exact import Exact, ExactConfig
from curation.dedup.minhash import candidate_probability, signatures
from curation.dedup.near import Near, NearConfig
from curation.dedup.sets import Shingles
from curation.dedup.shingles import shingles
from curation.dedup.simhash import MIN_SHINGLES, fingerprints
from curation.errors import ConfigError, RunError
from curation.pipeline import Pipeline
from curation.pool import Pool
from curation.records import ScoreColumn
from curation.run import Run
from curation.shards import open_table, read_column
from curation.steps import context_of
from curation.verdicts import Decision, Filter, Step, StepConfig
from tests.bench.near_gold import jaccard
from tests.fakes import Judged, make_run, run_steps
from tests.near_runs import Document, begun, by_definition, corpus, documents_of, finish, near_run, verdicts_of

REPO = Path(__file__).resolve().parents[2]
DEFAULTS: dict[str, Any] = {"threshold": 0.9, "num_perm": 128, "recall": 0.999}
VOCABULARY = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrstxz"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def near(**settings: Any) -> Near:
    return Near(NearConfig.model_validate(settings))


def judged(root: Path, *shards: Sequence[str], before: Sequence[Step] = (), **settings: Any) -> Judged:
    """The shards after near, and after the steps before it."""
    return run_steps(make_run(root, shards), [*before, near(**settings)])


def dropped(found: Judged) -> list[int]:
    """Places of the dropped documents."""
    return [place for place, row in enumerate(found.verdicts("near")) if row["keep"] is False]


def words(rng: random.Random, n: int) -> list[str]:
    return rng.choices(VOCABULARY, k=n)


def pairs_at(rng: random.Random, n: int, shared: int, own: int) -> list[str]:
    """n pairs of texts with Jaccard shared / (shared + own): the second has `own` words more at its end.

    All words of a pair differ from one another, so no shingle comes twice.
    """
    texts = []
    for number in range(n):
        text = [f"{word}{number}x{place}" for place, word in enumerate(words(rng, shared + own + 4))]
        texts += [" ".join(text[: shared + 4]), " ".join(text)]
    return texts


# -- cases with files -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A case of the bug log with a file."""

    ids: list[str]
    texts: dict[str, str]
    expect: Mapping[str, Any]


def load(folder: Path, bug: str) -> Case:
    described = [json.loads(line) for line in (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
    case = next(one for one in described if one["id"] == bug)
    lines = (folder / case["input_file"]).read_text(encoding="utf-8").splitlines()
    texts = {row["id"]: row["text"] for row in map(json.loads, lines)}
    return Case(list(texts), texts, case["expect"])


def check(case: Case, found: Judged) -> None:
    """Hold verdicts against everything that a case expects of them."""
    keeper = {name: name for name in case.ids}
    by_doc_id = {one.doc_id: name for name, one in zip(case.ids, documents_of(Pipeline(found.run)), strict=True)}
    for step in {placed.name for placed in found.placed}:
        for name, row in zip(case.ids, found.verdicts(step), strict=True):
            if row["keep"] is False:
                keeper[name] = by_doc_id[row["kept_doc_id"]]
    kept = [name for name in case.ids if keeper[name] == name]
    expect = dict(case.expect)
    expect.pop("no_exception", None)
    for cluster in expect.pop("clusters", []):
        assert len({keeper[keeper[name]] for name in cluster}) == 1, cluster
    for one, other in expect.pop("not_merged", []):
        assert keeper[one] != keeper[other]
    assert set(expect.pop("must_keep", [])) <= set(kept)
    assert len(kept) == expect.pop("kept_count", len(kept))
    assert expect.pop("kept_min", 1) <= len(kept) <= expect.pop("kept_max", len(kept))
    assert expect.pop("kept", kept) == kept
    above = expect.pop("every_removed_has_kept_partner_above", 0)
    for name in case.ids:
        assert keeper[name] in kept, name
        assert name in kept or jaccard(case.texts[name], case.texts[keeper[name]]) > above
    assert not expect, f"the test does not know what to do with {expect}"


@pytest.mark.parametrize("before", [(), (Exact(ExactConfig()),)], ids=["near", "exact, near"])
def test_b053_texts_without_blanks(bugcases: Path, tmp_path: Path, before: tuple[Step, ...]) -> None:
    """B053: Chinese has no word 5-grams, so nothing was compared, or everything was one cluster. Right: characters."""
    case = load(bugcases, "B053")
    check(case, judged(tmp_path, list(case.texts.values()), before=before))


def test_b055_texts_shorter_than_a_shingle(bugcases: Path, tmp_path: Path) -> None:
    """B055: texts of fewer than n words had the empty signature and became one. Right: the whole is one shingle."""
    case = load(bugcases, "B055")
    check(case, judged(tmp_path, list(case.texts.values())))


def test_b056_no_token_at_all(tmp_path: Path) -> None:
    """B056: "" and "," raised in the minimum over nothing. Right: no exception, and they are nobody's copies."""
    texts = ["", "a normal text of a few words", ",", "", "another normal one of some words", "...", " \n"]
    found = judged(tmp_path, texts, ["", ","])
    assert dropped(found) == []
    assert {row["group_size"] for row in found.verdicts("near")} == {1}


def test_b058_symbols_have_no_fingerprint(bugcases: Path, tmp_path: Path) -> None:
    """B058: "", "!!!", emoji and CJK marks have one SimHash, distance 0. Right: not merged by it."""
    case = load(bugcases, "B058")
    check(case, judged(tmp_path, list(case.texts.values()), simhash_distance=7))


def test_b059_a_feature_many_times(bugcases: Path, tmp_path: Path) -> None:
    """B059: a feature that occurs 256 times overflowed, so every long text failed. Right: exact counts, any length."""
    case = load(bugcases, "B059")
    chinese = "图书馆上个月换新屋顶" * 300
    check(case, judged(tmp_path, list(case.texts.values())))
    found = shingles(pa.array([*case.texts.values(), chinese], pa.large_string()))
    for i, fingerprint in enumerate(fingerprints(found).tolist()):
        values = found.values[found.offsets[i] : found.offsets[i + 1]].tolist()
        counts = [sum(value >> bit & 1 for value in values) for bit in range(64)]
        assert fingerprint == sum((2 * count > len(values)) << bit for bit, count in enumerate(counts))


def test_b061_short_texts_go_by_minhash(tmp_path: Path) -> None:
    """B061: one character of 29 changed gives a SimHash distance of 9, so short copies were never found.

    Right: short texts are found by MinHash, and SimHash says nothing about them: the least length is documented.
    """
    text = "镇里的邮局上个月换了新的屋顶后来别的地方也照着做了孩子常来"
    changed, other = text.replace("邮", "书"), "老车站把雨水收集起来浇花河边的小店登记每一位来客意见附近"
    texts = [text, changed, other, text + "!"]
    assert jaccard(text, changed) < 0.9
    assert len(text) < MIN_SHINGLES
    found = judged(tmp_path / "at 0.9", texts)
    assert dropped(found) == [0], "the longer of two that differ in a mark stays"
    assert found.verdicts("near")[0]["found_by"] == "minhash"
    assert dropped(judged(tmp_path / "at 0.6", texts, threshold=0.6)) == [0, 1]


def test_b063_pairs_at_known_jaccards(bugcases: Path, tmp_path: Path) -> None:
    """B063: 5 bands of 25 rows, the usual choice at 0.9, find 31 % of the pairs at 0.90 and 80 % at 0.95.

    Right: recall of 0.99 at 0.95 and of 0.95 at 0.91, nothing at or below 0.9 removed.
    """
    case = load(bugcases, "B063")
    check(case, judged(tmp_path / "files", list(case.texts.values())))
    rng = random.Random(63)
    at_95, at_91, at_90 = pairs_at(rng, 200, 190, 10), pairs_at(rng, 200, 182, 18), pairs_at(rng, 200, 180, 20)
    assert [jaccard(*two[:2]) for two in (at_95, at_91, at_90)] == [0.95, 0.91, 0.9]
    rows = judged(tmp_path / "built", at_95, at_91, at_90).verdicts("near")
    keep = np.array([row["keep"] for row in rows]).reshape(3, 200, 2)
    assert keep[:, :, 1].all(), "the longer one stays"
    assert (~keep[0, :, 0]).mean() >= 0.99
    assert (~keep[1, :, 0]).mean() >= 0.95
    assert keep[2].all(), "exactly at the threshold is not above it"
    assert [row["similarity"] for row in rows if row["keep"] is False] == pytest.approx([0.95] * 200 + [0.91] * 200)
    assert float(candidate_probability(0.9, *near().bands)) >= 0.999


def test_b065_unlike_pairs_in_bulk(tmp_path: Path) -> None:
    """B065: what fell into one bucket was taken for a copy without a look. Right: of 1,000 pairs at 0.7 none goes."""
    texts = pairs_at(random.Random(65), 1000, 70, 30)
    assert jaccard(*texts[:2]) == 0.7
    found = judged(tmp_path, texts)
    assert dropped(found) == []
    clusters = pa.ipc.open_file(next(tmp_path.rglob("cluster/*.arrow"))).read_all()
    assert clusters.num_rows > 200, "the test is of use only if buckets bring such pairs together"


def test_b066_a_chain(bugcases: Path, tmp_path: Path) -> None:
    """B066: A ~ B ~ C joined texts that share nothing, and one survived of 50. Right: each dropped one has a kept copy."""
    case = load(bugcases, "B066")
    found = judged(tmp_path, list(case.texts.values()))
    check(case, found)
    assert 10 <= len(found.kept("near")) <= 17, "by word 5-grams"


def test_b068_a_group_is_not_wiped_out(bugcases: Path, tmp_path: Path) -> None:
    """B068: cluster ids were taken for document ids, so whole groups went. Right: one of each stays."""
    case = load(bugcases, "B068")
    check(case, judged(tmp_path, list(case.texts.values())))


def test_b080_templates_with_a_number(bugcases: Path, tmp_path: Path) -> None:
    """B080: whether pages that differ in a number are copies depends on n alone, and users are surprised both ways.

    Right: pages of 400 words merge, notices of 12 do not, and the report names the size of a shingle.
    """
    case = load(bugcases, "B080")
    texts = list(case.texts.values())
    check(case, judged(tmp_path, texts))
    pipeline = near_run(tmp_path, "report", [texts], **DEFAULTS)
    assert _done(pipeline)["facts"]["shingle"] == 5


class Marked(Filter):
    """A quality step as a user may have one: the score is the share of words that are no site's furniture."""

    name: ClassVar[str] = "marked"
    version: ClassVar[int] = 1
    stage: ClassVar[str] = "dedup"
    summary: ClassVar[str] = "Scores texts."
    needs: ClassVar[tuple[str, ...]] = ("text",)
    reasons: ClassVar[Mapping[str, str]] = {"marked.never": "it never drops"}
    Config: ClassVar[type[StepConfig]] = StepConfig

    @property
    def score_columns(self) -> Sequence[ScoreColumn]:
        return (ScoreColumn("clean", pa.float32(), "share", "words that are no site's furniture"),)

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        menus = pc.cast(pc.count_substring(batch.column("text"), "Cookie"), pa.float32())
        return pa.RecordBatch.from_arrays([pc.negate(menus)], names=["clean"])

    def decide(self, scores: pa.RecordBatch) -> Decision:
        return Decision(np.ones(scores.num_rows, np.bool_), np.full(scores.num_rows, -1, np.int16))


@pytest.mark.parametrize("keep", [("highest:marked.clean", "longest"), ("shortest",)])
def test_b086_which_copy_stays(bugcases: Path, tmp_path: Path, keep: tuple[str, ...]) -> None:
    """B086: "keep the longest" keeps the copy with the menu around it. Right: a setting, with a quality score in it."""
    case = load(bugcases, "B086")
    found = judged(tmp_path, list(case.texts.values()), before=[Marked(StepConfig())], keep=keep)
    check(case, found)


def test_b086_the_policy_is_reported(bugcases: Path, tmp_path: Path) -> None:
    """B086: the report says by which policy copies were kept; with the longest first, the one with the menu is."""
    case = load(bugcases, "B086")
    pipeline = near_run(tmp_path, "longest", [list(case.texts.values())], **DEFAULTS)
    assert _done(pipeline)["facts"]["keep"] == ["longest"]
    assert [row["keep"] for row in verdicts_of(pipeline)] == [False, True]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKD"])
def test_b090_composed_and_decomposed(bugcases: Path, tmp_path: Path, form: Literal["NFC", "NFD", "NFKD"]) -> None:
    """B090: NFC and NFD of one text were no copies. Right: they are, and the text that stays is stored unchanged."""
    case = load(bugcases, "B090")
    texts = list(case.texts.values())
    check(case, judged(tmp_path / "file", texts))
    texts[1] = unicodedata.normalize(form, texts[1])
    found = judged(tmp_path / form, texts, keep=("first",))
    assert found.verdicts("near")[1]["similarity"] == 1
    assert found.kept("near") == [0]
    assert read_column(found.shards[0], "text").to_pylist() == texts


# -- the same result, however it is made ------------------------------------------------------------


def kept_texts(found: Judged) -> set[str]:
    texts = [text for shard in found.shards for text in read_column(shard, "text").to_pylist()]
    return {texts[place] for place in found.kept("near")}


def cut(texts: Sequence[str], n: int) -> list[Sequence[str]]:
    """The texts in n shards of about the same size."""
    marks = [len(texts) * i // n for i in range(n + 1)]
    return [texts[marks[i] : marks[i + 1]] for i in range(n)]


def test_b070_chunks_and_order_do_not_matter(bugcases: Path, tmp_path: Path) -> None:
    """B070: two engines of one tool kept 95 % and 5 % of the same data. Right: the same, in 1 chunk and 7, backwards."""
    case = load(bugcases, "B070")
    assert set(case.expect["invariant"]) == {"chunks", "workers", "order", "hashseed"}
    texts = [*case.texts.values(), *corpus(70, 300)]
    one = judged(tmp_path / "1", texts)
    seven = judged(tmp_path / "7", *cut(texts, 7))
    backwards = judged(tmp_path / "back", *cut(texts[::-1], 3))
    assert 100 < len(one.kept("near")) < len(texts) - 50
    assert seven.kept("near") == one.kept("near")
    assert [row["kept_doc_id"] for row in seven.verdicts("near")] == [
        row["kept_doc_id"] for row in one.verdicts("near")
    ]
    assert kept_texts(backwards) == kept_texts(one)


def _finish_with(pipeline: Pipeline, workers: int) -> None:
    with Pool(pipeline.run.folder, workers) as pool:
        for stage in pipeline.stages()[1:]:
            for work in pipeline.passes(stage):
                for _ in pool.run(work):
                    pass
            pipeline.close(stage)


@pytest.mark.slow
def test_b070_workers_do_not_matter(tmp_path: Path) -> None:
    """B070: 2,000 documents in one chunk by one worker, and in seven chunks by two, give the same kept ids."""
    texts = corpus(71, 2000)
    one = near_run(tmp_path, "one", [texts], **DEFAULTS)
    seven = begun(tmp_path, "seven", cut(texts, 7), **DEFAULTS)
    _finish_with(seven, 2)
    kept = [[row["keep"] for row in verdicts_of(pipeline)] for pipeline in (one, seven)]
    assert 500 < sum(kept[0]) < 1500
    assert kept[0] == kept[1]


HASHED = """if True:
    import sys
    from pathlib import Path
    from tests.near_runs import corpus, near_run
    texts = corpus(71, 150)
    near_run(Path(sys.argv[1]), "r", [texts[:80], texts[80:]])
"""


def _contents(folder: Path, *patterns: str) -> dict[str, str]:
    files = [path for pattern in patterns for path in folder.rglob(pattern)]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
def test_b071_the_hash_seed_does_not_matter(tmp_path: Path) -> None:
    """B071: hash() of strings, or the order of a set, reached the result. Right: byte-identical output."""
    children = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", HASHED, str(tmp_path / seed)]
        children.append(subprocess.Popen(command, env=environment, cwd=REPO))
    assert [child.wait() for child in children] == [0, 0]
    found = [_contents(tmp_path / seed, "*.arrow") for seed in ("1", "2")]
    assert len(found[0]) >= 6
    assert found[0] == found[1]


def _change_signing(file: Path, **changes: Any) -> None:
    """Rewrite a signature file and its marker as if it had been made in another way."""
    table = pa.ipc.open_file(file).read_all()
    metadata = dict(table.schema.metadata)
    metadata[b"signing"] = json.dumps({**json.loads(metadata[b"signing"]), **changes}).encode()
    with pa.ipc.new_file(str(file), table.schema.with_metadata(metadata)) as writer:
        writer.write_table(table.replace_schema_metadata(metadata))
    marker = file.parent / "_items" / f"{file.stem}.json"
    value = json.loads(marker.read_text(encoding="utf-8"))
    value["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    marker.write_text(json.dumps(value), encoding="utf-8")


@pytest.mark.parametrize("changes", [{"version": 0}, {"unicode": "1.0.0"}, {"shingle": 4}, {"bands": 15}])
@pytest.mark.parametrize("shard", [0, 1])
def test_b073_signatures_of_two_kinds_do_not_mix(tmp_path: Path, changes: dict[str, Any], shard: int) -> None:
    """B073: a fast path and a fallback hashed differently, and signatures of both were compared. Right: refused."""
    earlier = near_run(tmp_path, "earlier", [["a few words of one text"], ["some others of the next one"]], **DEFAULTS)
    _change_signing(earlier.placed[0].folder / "sign" / f"{shard:05d}.arrow", **changes)
    with pytest.raises(ConfigError, match="earlier"):
        for part in earlier_parts([str(earlier.run.folder)], near().signing):
            _ = part.table


def test_b074_hashes_near_the_end_of_32_bits(tmp_path: Path) -> None:
    """B074: products beyond 64 bits, or of other widths, gave other values and a biased estimate.

    Right: over 500 pairs at known J of hashes near 2^32 - 1, the mean error is within 3 sigma.
    """
    rng = np.random.default_rng(74)
    n, size, num_perm = 500, 200, 128
    shared = rng.integers(1, size, n)
    values = (2**32 - 1 - rng.permutation(2 * size * n)).astype(np.uint64).reshape(n, 2 * size)
    pairs = [row[start : start + size] for row, k in zip(values, shared, strict=True) for start in (0, size - k)]
    signed = signatures(Shingles(np.concatenate(pairs), np.arange(2 * n + 1) * size), num_perm)
    truth = shared / (2 * size - shared)
    errors = (signed[::2] == signed[1::2]).mean(axis=1) - truth
    sigma = np.sqrt((truth * (1 - truth) / num_perm).sum()) / n
    assert abs(errors.mean()) < 3 * sigma


# -- much of the same -------------------------------------------------------------------------------

HOT = """if True:
    import json, random, resource, sys, time
    from pathlib import Path
    from tests.near_runs import near_run, verdicts_of
    rng = random.Random(75)
    n = int(sys.argv[2])
    footer = " ".join(f"f{k}" for k in range(300))
    own = [" ".join(f"d{i}w{k}" for k in range(20)) + " " + footer for i in range(n)]
    page = " ".join(f"p{k}" for k in range(250))
    texts = [*own, *[page] * n]
    rng.shuffle(texts)
    shards = [texts[i::4] for i in range(4)]
    near_run(Path(sys.argv[1]), "warm", [["a b c d e f", "a b c d e f"]], threshold=0.9, num_perm=128, recall=0.999)
    begun = time.perf_counter()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipeline = near_run(Path(sys.argv[1]), "hot", shards, threshold=0.9, num_perm=128, recall=0.999)
    took = time.perf_counter() - begun
    kept = [text for text, row in zip(sum(shards, []), verdicts_of(pipeline)) if row["keep"]]
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) // 1024
    facts = json.loads((pipeline.placed[0].folder / "_done.json").read_text())["facts"]
    print(json.dumps({"kept": len(kept), "pages": kept.count(page), "seconds": took, "mb": more,
                      "links": facts["links"], "cluster": facts["largest_cluster"], "alarms": facts["alarms"]}))
"""


@pytest.mark.slow
def test_b075_a_band_that_very_many_share(tmp_path: Path) -> None:
    """B075: boilerplate in 20,000 documents, and one page 20,000 times, made quadratic pair lists.

    Right: memory bounded, time near linear; the copies go, the others, at J = 0.88 with each other, are judged by it.
    """
    found = {}
    for n in (5_000, 20_000):
        command = [sys.executable, "-c", HOT, str(tmp_path / str(n)), str(n)]
        done = subprocess.run(command, check=False, cwd=REPO, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found[n] = json.loads(done.stdout.splitlines()[-1])
        assert (found[n]["kept"], found[n]["pages"]) == (n + 1, 1)
        assert sum(found[n]["links"].values()) < 2 * n * 20, "stars, not pairs"
        assert len(found[n]["alarms"]) == 1, "one group holds half of the corpus"
    assert found[20_000]["cluster"] >= 20_000, "the test is of use only if the template is one cluster"
    assert found[20_000]["seconds"] < 10 * found[5_000]["seconds"] + 5, "4 times the documents; 16 if quadratic"
    assert found[20_000]["mb"] < 500, found


def test_b076_a_document_does_not_meet_itself(tmp_path: Path) -> None:
    """B076: a document met its own n-grams in the filter, and 90 % went. Right: of 100 unlike ones none goes."""
    rng = random.Random(76)
    texts = []
    for _ in range(100):
        paragraph = " ".join(words(rng, 40))
        texts.append("\n\n".join([paragraph, " ".join(words(rng, 40)), paragraph, paragraph]))
    assert dropped(judged(tmp_path, texts)) == []


def test_b082_equal_titles_and_a_limit_of_what_goes(tmp_path: Path) -> None:
    """B082: a constant column was compared, and 1,973 rows became 2. Right: texts are; a large share stops the run."""
    rng = random.Random(82)
    texts = ["Annual report of the town\n\n" + " ".join(words(rng, 60)) for _ in range(200)]
    assert dropped(judged(tmp_path / "titles", texts)) == []
    copies = begun(tmp_path, "copies", [[*texts[:40], *[texts[0]] * 60]], **DEFAULTS, max_dropped_share=0.5)
    with pytest.raises(RunError, match=r"60 of 100 documents.*max_dropped_share"):
        finish(copies)
    assert not (copies.placed[0].folder / "_done.json").exists()
    finish(begun(tmp_path, "most", [[*texts[:40], *[texts[0]] * 60]], **DEFAULTS, max_dropped_share=0.6))


def test_b083_ten_thousand_dropped(tmp_path: Path) -> None:
    """B083: the list of removed ids was one giant row. Right: one a row, with the kept partner and the Jaccard."""
    text = " ".join(words(random.Random(83), 30))
    found = judged(tmp_path, [text] * 10_001, keep=("first",))
    table = open_table(found.folder("near") / "00000.arrow").read_all()
    assert table.num_rows == 10_001
    gone = table.filter(pc.invert(table.column("keep")))
    kept = documents_of(Pipeline(found.run))[0].doc_id
    assert gone.num_rows == 10_000
    assert set(gone.column("kept_doc_id").to_pylist()) == {kept}
    assert set(gone.column("similarity").to_pylist()) == {1}
    assert not [field for field in table.schema if pa.types.is_nested(field.type)]


# -- files of the passes ----------------------------------------------------------------------------


def _do(pipeline: Pipeline, *passes: str) -> dict[str, list[bool]]:
    """Do passes of near; for each item, whether it was done before."""
    listed = {work.name: work for work in pipeline.passes("dedup")}
    return {
        name: [pipeline.run_item(name, item)["reused"] for item in range(listed[name].n_items)]
        for name in (f"near.{one}" for one in passes)
    }


def _done(pipeline: Pipeline) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((pipeline.placed[-1].folder / "_done.json").read_text(encoding="utf-8"))
    return found


PASSES = ("sign", "bucket", "cluster", "verify")


def test_b078_a_cut_signature_file(tmp_path: Path) -> None:
    """B078: a file cut by a killed writer crashed the next stage late. Right: named at once; only it is made anew."""
    pipeline = begun(tmp_path, "cut", cut(corpus(78, 60), 3), **DEFAULTS)
    _do(pipeline, "sign")
    path = next(pipeline.run.work.rglob("sign/00001.arrow"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(RunError, match=r"sign/00001\.arrow"):
        _do(Pipeline.open(pipeline.run.folder), "bucket")
    again = Pipeline.open(pipeline.run.folder)
    assert _do(again, "sign") == {"near.sign": [True, False, True]}
    assert path.read_bytes() == whole
    finish(again)


def test_b081_a_pass_that_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B081: a retried task inserted its keys once more and failed, or doubled them. Right: equal to a clean run."""
    shards = cut(corpus(81, 80), 2)
    clean = near_run(tmp_path / "clean", "r", shards, **DEFAULTS)
    expected = _contents(clean.run.steps, "*.arrow")

    class StopError(Exception):
        pass

    def stop(*arguments: Any, **named: Any) -> None:
        raise StopError

    retried = begun(tmp_path / "retried", "r", shards, **DEFAULTS)
    step = retried.placed[0].step
    assert isinstance(step, Near)
    context = context_of(retried.run, retried.placed[0], retried.shards, retried.config.top.memory_mb)
    for name in PASSES:
        work = next(one for one in retried.passes("dedup") if one.name == f"near.{name}")
        for item in range(work.n_items):
            if item % 2 == 0:  # it dies after its work, before the marker
                with monkeypatch.context() as patched, pytest.raises(StopError):
                    patched.setattr("curation.pipeline.write_json", stop)
                    retried.run_item(work.name, item)
            retried.run_item(work.name, item)
            step.run_item(name, item, context)  # and once more, as a second worker may
    finish(retried)
    assert _contents(retried.run.steps, "*.arrow") == expected


def test_b084_two_settings_in_one_run(tmp_path: Path) -> None:
    """B084: a second dedup in the same work folder read left-overs of the first. Right: independent results."""
    shards = cut(corpus(84, 150), 2)
    alone = {t: near_run(tmp_path / str(t), "r", shards, threshold=t) for t in (0.9, 0.6)}
    both = begun(tmp_path / "both", "r", shards, threshold=0.9)
    for name in PASSES:  # left half done: its files stay
        _do(both, name)
    other = with_threshold(both.run, 0.6)
    finish(other)
    first = with_threshold(both.run, 0.9)
    finish(first)
    assert [row["keep"] for row in verdicts_of(other)] == [row["keep"] for row in verdicts_of(alone[0.6])]
    assert verdicts_of(other) == verdicts_of(alone[0.6])
    assert verdicts_of(first) == verdicts_of(alone[0.9])
    assert verdicts_of(first) != verdicts_of(other)


def with_threshold(run: Run, threshold: float) -> Pipeline:
    """The same run with another threshold."""
    text = run.config_path.read_text(encoding="utf-8")
    lines = [f"    threshold: {threshold}" if "threshold:" in line else line for line in text.splitlines()]
    run.config_path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Pipeline.open(run.folder)


def test_b088_a_crawl_in_steps(tmp_path: Path) -> None:
    """B088: crawls added one after another kept copies that a rebuild removes. Right: the same kept set.

    By `first` the older wins either way, so three runs in a row keep exactly what one over all of them does. With
    another policy the older wins still, by definition.
    """
    texts = corpus(88, 240)
    batches = cut(texts, 3)
    for keep in (("first",), ("longest",)):
        folder = tmp_path / keep[0]
        whole = near_run(folder, "whole", batches, keep=keep)
        runs: list[Pipeline] = []
        for number, batch in enumerate(batches):
            earlier = [run.run.folder for run in runs]
            runs.append(near_run(folder, f"b{number}", [batch], against=earlier, keep=keep))
        kept = [[row["keep"] for row in verdicts_of(run)] for run in runs]
        if keep == ("first",):
            assert [one for batch in kept for one in batch] == [row["keep"] for row in verdicts_of(whole)]
            continue
        before: list[Document] = []
        for run, keeps in zip(runs, kept, strict=True):
            documents = documents_of(run)
            gone = by_definition(documents, before)
            assert [place for place, one in enumerate(keeps) if not one] == sorted(gone)
            before += [document for document, one in zip(documents, keeps, strict=True) if one]

"""The law of filters: what every entry of FILTERS must keep, whatever it judges.

Each law is one parametrised test over all filters, so that a failure names the filter and the law; messages
name the text. A new filter is held to all of them by its entry in the registry alone.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from curation.filters import FILTERS
from curation.ids import digest8
from curation.new_filter import FILL_IN
from curation.records import SHARD_SCHEMA
from curation.steps import earlier_score, step_class
from curation.verdicts import STAGES, Decision, Filter, StepConfig
from tests.fakes import batch_for

REPO = Path(__file__).resolve().parents[2]
CASES = REPO / "tests/golden/cases"
DOCUMENTS_PER_SECOND = 50
"""Of about 1 kB. A hundredth of what a rule costs: only a disaster is slower."""
SECONDS_FOR_TWO_MB = 20

SENTENCES = {
    "en": "The old mill by the river is open again, and the children come to help in the evening. ",
    "zh": "河边的小店上个月换了新的屋顶，负责人说明年还会继续。附近的孩子常来帮忙。",
    "zh-Hant": "河邊的小店上個月換了新的屋頂，負責人說明年還會繼續。",
    "ja": "川のそばの小さな店は、先月あたらしい屋根になりました。",
    "ko": "강가의 작은 가게가 지난달 지붕을 새로 고쳤습니다. ",
    "th": "ร้านเล็กริมแม่น้ำเพิ่งเปลี่ยนหลังคาใหม่เมื่อเดือนที่แล้ว ",
    "ar": "أعيد افتتاح المطحنة القديمة على ضفة النهر بعد إصلاح سقفها. ",
    "he": "הטחנה הישנה על שפת הנהר נפתחה מחדש בשבוע שעבר. ",
    "hi": "नदी के किनारे की छोटी दुकान पिछले महीने फिर से खुली। ",
    "ru": "Старая мельница на берегу реки снова открыта для посетителей. ",
    "de": "Die alte Mühle am Fluss ist wieder offen, und sonntags wird dort gebacken. ",
    "vi": "Cửa hàng nhỏ bên sông vừa thay mái mới vào tháng trước. ",
}

HOSTILE: Mapping[str, str] = {
    "empty": "",
    "blanks": " \t\n\r\n\u3000\u00a0\u2028",
    "one letter": "a",
    "no letters": "0123456789 +-*/ (…) !!! ??? …… 。。。",
    "NUL": "before\0after\0\0",
    "only NUL": "\0" * 100,
    "controls": "\x01\x02\x1b[31mred\x1b[0m\x7f\x85",
    "lone combining marks": "\u0301\u0300\u0e31\u093f\u0301" * 20,
    "marks without end": "a" + "\u0301" * 5000,
    "astral": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠀀𠀁𠀂 😀👨‍👩‍👧🏳️‍🌈 \U0010ffff\U000e0041",
    "right to left": "שלום עולם \u202eאבג\u202c مرحبا بالعالم",
    "invisible": "\u200b\u200c\u200d\u2060\ufeff\u00ad" * 10,
    "noncharacters": "\ufdd0\ufffe\uffff\ufffd",
    "no blanks": "x" * 20_000,
    "newlines": "\n" * 20_000,
    "one long line": "word " * 20_000,
    "angle brackets": "<" * 50_000,
    "backtracking": "a@a.a" * 5_000 + "!",
    "half of a page": '<div class="a"><p>text</p><script>var x = 1;',
    "mixed": "Hello 世界 こんにちは 안녕 สวัสดี नमस्ते مرحبا שלום Привет",
}

LABELS = (None, "und", "eng_Latn", "zho_Hans", "jpn_Jpan", "tha_Thai", "xxx_Zzzz")
"""What the step `language` may have said of a text; the last is none that it knows."""

ON_FILTERS = pytest.mark.parametrize("name", FILTERS)


@cache
def make(name: str) -> Filter:
    """The filter with its default config."""
    kind = step_class(name)
    made = kind(kind.Config())
    assert isinstance(made, Filter)
    return made


def golden(name: str) -> list[dict[str, Any]]:
    """The filter's golden cases."""
    path = CASES / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@cache
def texts_for(name: str) -> list[str]:
    """Hostile texts, ordinary ones in twelve languages, and the filter's golden cases."""
    cases = [case["text"] for case in golden(name) if case.get("times", 1) == 1]
    return [*HOSTILE.values(), *(sentence * 8 for sentence in SENTENCES.values()), *cases]


def batch_of(name: str, texts: Sequence[str]) -> pa.RecordBatch:
    """The columns that the filter needs, as the shard runner gives them; labels of languages depend on the text alone."""
    return batch_for(make(name), texts, [LABELS[len(text) % len(LABELS)] for text in texts])


def judge(name: str, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Decision]:
    scores = make(name).score(batch)
    return scores, make(name).decide(scores)


def rows_of(scores: pa.RecordBatch, decision: Decision) -> list[Any]:
    """Scores, verdict and reason of each row as plain values; bit patterns of floats are kept."""
    return [
        (values, bool(keep), int(reason))
        for values, keep, reason in zip(scores.to_pylist(), decision.keep, decision.reason, strict=True)
    ]


def assert_same(name: str, texts: Sequence[str], found: list[Any], expected: list[Any], what: str) -> None:
    """Compare row by row, and name the first text that differs."""
    assert len(found) == len(expected), f"{name}: {what}: {len(found)} rows, expected {len(expected)}"
    for text, left, right in zip(texts, found, expected, strict=True):
        assert left == right, f"{name}: {what}: text {text!r:.80}: {left} is not {right}"


def told(what: str, places: Sequence[str]) -> str:
    """A message with a line for each place."""
    return "\n  ".join([f"{what}:", *places])


def fingerprint(name: str, texts: Sequence[str]) -> str:
    """Digest of everything that the filter says about the texts."""
    return hashlib.sha256(repr(rows_of(*judge(name, batch_of(name, texts)))).encode()).hexdigest()


# -- what a filter declares ------------------------------------------------------------------------


@ON_FILTERS
def test_nothing_is_left_to_fill_in(name: str) -> None:
    """What `corpusmill new-filter` leaves to a person has been written by one: module, golden cases, tests."""
    module = Path(importlib.import_module(FILTERS[name].partition(":")[0]).__file__ or "")
    tests = REPO / "tests/unit/curation/filters" / f"test_{name}.py"
    sources = [*(sorted(module.parent.glob("*.py")) if module.name == "__init__.py" else [module]), tests]
    left = [
        f"{path.relative_to(REPO)}:{number}: {line.strip()}"
        for path in [*sources, CASES / f"{name}.jsonl"]
        if path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if FILL_IN in line
    ]

    if left:
        pytest.fail(told(f"{name}: in {len(left)} places there is still something to fill in", left), pytrace=False)


@ON_FILTERS
def test_it_is_declared(name: str) -> None:
    """Name = registry key = module or package; a known stage; a summary in one sentence; columns that shards have."""
    kind = step_class(name)

    assert kind.name == name == FILTERS[name].partition(":")[0].rpartition(".")[2], "name, key and module differ"
    assert kind.version >= 1
    assert kind.stage in STAGES, f"{name}: there is no stage {kind.stage!r}, only {', '.join(STAGES)}"
    assert kind.needs, f"{name}: `needs` is empty; a filter of texts has needs = ('text',)"
    columns = {need for need in kind.needs if earlier_score(need) is None}
    assert columns <= set(SHARD_SCHEMA.names), f"{name}: no shard has {columns - set(SHARD_SCHEMA.names)}"
    assert 20 <= len(kind.summary) <= 140, f"{name}: a summary of {len(kind.summary)} characters, expected 20 to 140"
    assert kind.summary.endswith("."), f"{name}: the summary is one sentence, with its full stop: {kind.summary!r}"
    assert "\n" not in kind.summary, f"{name}: the summary is one line"


@ON_FILTERS
def test_reasons_are_a_closed_list(name: str) -> None:
    """Each reason is the name, a dot and a word, with one sentence that a stranger understands."""
    for reason, sentence in step_class(name).reasons.items():
        prefix, dot, why = reason.partition(".")
        assert prefix == name, f"{reason!r} must begin with `{name}.`"
        assert dot, f"{reason!r} must be `{name}.` and a word"
        assert why.replace("_", "").isalnum(), f"{reason!r}: letters, digits and _ behind the dot"
        assert why.islower(), f"{reason!r}: small letters behind the dot"
        assert len(sentence.split()) >= 4, f"{reason}: {sentence!r} says too little: four words at least"
        assert len(sentence) <= 160, f"{reason}: {sentence!r} has {len(sentence)} characters, 160 at most"
        assert "\n" not in sentence, f"{reason}: {sentence!r} is more than one line"


@ON_FILTERS
def test_scores_are_declared(name: str) -> None:
    """Score columns have names of their own, a unit, a meaning, and are what thresholds speak about."""
    made = make(name)
    names = [score.name for score in made.score_columns]

    assert names, f"{name}: no score columns; what it decides by must be stored"
    assert len(set(names)) == len(names), f"{name}: a score stands twice in {names}"
    assert not {"keep", "reason"} & set(names), f"{name}: `keep` and `reason` are columns of every verdict"
    bare = [score.name for score in made.score_columns if not (score.unit and score.what)]
    assert not bare, f"{name}: scores without a unit or a meaning: {bare}"
    thresholds = made.thresholds()
    assert set(thresholds) <= set(names), f"{name}: thresholds of unknown scores {set(thresholds) - set(names)}"
    assert all(np.isfinite(value) for values in thresholds.values() for value in values), thresholds


# -- the config ------------------------------------------------------------------------------------


def _candidates(value: Any, annotation: Any) -> Iterator[Any]:
    """Other values that a field of this value could have."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value * 2, value / 2, value - 1, 0, 1, value * 0.9, 0.25)
    elif isinstance(value, str):
        yield from (f"{value}x", "en", "zh", "keep", "drop", "")
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (list(value)[1:], [*value, "zh"], [*value, "x"], [*value, 1])
    elif isinstance(value, Mapping):
        first = next(iter(value), None)
        yield from ({k: v for k, v in value.items() if k != first}, *({**value, first: v} for v in (0, 1, 0.5)))
        yield {**value, "en": 0.5}
    elif isinstance(value, StepConfig):
        yield from (other for _, other in alternatives(type(value)))
    elif value is None:
        yield from (0, 1, 0.5, "zh", ["zh"])


def alternatives(config: type[StepConfig]) -> list[tuple[str, StepConfig]]:
    """For each field a config that differs from the default one in that field alone."""
    default = config()
    found = []
    for field, info in config.model_fields.items():
        value = getattr(default, field)
        for candidate in (*(info.examples or ()), *_candidates(value, info.annotation)):
            try:
                other = config.model_validate({**default.model_dump(), field: candidate})
            except ValidationError:
                continue
            if getattr(other, field) != value:
                found.append((field, other))
                break
        else:
            pytest.fail(f"{config.__name__}.{field}: no other value found beside {value!r}: teach _candidates one")
    return found


@ON_FILTERS
def test_the_config_is_frozen_closed_and_portable(name: str) -> None:
    """It refuses changes and unknown keys, and survives pickle and its own YAML form."""
    kind = step_class(name).Config
    config = kind()

    assert kind.model_config.get("frozen")
    with pytest.raises(ValidationError):
        kind.model_validate({"no_such_key": 1})
    for field in kind.model_fields:
        with pytest.raises(ValidationError):
            setattr(config, field, getattr(config, field))
    assert pickle.loads(pickle.dumps(config)) == config
    assert kind.model_validate(json.loads(json.dumps(config.model_dump(mode="json")))) == config


@ON_FILTERS
def test_every_setting_is_part_of_the_digest(name: str) -> None:
    """Two configs that differ anywhere have different digests: the same folder means the same result."""
    kind = step_class(name).Config
    digests = {digest8(config.model_dump(mode="json")) for _, config in alternatives(kind)}

    assert len(digests) == len(kind.model_fields), f"{name}: two settings change the digest alike"
    assert digest8(kind().model_dump(mode="json")) not in digests, f"{name}: a setting does not change the digest"


@ON_FILTERS
def test_thresholds_do_not_touch_scores(name: str) -> None:
    """A setting that is not in score_config changes no score, so a changed threshold may take over old scores;
    at least one setting of a filter with settings is such a threshold."""
    kind = step_class(name)
    batch = batch_of(name, texts_for(name))
    plain = make(name)
    expected = plain.score(batch)
    thresholds = 0
    for field, config in alternatives(kind.Config):
        other = kind(config)
        assert isinstance(other, Filter)
        if digest8(dict(other.score_config())) != digest8(dict(plain.score_config())):
            continue
        thresholds += 1
        assert other.score(batch).equals(expected), (
            f"{name}: `score` gives other scores where {field} differs. A threshold belongs into `decide`; if {field} is "
            "none, return it in `score_config`."
        )
    assert thresholds or not kind.Config.model_fields, (
        f"{name}: every setting is in score_config, so none is a threshold"
    )


# -- what it says about texts ----------------------------------------------------------------------


@ON_FILTERS
def test_same_rows_and_declared_types(name: str) -> None:
    """Scores are the declared columns with the declared types, as many rows as documents, in their order."""
    texts = texts_for(name)

    scores, decision = judge(name, batch_of(name, texts))

    declared = [(score.name, score.type) for score in make(name).score_columns]
    found = list(zip(scores.schema.names, scores.schema.types, strict=True))
    assert found == declared, f"{name}: `score` gives other columns than `score_columns` says"
    rows = (scores.num_rows, len(decision.keep), len(decision.reason))
    assert rows == (len(texts),) * 3, f"{name}: {len(texts)} documents, but {rows} scores, verdicts, reasons"
    assert decision.keep.dtype == np.bool_, f"{name}: keep is {decision.keep.dtype}, not bool"
    assert decision.reason.dtype == np.int16, f"{name}: reason is {decision.reason.dtype}, not int16"
    backwards = rows_of(*judge(name, batch_of(name, texts[::-1])))
    assert_same(name, texts, backwards[::-1], rows_of(scores, decision), "documents in reverse order")


@ON_FILTERS
def test_a_reason_exactly_when_dropped(name: str) -> None:
    """The reason is null exactly where a document is kept, and one of the declared list elsewhere."""
    texts = texts_for(name)

    _, decision = judge(name, batch_of(name, texts))

    for text, keep, reason in zip(texts, decision.keep, decision.reason, strict=True):
        assert (reason < 0) == keep, f"{name}: text {text!r:.80}: keep {keep}, reason {reason}"
        assert -1 <= reason < len(make(name).reasons), f"{name}: text {text!r:.80}: reason {reason}"


@ON_FILTERS
def test_scores_are_finite_or_null(name: str) -> None:
    """A score that is undefined is null; nan and infinity never pass."""
    texts = texts_for(name)
    scores, _ = judge(name, batch_of(name, texts))

    for column, values in zip(scores.schema.names, scores.columns, strict=True):
        if pa.types.is_floating(values.type):
            for text, value in zip(texts, values.to_pylist(), strict=True):
                assert value is None or np.isfinite(value), f"{name}.{column}: text {text!r:.80}: {value}"


@ON_FILTERS
@pytest.mark.parametrize("seed", range(3))
def test_batches_do_not_matter(name: str, seed: int) -> None:
    """Any cut into batches gives the same scores and verdicts; seed 0 cuts into single documents."""
    texts = texts_for(name)
    expected = rows_of(*judge(name, batch_of(name, texts)))
    rng = random.Random(seed)
    marks = range(len(texts) + 1) if seed == 0 else sorted({0, len(texts), *rng.sample(range(len(texts)), 5)})

    found = []
    for start, end in pairwise(marks):
        found += rows_of(*judge(name, batch_of(name, texts[start:end])))

    assert_same(name, texts, found, expected, "another cut into batches")


@ON_FILTERS
def test_a_slice_is_read_from_its_start(name: str) -> None:
    """A batch that begins in the middle of its buffers is judged as the documents it shows."""
    texts = texts_for(name)
    batch = batch_of(name, texts)
    expected = rows_of(*judge(name, batch))

    for start, length in ((1, len(texts) - 1), (3, 4), (len(texts) - 1, 1), (2, 0)):
        part = slice(start, start + length)
        found = rows_of(*judge(name, batch.slice(start, length)))
        assert_same(name, texts[part], found, expected[part], f"slice from {start} on")


@ON_FILTERS
def test_an_empty_batch(name: str) -> None:
    """No documents, no verdicts: all columns are there, with their types."""
    scores, decision = judge(name, batch_of(name, []))

    assert scores.num_rows == len(decision.keep) == len(decision.reason) == 0
    assert scores.schema.types == [score.type for score in make(name).score_columns], f"{name}: types of no documents"


@ON_FILTERS
@pytest.mark.parametrize("piece", ["The old mill is open. ", "河边的小店换了屋顶。", "<b>", "x", "\0"])
def test_two_megabytes(name: str, piece: str) -> None:
    """A text of 2 MB is judged, in bounded time."""
    text = piece * (2_000_000 // len(piece.encode()))
    start = time.perf_counter()

    _, decision = judge(name, batch_of(name, [text, "short"]))

    assert len(decision.keep) == 2
    seconds = time.perf_counter() - start
    assert seconds < SECONDS_FOR_TWO_MB, f"{name}: {seconds:.1f} s for 2 MB of {piece!r}"


@ON_FILTERS
def test_twice_the_same(name: str) -> None:
    """The second call on the same object, and a new object, say the same."""
    texts = texts_for(name)
    first = fingerprint(name, texts)

    assert fingerprint(name, texts) == first
    make.cache_clear()
    assert fingerprint(name, texts) == first


OTHER_PROCESS = """
import sys
from tests.contract.test_every_filter import fingerprint, texts_for
for name in sys.argv[1:]:
    print(name, fingerprint(name, texts_for(name)))
"""


@pytest.fixture(scope="session")
def elsewhere(request: pytest.FixtureRequest) -> dict[str, str]:
    """What the filters that are tested say in another process, with another order of hashes and other threads."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    names = [item.callspec.params["name"] for item in items if "elsewhere" in item.fixturenames]
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPO)}
    command = [sys.executable, "-c", OTHER_PROCESS, *names]
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


@ON_FILTERS
def test_the_same_in_another_process(name: str, elsewhere: dict[str, str]) -> None:
    """Nothing depends on the process: not the order of hashes, not threads, not what was judged before."""
    assert elsewhere[name] == fingerprint(name, texts_for(name)), f"{name}: another process says something else"


@ON_FILTERS
def test_every_reason_is_reached(name: str) -> None:
    """Each declared reason is the verdict of a golden case: a rule that never fires is found here."""
    reached = {case["reason"] for case in golden(name)} - {None}
    declared = set(step_class(name).reasons)

    never = [f"{reason}: no golden case is dropped for it" for reason in sorted(declared - reached)]
    unknown = [f"{reason}: a golden case names it, the filter does not" for reason in sorted(reached - declared)]
    if never + unknown:
        what = f"{name}: reasons and tests/golden/cases/{name}.jsonl do not fit"
        pytest.fail(told(what, never + unknown), pytrace=False)


@ON_FILTERS
def test_it_is_no_disaster(name: str) -> None:
    """A floor for speed, far under what any filter needs to be worth running."""
    texts = [sentence * (1000 // len(sentence.encode()) + 1) for sentence in SENTENCES.values()] * 10
    batch = batch_of(name, texts)
    judge(name, batch_of(name, texts[:2]))
    start = time.perf_counter()

    judge(name, batch)

    rate = len(texts) / (time.perf_counter() - start)
    assert rate >= DOCUMENTS_PER_SECOND, f"{name}: {rate:.0f} documents of 1 kB a second"

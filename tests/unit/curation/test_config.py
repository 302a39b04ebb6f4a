"""Configuration: complete, frozen, and its errors name the key and the nearest known one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

import curation.config
from curation.config import SHIPPED, load_config, parse_config
from curation.errors import ConfigError
from curation.verdicts import StepConfig
from tests.fakes import Watched

MINIMAL = "name: t\nsteps:\n  - exact: {}\n  - length: {}\n"


@pytest.mark.parametrize(
    ("text", "needles"),
    [
        ("nmae: x", ["nmae", "did you mean 'name'"]),
        ("ingest: {text_colum: x}", ["ingest.text_colum", "did you mean 'text_column'"]),
        ("steps: [{exakt: {}}]", ["exakt", "did you mean 'exact'", "Known steps"]),
        ("steps: [{exact: {}}, {exact: {}}]", ["'exact' stands twice"]),
        ("steps: [{exact: {}, length: {}}]", ["step 1 must be one"]),
        ("steps: [3]", ["step 1"]),
        ("ingest: {max_quarantine_share: 3}", ["ingest.max_quarantine_share", "less than or equal to 1", "found 3"]),
        ("ingest: {html: slow}", ["ingest.html", "'fast' or 'quality'"]),
        ("pack: {seqlen: 4}", ["pack.seqlen", "did you mean 'seq_len'"]),
        ("- a\n- b", ["expected a mapping"]),
        ("a: [", ["not valid YAML"]),
        ("memory_mb: 10", ["memory_mb"]),
        ("steps: [{near: {keep: longest}}]", ["steps.near.keep: expected a list, such as [longest], found 'longest'"]),
        ("steps: [{near: {sources: '*/wiki/*'}}]", ["steps.near.sources: expected a list, such as ['*/wiki/*']"]),
        ("steps: [{near: {keep: {a: 1}}}]", ["steps.near.keep: expected a list, found {'a': 1}"]),
        ("steps: exact", ["steps: expected a list, such as [exact]"]),
        ("steps: [{near: 3}]", ["steps.near: expected a mapping of settings, such as {key: value}, found 3"]),
        ("ingest: [html]", ["ingest: expected a mapping of settings, such as {key: value}, found ['html']"]),
    ],
)
def test_a_wrong_config_is_refused_with_the_key_and_the_nearest_known_one(text: str, needles: list[str]) -> None:
    """No traceback and no guess: one sentence that names what is wrong."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "my.yaml")
    for needle in ["my.yaml" if "exakt" not in text else "exakt", *needles]:
        assert needle in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "value", ["longest", "*/x/*", "lowest:length.units", "a, b", "yes", "3", "日本語/*", "x: y", "#", "it's"]
)
def test_the_list_that_is_proposed_is_the_one_that_was_meant(value: str) -> None:
    """What the message gives as an example reads back as a list of the one value, whatever has to be quoted."""
    with pytest.raises(ConfigError) as caught:
        parse_config(yaml.safe_dump({"steps": [{"near": {"sources": value}}]}))
    proposed = str(caught.value).partition("such as ")[2].partition(", found")[0]
    assert yaml.safe_load(proposed) == [value]


def test_the_resolved_config_is_complete_and_reads_back_equal() -> None:
    """YAML -> models -> resolved YAML -> models is a fixed point, with every default written out."""
    config = parse_config(MINIMAL)
    again = parse_config(config.to_yaml())
    assert again.resolved() == config.resolved()
    assert again.digest() == config.digest()
    assert "max_quarantine_share" in config.to_yaml()


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("name=other", ("name",), "other"),
        ("ingest.max_record_mb=2.5", ("ingest", "max_record_mb"), 2.5),
        ("pack.seq_len=512", ("pack", "seq_len"), 512),
        ("pack=", ("pack",), None),
    ],
)
def test_set_changes_one_key(override: str, path: tuple[str, ...], value: object) -> None:
    """`--set a.b=c` reads c as YAML and changes that key alone."""
    changed = parse_config(MINIMAL, overrides=[override]).resolved()
    found: object = changed
    for part in path:
        assert isinstance(found, dict)
        found = found[part]
    assert found == value


@pytest.mark.parametrize("override", ["length", "length=3", "nosuch.key=1", "name.x=1", "=3", "length.nosuch=1"])
def test_a_wrong_set_is_refused(override: str) -> None:
    """An override that names nothing known is an error, not a new key."""
    with pytest.raises(ConfigError):
        parse_config(MINIMAL, overrides=[override])


def test_a_step_is_overridden_by_its_name_with_or_without_steps_in_front() -> None:
    """`length.x` and `steps.length.x` are the same key."""
    key = next(
        name
        for name, field in type(parse_config(MINIMAL).steps[1].config).model_fields.items()
        if field.annotation in (int, float)
    )
    one = parse_config(MINIMAL, overrides=[f"length.{key}=7"])
    two = parse_config(MINIMAL, overrides=[f"steps.length.{key}=7"])
    assert one.resolved() == two.resolved() != parse_config(MINIMAL).resolved()


def test_a_missing_config_names_the_nearest_shipped_one() -> None:
    """A typing error in the config's name is answered with the name that was meant."""
    with pytest.raises(ConfigError, match="did you mean 'web'"):
        load_config("wep")


def test_shipped_configs_load() -> None:
    """Every config that ships is valid."""
    for name in ("demo", "web", "zh-web"):
        assert load_config(name).steps


@pytest.mark.parametrize(
    ("content", "needle"),
    [
        ("name: büro\n".encode("latin-1"), "not in UTF-8: byte 7 is 0xfc"),
        (b"\xff\xfen\x00a\x00", "not in UTF-8"),
        (b"name: \x00x\n", "not valid YAML"),
        (b"name: 2024-13-45\n", "not valid YAML"),
        (b"steps: " + b"[" * 5000, "nested too deep"),
        (b"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nname: [*b,*b,*b,*b,*b,*b]\n", "name"),
        (b"steps: [{length: 3}]", "steps.length"),
        (b"steps: [{length: []}]", "steps.length"),
    ],
)
def test_a_file_that_is_no_config_is_one_error(tmp_path: Path, content: bytes, needle: str) -> None:
    """Whatever bytes lie in the file: a ConfigError that says what is wrong with them, of bounded length."""
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert needle in str(caught.value)
    assert "mine.yaml" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_what_cannot_be_read_as_a_file_is_one_error(tmp_path: Path) -> None:
    """A folder, a FIFO (which would block for ever), a name too long, a file below a file."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_text("", encoding="utf-8")
    for name, needle in (
        ("folder", "is a folder"),
        ("fifo", "no regular file"),
        ("x" * 5000, "cannot be read|no config"),
        ("file/x.yaml", "cannot be read|no config"),
    ):
        with pytest.raises(ConfigError, match=needle):
            load_config(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("name: a\nmemory_mb: 900\nname: b\n", "'name' stands twice in one mapping, in line 1 and in line 3"),
        ("steps:\n  - length:\n      min_units: 3\n      min_units: 4\n", "'min_units' .* line 3 and in line 4"),
        ("pack: {seq_len: 2, seq_len: 4}", "'seq_len' .* line 1 and in line 1"),
        ('name: a\n"name": b\n', "'name'"),
    ],
)
def test_a_key_that_stands_twice_is_refused(text: str, needle: str) -> None:
    """YAML's parser would let the last one win: the first would be ignored in silence."""
    with pytest.raises(ConfigError, match=needle):
        parse_config(text)


def test_merge_keys_and_aliases_are_no_duplicates() -> None:
    """`<<` may bring a key that the mapping overrides: that is what it is for."""
    text = "steps:\n  - length: &a {min_units: 3, max_units: 9}\npack: {seq_len: 8}\nname: x\n"
    assert parse_config(text).top.name == "x"
    merged = "ingest: {<<: {shard_mb: 2}, shard_mb: 3}\n"
    assert parse_config(merged).top.ingest.shard_mb == 3


@pytest.mark.parametrize("text", ["steps: 3", "steps: abc", "steps: [{length: 3}]", "ingest: 3"])
def test_set_on_a_config_of_another_shape_is_refused(text: str) -> None:
    """An override never meets a Python error."""
    for override in ("length.min_units=3", "ingest.shard_mb=3", "length.a.b=1"):
        with pytest.raises(ConfigError):
            parse_config(text, overrides=[override])


def test_a_relative_tokenizer_lies_beside_the_config_or_with_set_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have other current folders, so the path becomes absolute; one that is missing is refused at once."""
    for folder in ("configs/tok", "here/tok"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    mine = tmp_path / "configs" / "mine.yaml"
    mine.write_text("pack: {tokenizer: tok}\n", encoding="utf-8")

    def tokenizer(*overrides: str) -> str:
        pack = load_config("../configs/mine.yaml", overrides).top.pack
        assert pack is not None
        return str(Path(pack.tokenizer).resolve())

    assert tokenizer() == str(tmp_path / "configs" / "tok")
    assert tokenizer("pack.tokenizer=tok/tokenizer.json") == str(tmp_path / "here" / "tok" / "tokenizer.json")
    assert tokenizer(f"pack.tokenizer={tmp_path / 'here' / 'tok'}") == str(tmp_path / "here" / "tok")
    for missing in ("nosuch", "nosuch/tokenizer.json", str(tmp_path / "here"), "x" * 5000):
        with pytest.raises(ConfigError, match=r"pack\.tokenizer: there is no tokenizer at"):
            tokenizer(f"pack.tokenizer={missing}")
    mine.write_text("pack: {tokenizer: gone}\n", encoding="utf-8")
    assert load_config(mine, ["pack.tokenizer=default"]).top.pack is not None
    assert load_config(mine, ["pack="]).top.pack is None


def test_the_trainers_tokenizer_is_found_as_the_pipelines_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the config, or with --set here; a missing one is refused before any work, with its own key."""
    for folder in ("configs/tok", "here/tok"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "tokenizer.model").write_bytes(b"x")
    (tmp_path / "here" / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    mine = tmp_path / "configs" / "mine.yaml"
    mine.write_text("pack: {trainer: tok}\n", encoding="utf-8")

    def trainer(*overrides: str) -> str | None:
        pack = load_config(mine, overrides).top.pack
        assert pack is not None
        assert pack.tokenizer == "default"
        return pack.trainer

    assert trainer() == str(tmp_path / "configs" / "tok")
    assert trainer("pack.trainer=tok/tokenizer.model") == str(tmp_path / "here" / "tok" / "tokenizer.model")
    assert trainer("pack.trainer=default") == "default"
    assert trainer("pack.trainer=") is None
    for missing in ("nosuch", "empty", "tok/tokenizer.json", "x" * 5000):
        with pytest.raises(ConfigError, match=r"pack\.trainer: there is no tokenizer at"):
            trainer(f"pack.trainer={missing}")


@pytest.mark.parametrize(
    ("mix", "steps", "refused"),
    [
        ("{by: language, epochs: {zho*: 2}}", "[exact]", True),
        ("{by: language, weights: {'*': 1}}", "[]", True),
        ("{by: language, epochs: {zho*: 2}}", "[exact, language, length]", False),
        ("{by: source, epochs: {zho*: 2}}", "[exact]", False),
        ("{epochs: {zho*: 2}}", "[exact]", False),
    ],
)
def test_a_mixture_of_languages_needs_the_step_that_tells_them(mix: str, steps: str, refused: bool) -> None:
    """Else every document would be of no language, and the mixture that of one group."""
    text = f"steps: {steps}\npack: {{mix: {mix}}}\n"
    if refused:
        with pytest.raises(
            ConfigError, match=r"`pack\.mix\.by` tells documents apart by language, but there is no step"
        ):
            parse_config(text)
    else:
        assert parse_config(text).top.pack is not None


@pytest.mark.parametrize(
    ("override", "needle"),
    [
        ("pack.seq_len=[512, 512]", "expected lengths that differ"),
        ("pack.seq_len=[]", "at least one length"),
        ("pack.seq_len=[512, 1]", "expected 2 to 16,777,216 tokens, found 1"),
        ("pack.holdout_share=0.7", "pack.holdout_share"),
        ("pack.holdout_share=-0.1", "pack.holdout_share"),
        ("pack.shuffle_seed=-1", "pack.shuffle_seed"),
        ("pack.mix={epochs: {a: 1}, weights: {a: 1}}", "exclude each other"),
        ("pack.mix={}", "give epochs"),
        ("pack.mix={epochs: {a: -1}}", "pack.mix.epochs.a"),
        ("pack.mix={epochs: {a: .nan}}", "pack.mix.epochs"),
        ("pack.mix={weights: {a: 0}}", "pack.mix.weights.a"),
        ("pack.mix={by: site, epochs: {a: 1}}", "pack.mix.by"),
        ("pack.mix={epoch: {a: 1}}", "did you mean 'epochs'"),
        ("pack.parity_documents=-1", "pack.parity_documents"),
    ],
)
def test_a_wrong_setting_of_pack_names_its_key(override: str, needle: str) -> None:
    """Refused before any work, in one sentence."""
    with pytest.raises(ConfigError) as told:
        parse_config("pack: {}\n", overrides=[override])
    assert needle in str(told.value)
    assert "\n" not in str(told.value)


def test_shipped_configs_are_part_of_the_package_and_differ() -> None:
    """They lie inside `curation`, so a wheel holds them; each decides something otherwise than the others."""
    assert SHIPPED.is_relative_to(Path(curation.config.__file__).parent)
    resolved = [load_config(name).resolved() | {"name": ""} for name in ("demo", "web", "zh-web")]
    assert all(a != b for i, a in enumerate(resolved) for b in resolved[:i])


class _Paths(StepConfig):
    """Settings that hold paths in every form."""

    paths: ClassVar[frozenset[str]] = frozenset({"table", "second.table"})
    names_or_paths: ClassVar[frozenset[str]] = frozenset({"model"})
    table: Any = None
    second: Any = None
    model: Any = None


def test_relative_paths_in_steps_begin_at_the_config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, in a list, in a mapping and nested; what may be a name becomes a path only where it is one."""

    class Step(Watched):
        Config: ClassVar[type[StepConfig]] = _Paths

    monkeypatch.setattr("curation.config.step_class", lambda name: Step)
    monkeypatch.setattr("curation.config.STEPS", {"watched": ""})
    (tmp_path / "here").mkdir()
    settings = {
        "table": ["a", str(tmp_path / "b"), 3],
        "second": {"table": {"zho": "c", "eng": ""}},
        "model": {"one": "here", "two": "gpt2"},
    }
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"steps": [{"watched": settings}]}))

    found = load_config(path).steps[0].config

    assert isinstance(found, _Paths)
    assert found.table == [str(tmp_path / "a"), str(tmp_path / "b"), 3]
    assert found.second == {"table": {"zho": str(tmp_path / "c"), "eng": ""}}
    assert found.model == {"one": str(tmp_path / "here"), "two": "gpt2"}

    content = {"run_id": "here", "languages": {"eng": {"documents": 1}}}
    path.write_text(yaml.safe_dump({"steps": [{"watched": {"model": content}}]}))
    found = load_config(path).steps[0].config
    assert isinstance(found, _Paths)
    assert found.model == content

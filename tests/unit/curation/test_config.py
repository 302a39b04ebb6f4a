"""Configuration: complete, frozen, and its errors name the key and the nearest known one."""

from __future__ import annotations

import pytest

from curation.config import load_config, parse_config
from curation.errors import ConfigError

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
    ],
)
def test_a_wrong_config_is_refused_with_the_key_and_the_nearest_known_one(text: str, needles: list[str]) -> None:
    """No traceback and no guess: one sentence that names what is wrong."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "my.yaml")
    for needle in ["my.yaml" if "exakt" not in text else "exakt", *needles]:
        assert needle in str(caught.value)
    assert caught.value.exit_code == 2


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

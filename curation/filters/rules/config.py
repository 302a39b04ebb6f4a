"""Settings of `rules`: a preset, a key for each rule that changes its limit, and limits for single languages.

- rules:
    preset: massive
    duplicate_lines: 0.4        # for all languages
    upper_case: off
    languages:
      zh: {top_2gram: 0.3}      # nearer than the line for all languages
      und_Cyrl: {stop_words: off}
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, TypeAlias, cast

from pydantic import AfterValidator, Field, PlainValidator, create_model

from curation.errors import nearest
from curation.filters.labels import SCRIPT_LABELS
from curation.filters.rules.limits import DEFAULT, OFF, Layers
from curation.filters.rules.presets import PRESETS, preset_limits
from curation.filters.rules.rule import BY_NAME, RULES, Rule
from curation.filters.rules.stop_words import ENOUGH
from curation.verdicts import StepConfig
from quality_models.language_codes import LANGUAGE_SCRIPTS, to_iso639_3

__all__ = ["AS_PRESET", "RulesConfig", "RulesSettings", "limits_of"]

AS_PRESET = "preset"
"""Value of a rule's key that leaves it to the preset."""
LABEL = re.compile(r"(?P<language>[A-Za-z]{2,3})(?:[_-](?P<script>[A-Za-z]{4}))?")

ByLanguage: TypeAlias = dict[str, dict[str, float | str]]


def _limit(rule: Rule, value: Any, *, or_preset: bool = True) -> float | str:
    """A number that a document can be on either side of, `off`, or `preset`."""
    if value is None or value is False or value == OFF:  # YAML reads off as false
        return OFF
    if or_preset and value == AS_PRESET:
        return AS_PRESET
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"expected a number ({rule.unit}) or off")
    if value < 0 or (rule.unit == "share" and value > 1):
        raise ValueError(f"expected {'a share from 0 to 1' if rule.unit == 'share' else 'no negative number'}")
    if rule.name == "stop_words" and value > ENOUGH:
        raise ValueError(f"expected {ENOUGH} or less: no text is searched for more")
    return float(value)


def _languages(value: Any) -> ByLanguage:
    """Limits by label and rule, with every label in the form that the step `language` writes."""
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping of languages, such as {zho: {duplicate_lines: 0.4}}")
    found: ByLanguage = {}
    for name, limits in value.items():
        label = _label(name)
        if label in found:
            raise ValueError(f"{label} is named more than once")
        if not isinstance(limits, Mapping):
            raise ValueError(f"{name}: expected a mapping of rules and limits, such as {{duplicate_lines: 0.4}}")
        found[label] = {rule: _limit_in(name, rule, limit) for rule, limit in limits.items()}
    return found


def _limit_in(name: str, rule: Any, limit: Any) -> float | str:
    if rule not in BY_NAME:
        raise ValueError(f"{name}: there is no rule {rule!r}{nearest(str(rule), BY_NAME)}")
    try:
        return _limit(BY_NAME[rule], limit, or_preset=False)
    except ValueError as error:
        raise ValueError(f"{name}.{rule}: {error}") from None


def _label(name: Any) -> str:
    """`zho`, `zho_Hant`, `und_Hani`, from these or from zh, zh-Hant."""
    if name is False:
        raise ValueError("YAML reads no as false: write 'no' in quotes, or nob")
    match = LABEL.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(f"expected a language or label, such as zh, zho, zho_Hant or und_Hani, found {name!r}")
    code, script = to_iso639_3(match["language"]), (match["script"] or "").title()
    if code not in LANGUAGE_SCRIPTS:
        raise ValueError(f"no label has the language {code!r}{nearest(code, LANGUAGE_SCRIPTS)}")
    if code == "und" and not script:
        raise ValueError(
            "und is every text without a language: give its script, such as und_Latn, or set the rule itself"
        )
    label = f"{code}_{script}" if script else code
    known = SCRIPT_LABELS if code == "und" else [f"{code}_{one}" for one in LANGUAGE_SCRIPTS[code]]
    if script and label not in known:
        raise ValueError(f"no text has the label {label!r}{nearest(label, known)}")
    return label


def _preset(value: str) -> str:
    if value not in PRESETS:
        raise ValueError(f"expected a preset ({', '.join(PRESETS)}){nearest(value, PRESETS)}")
    return value


class RulesSettings(StepConfig):
    """A preset, and what differs from it.

    The key of a rule is a limit for all languages, `off`, or `preset`: what the preset says. A document is dropped above
    the limit of a maximum, below that of a minimum.
    """

    preset: Annotated[str, AfterValidator(_preset)] = Field(default="massive", examples=["gopher"])
    """Which rules are on, and their limits: see docs/how-to/tune-the-quality-rules.md."""
    languages: Annotated[ByLanguage, PlainValidator(_languages)] = Field(
        default_factory=dict, examples=[{"zho": {"duplicate_lines": 0.5}}]
    )
    """Limits for single languages (`zho`), labels (`zho_Hant`) or scripts (`und_Hani`), in place of all others."""

    def deciding(self) -> dict[str, Any]:
        """The limits themselves: a preset with new numbers decides otherwise, whatever it is called."""
        return {"limits": {rule: [dict(by_key) for by_key in layers] for rule, layers in limits_of(self).items()}}


def _field(rule: Rule) -> Any:
    side = "Most" if rule.side == "max" else "Least"
    about = f"{side} of `{rule.measure}` ({rule.unit}): {rule.sentence}. {rule.source}."
    checked = Annotated[float | str, PlainValidator(partial(_limit, rule))]
    return checked, Field(default=AS_PRESET, description=about, examples=[0.5])


RulesConfig = cast(
    type[RulesSettings],
    create_model(
        "RulesConfig",
        __base__=RulesSettings,
        __module__=__name__,
        __doc__=RulesSettings.__doc__,
        **cast(Any, {rule.name: _field(rule) for rule in RULES}),
    ),
)
"""The settings, with a key for each rule of the table."""


def limits_of(config: RulesSettings) -> Layers:
    """What a config comes to: limits by rule and key, in the order of the rules; rules that are off are left out."""
    preset = preset_limits(config.preset)
    found = {}
    for rule in RULES:
        value = getattr(config, rule.name)
        own = {label: _number(limits[rule.name]) for label, limits in config.languages.items() if rule.name in limits}
        layers = (own, preset.get(rule.name, {}) if value == AS_PRESET else {DEFAULT: _number(value)})
        if any(limit is not None for by_key in layers for limit in by_key.values()):
            found[rule.name] = tuple(by_key for by_key in layers if by_key)
    return found


def _number(value: float | str) -> float | None:
    return None if isinstance(value, str) else value

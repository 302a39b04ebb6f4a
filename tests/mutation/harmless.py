"""Mutants that nothing notices and that change nothing anybody could see, each with why."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

__all__ = ["HARMLESS", "why_harmless"]

_CANDIDATES = (
    "it decides which pairs are looked at, not which are copies: the exact Jaccard does; that nothing is missed, the floors of "
    "`near` and its property tests hold"
)
_ALARM = "it decides no verdict, only when an alarm is raised or the run stops"
_NEURAL = "only neural models have windows, and the default engine has none: tests/unit tries them with one that has"

HARMLESS: Mapping[str, str] = {
    "near: num_perm *": _CANDIDATES,
    "near: recall 0.999 -> 0.9995": _CANDIDATES,
    "near: simhash_distance *": _CANDIDATES,
    "near: alarm_group_share *": _ALARM,
    "near: max_dropped_share *": _ALARM,
    "near: *Near._cluster: `np.diff(clusters.starts).max*": "it decides only whether a run is refused that has too little memory",
    "near: *Verifier.groups: *": "it decides whether a cluster is compared at once or in blocks, which gives the same result",
    "near: *Verifier._found_by: *": "it tells which signatures found a copy, in the score `found_by`, and drops nothing",
    "near: *Verifier._table: `(size > 1) & (members.part < self.n_new)`: & -> |": (
        "documents of earlier runs, or in no group, are listed too, and no shard of this run reads their lines, or as kept"
    ),
    "near: *Verifier._in_order: `index < self.n_new`: < -> <=": (
        "the order among documents of earlier runs only names the partner of a copy, and all of them stay"
    ),
    "near: *Verifier._table: `size > 1`: > -> >=": "documents in no group are then listed too, as kept ones, which they are",
    "blacklisted: min_evidence 1 -> 0": "the setting must be 1 or more, and an entry that rests on nothing is none",
    "perplexity: window *": _NEURAL,
    "perplexity: stride *": _NEURAL,
    "perplexity: max_windows *": _NEURAL,
    "rules: gopher: short_words [[]und_Kore] 1 -> 0.8": "no word is shorter than one syllable, so that a limit below 1 is as good as 1",
    "safety_terms: *`_floats(scores, 'units') > 0`: > -> >=": (
        "a text without letters has no hits, so no peak of it reaches a limit, and those must be above 0"
    ),
    "safety_model: *lookup_keys: `if code`: not": "of a script alone it has no limits: its settings take languages",
    "perplexity: *LanguageCalibration.at: `percentile *": "the settings allow no percentile of 0 or 100 or beyond",
    "perplexity: *`read.perplexity > limits.max_perplexity`: > -> >=": (
        "a perplexity is a float64: that it is its limit to the last digit is chance, and no model promises that digit"
    ),
}
"""By `step: name`, as shell patterns."""


def why_harmless(step: str, mutant: str) -> str | None:
    """Why a mutant, by its name, does no harm; None if nobody has said so."""
    name = f"{step}: {mutant}"
    return next((why for pattern, why in HARMLESS.items() if fnmatchcase(name, pattern)), None)

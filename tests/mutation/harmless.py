"""Mutants that nothing notices and that change nothing anybody could see, each with why.

One by one and by its whole name: a pattern would call faults harmless that nobody has looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["HARMLESS", "why_harmless"]

_CANDIDATES = (
    "it decides which pairs are looked at, not which are copies: the exact Jaccard does; that nothing is missed, the floors of "
    "`near` and its property tests hold"
)
_ALARM = "it decides no verdict, only when an alarm is raised or the run stops"
_NEURAL = "only neural models have windows, and the default engine has none: tests/unit tries them with one that has"
_PERCENTILES = "the settings allow no percentile of 0 or 100 or beyond"
_TOLD = "it tells which signatures found a copy, in the score `found_by`, and drops nothing"

_GROUPS = "near: curation/dedup/verify.py: Verifier.groups"
_TABLE = "near: curation/dedup/verify.py: Verifier._table"
_FOUND_BY = "near: curation/dedup/verify.py: Verifier._found_by"
_AT = "perplexity: curation/filters/perplexity/buckets.py: LanguageCalibration.at"
_OUTSIDE = "perplexity: curation/filters/perplexity/step.py: Perplexity.outside"

HARMLESS: Mapping[str, str] = {
    "perplexity: window 1024 -> 1229": _NEURAL,
    "perplexity: window 1024 -> 819": _NEURAL,
    "perplexity: stride 768 -> 922": _NEURAL,
    "perplexity: stride 768 -> 614": _NEURAL,
    "perplexity: max_windows 8 -> 10": _NEURAL,
    "perplexity: max_windows 8 -> 6": _NEURAL,
    f"{_AT}: `percentile <= 0 or percentile >= 100`: or -> and": _PERCENTILES,
    f"{_AT}: `percentile <= 0`: <= -> <": _PERCENTILES,
    f"{_AT}: `percentile >= 100`: >= -> >": _PERCENTILES,
    f"{_AT}: `percentile <= 0`: <= -> > (2.)": _PERCENTILES,
    f"{_AT}: `percentile <= 0`: <= -> < (2.)": _PERCENTILES,
    f"{_OUTSIDE}: `read.perplexity > limits.max_perplexity`: > -> >=": (
        "a perplexity is a float64: that it is its limit to the last digit is chance, and no model promises that digit"
    ),
    "rules: gopher: short_words [und_Kore] 1 -> 0.8": (
        "no word is shorter than one syllable, so that a limit below 1 is as good as 1"
    ),
    "safety_terms: curation/filters/safety_terms/step.py: SafetyTerms.decide: `_floats(scores, 'units') > 0`: > -> >=": (
        "a text without letters has no hits, so no peak of it reaches a limit, and those must be above 0"
    ),
    "near: num_perm 128 -> 154": _CANDIDATES,
    "near: num_perm 128 -> 102": _CANDIDATES,
    "near: recall 0.999 -> 0.9995": _CANDIDATES,
    "near: simhash_distance 3 -> 4": _CANDIDATES,
    "near: simhash_distance 3 -> 2": _CANDIDATES,
    "near: alarm_group_share 0.01 -> 0.012": _ALARM,
    "near: alarm_group_share 0.01 -> 0.008": _ALARM,
    "near: max_dropped_share 1 -> 2": _ALARM,
    "near: max_dropped_share 1 -> 0": _ALARM,
    f"{_GROUPS}: `high - low == 1 and members.weight[begin:end].sum() > self.max_values`: and -> or": (
        "a cluster alone in its batch is then compared in blocks though it fits into memory, with the same result"
    ),
    f"{_GROUPS}: `high - low == 1`: == -> !=": (
        "clusters that share a batch fit into memory, so none is compared in blocks: the same result, with more memory"
    ),
    f"{_GROUPS}: `members.weight[begin:end].sum() > self.max_values`: > -> >=": (
        "a cluster that just fits into memory is then compared in blocks, with the same result"
    ),
    f"{_TABLE}: `(size > 1) & (members.part < self.n_new)`: & -> |": (
        "documents of earlier runs are then listed, which no shard of this run reads, and those in no group, as kept "
        "ones, which they are"
    ),
    f"{_TABLE}: `size > 1`: > -> >=": (
        "documents in no group are then listed too, as kept ones, which they are; a run without any copy names a group "
        "of one as its largest"
    ),
    f"{_TABLE}: `members.part < self.n_new`: < -> <=": (
        "documents of the first earlier shard are then listed behind all others, as kept ones of the same group; no "
        "shard of this run reads those lines, and counts are of dropped ones"
    ),
    f"{_FOUND_BY}: `self.distance is not None`: is not -> is": _TOLD,
    f"{_FOUND_BY}: `self._marks(members, rows) == self._marks(members, partners)`: == -> !=": _TOLD,
    f"{_FOUND_BY}: `np.minimum(members.weight[rows], members.weight[partners]) >= MIN_SHINGLES`: >= -> <": _TOLD,
    f"{_FOUND_BY}: `np.minimum(members.weight[rows], members.weight[partners]) >= MIN_SHINGLES`: >= -> >": _TOLD,
    f"{_FOUND_BY}: `same.any(axis=1)`: any -> all": _TOLD,
    f"{_FOUND_BY}: `np.minimum(members.weight[rows], members.weight[partners])`: minimum -> maximum": _TOLD,
    f"{_FOUND_BY}: `(apart <= self.distance) & long`: & -> |": _TOLD,
    f"{_FOUND_BY}: `apart <= self.distance`: <= -> >": _TOLD,
    f"{_FOUND_BY}: `apart <= self.distance`: <= -> <": _TOLD,
}
"""By `step: name`."""


def why_harmless(step: str, mutant: str) -> str | None:
    """Why a mutant, by its name, does no harm; None if nobody has said so."""
    return HARMLESS.get(f"{step}: {mutant}")

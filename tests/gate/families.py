"""The gold figures of all filters, by family: what the gate holds to its floors, and what a changed filter can be judged by.

    gold = Gold(DATA)                                       # texts are read once, and scores kept, in this object
    before = FAMILIES["rules"].figures(gold)                # {"rules.good_kept.zh": Figure(hits, n), ...}
    after = FAMILIES["rules"].figures(gold, {"rules": changed})

`changed` maps names of filters to `Filter` objects that judge in place of the default ones (of `near`: a `Near`). Their `decide`
is asked on the scores that the gold keeps; scores are computed anew only if the object's `score_config` differs from the default
one's, or within `gold.rescoring("rules")`, for changes of what scores. Where a family asks for other settings than the defaults (the
presets of `rules`), the object's own class is made with them: so a change of code is seen there too, a change of settings is not.
`families_of("rules")`: the families whose figures that filter has a part in. `broken(read(), after)` of `floors`: what the gate
would say of them.

A family of corpora `(OWN,)` is judged wherever this repository is: what needs no test data belongs to such a one.

Costs, scores included, of one core: `safety` 42 s, `documents` (quality and its filters) 19 s, `safety_own`, `language` 8 s, `near` 6 s,
`safety_terms` 4 s, `safety_terms_own` 2 s; with kept scores a family takes 0.03 to 1 s, but for `near`, which is run anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.gate.corpora import OWN
from tests.gate.documents import alone, quality, rules
from tests.gate.figures import NOTHING_CHANGED, Changed, Figure, Figures
from tests.gate.gold import Gold
from tests.gate.language import language
from tests.gate.near import near
from tests.gate.rescore import rescore
from tests.gate.safety import safety, safety_own, safety_terms, safety_terms_own

__all__ = ["FAMILIES", "Family", "Figure", "Figures", "Gold", "families_of"]


@dataclass(frozen=True)
class Family:
    """Figures that are judged together.

    corpora: sets of the gold that they are counted on, by the names in `corpora`. filters: those that have a part in them. group:
    families of one group share what takes time, and are best judged by one process.
    """

    name: str
    judge: Callable[[Gold, Changed], Figures]
    corpora: tuple[str, ...]
    filters: tuple[str, ...]
    group: str

    def figures(self, gold: Gold, changed: Changed = NOTHING_CHANGED) -> Figures:
        """Raises MissingDataError where the gold is not there."""
        return self.judge(gold, changed)


def _alone(name: str) -> Family:
    return Family(name, alone(name), ("2_text",), (name,), "documents")


_ALL = (
    Family("safety", safety, ("2_text", "5_safety", OWN), ("safety_terms", "safety_model"), "safety"),
    Family("safety_own", safety_own, (OWN,), ("safety_terms", "safety_model"), "safety"),
    Family("quality", quality, ("2_text", "6_quality"), ("html_noise", "length", "rules", "perplexity"), "documents"),
    Family("rules", rules, ("2_text",), ("rules",), "documents"),
    _alone("html_noise"),
    _alone("length"),
    _alone("perplexity"),
    _alone("token_fit"),
    Family("language", language, ("2_text", "3_neardup", "4_langid"), ("language",), "language"),
    Family("near", near, ("3_neardup",), ("near",), "near"),
    Family("safety_terms_own", safety_terms_own, (OWN,), ("safety_terms",), "safety_terms"),
    Family("safety_terms", safety_terms, ("2_text", "5_safety"), ("safety_terms",), "safety_terms"),
    Family("rescore", rescore, ("2_text",), (), "documents"),
)

FAMILIES: Mapping[str, Family] = {family.name: family for family in _ALL}
"""In the order of what they cost, most first."""


def families_of(step: str) -> list[Family]:
    """Families whose figures a filter has a part in."""
    return [family for family in _ALL if step in family.filters]

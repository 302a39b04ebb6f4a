"""Markdown of what `bench_safety` measures: groups, parts and languages, each with all systems side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from curation.wilson import wilson
from quality_models.safety_labels import CATEGORY_NAMES
from tests.bench.quality_tables import head, row
from tests.bench.safety_gold import Counts, Row, average_precision, best_f1, counts, ranks, recall_at

__all__ = [
    "ADVERTS",
    "Sheet",
    "best_table",
    "categories_table",
    "groups_table",
    "harmless_table",
    "losses_table",
    "means_table",
    "measures",
    "parts_table",
    "share_cell",
    "shifts_table",
]

_SIGMAS = 1.96  # intervals of 95 %

Doubles = npt.NDArray[np.float64]
ADVERTS = ("gambling", "sexual", "drugs", "weapons", "fraud", "spam")


@dataclass
class Sheet:
    """Rows, and each system's margins of them: nan where it was not asked of a row."""

    rows: list[Row]
    margins: dict[str, Doubles] = field(default_factory=dict)
    asked: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """Systems that only some rows are put to, and which."""

    def places(self, wanted: Callable[[Row], bool]) -> list[int]:
        return [place for place, one in enumerate(self.rows) if wanted(one)]

    def counts(self, system: str, places: Sequence[int], threshold: float = 0.0) -> Counts | None:
        """None where the system was not put to these rows."""
        if system in self.asked and not self.asked[system][list(places)].all():
            return None
        return counts([self.rows[i].unsafe for i in places], self.margins[system][list(places)], threshold)

    @property
    def groups(self) -> dict[str, list[int]]:
        """Places by group, and, of groups of several languages, by language too."""
        found: dict[str, list[int]] = {}
        for place, one in enumerate(self.rows):
            name = f"{one.group} {one.lang}" if one.group == "HateCheck translations" else one.group
            found.setdefault(name, []).append(place)
        return found

    def mixed(self) -> dict[str, list[int]]:
        """Groups with unsafe and harmless rows. The harmless rows by hand belong to each group by hand."""
        by_hand = self.places(lambda one: one.group.startswith("by hand") and not one.unsafe)
        found = {}
        for name, places in self.groups.items():
            if name.startswith("by hand"):
                places = sorted({*(i for i in places if self.rows[i].unsafe), *by_hand})
            if len({self.rows[i].unsafe for i in places}) == 2:
                found[name] = places
        return found


def number(value: float, digits: int = 3) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def share_cell(hits: int, total: int) -> str:
    """A share in percent with its interval."""
    low, high = wilson(hits, total, _SIGMAS)
    return f"{hits}: {hits / total:.2%} ({low:.2%} to {high:.2%})" if total else ""


def _cell(found: Counts | None) -> str:
    if found is None:
        return ""
    return f"{number(found.f1)} ({number(found.precision, 2)} / {number(found.recall, 2)})"


def groups_table(sheet: Sheet) -> Iterator[str]:
    """F1 with precision and recall of every system as it is set."""
    yield from head("group", "unsafe", "harmless", *sheet.margins)
    for name, places in sheet.mixed().items():
        unsafe = sum(sheet.rows[i].unsafe for i in places)
        yield row(name, unsafe, len(places) - unsafe, *(_cell(sheet.counts(one, places)) for one in sheet.margins))


def measures(sheet: Sheet, system: str, places: Sequence[int]) -> dict[str, float]:
    """F1 as set, best F1, area under the curve, average precision, recall at .9; empty if the system was not put to these rows."""
    tally = sheet.counts(system, places)
    if tally is None:
        return {}
    truth, values = [sheet.rows[i].unsafe for i in places], sheet.margins[system][list(places)]
    return {
        "F1": tally.f1,
        "best F1": best_f1(truth, values)[0],
        "AUC": ranks(truth, values),
        "AP": average_precision(truth, values),
        "recall at .9": recall_at(truth, values),
    }


RANKED = ("best F1", "AUC", "AP", "recall at .9")


def best_table(sheet: Sheet) -> Iterator[str]:
    """What a system could reach were its threshold set for each group, and how well it ranks: so thresholds do not decide."""
    yield from head("group", *sheet.margins)
    for name, places in sheet.mixed().items():
        found = (measures(sheet, one, places) for one in sheet.margins)
        yield row(name, *(" · ".join(number(one[what], 2) for what in RANKED) if one else "" for one in found))


def means_table(sheet: Sheet, families: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Means over groups, each counting the same. families: names of groups by the name of the mean."""
    mixed = sheet.mixed()
    yield from head("mean of groups", "groups", *sheet.margins)
    for family, names in families.items():
        cells = []
        for system in sheet.margins:
            found = [measures(sheet, system, mixed[name]) for name in names]
            means = [np.mean([one[what] for one in found]) if all(found) else math.nan for what in ("F1", *RANKED)]
            cells.append(" · ".join(number(float(one)) for one in means) if all(found) else "")
        yield row(family, len(names), *cells)


def parts_table(sheet: Sheet) -> Iterator[str]:
    """Recall of the unsafe parts of groups."""
    yield from head("group", "part", "unsafe", *sheet.margins)
    parts: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(sheet.rows):
        if one.unsafe and not one.group.startswith("own"):
            parts.setdefault((one.group, one.part), []).append(place)
    for (group, part), places in parts.items():
        found = [sheet.counts(one, places) for one in sheet.margins]
        yield row(group, part, len(places), *("" if one is None else number(one.recall) for one in found))


def categories_table(sheet: Sheet, systems: Sequence[str]) -> Iterator[str]:
    """Our own rows by language and category: recall, and precision against the harmless rows of the language."""
    yield from head(
        "language", "category", "unsafe", "harmless", *(f"{one}: F1 (precision / recall)" for one in systems)
    )
    groups = {name: places for name, places in sheet.groups.items() if name.startswith("own ")}
    for name, places in sorted(groups.items(), key=lambda item: -len(item[1])):
        lang = sheet.rows[places[0]].lang
        harmless = sheet.places(lambda one, of=lang: one.group.startswith("own") and one.lang == of and not one.unsafe)  # type: ignore[misc]
        for category in ("all adverts", *CATEGORY_NAMES):
            wanted = ADVERTS if category == "all adverts" else (category,)
            unsafe = [i for i in places if sheet.rows[i].labels[:1] and sheet.rows[i].labels[0] in wanted]
            if len(unsafe) >= 8:
                some = unsafe + harmless
                cells = (f"{_cell(sheet.counts(s, some))} {_ranked(sheet, s, some)}" for s in systems)
                yield row(name.removeprefix("own "), category, len(unsafe), len(harmless), *cells)


def _ranked(sheet: Sheet, system: str, places: Sequence[int]) -> str:
    return number(measures(sheet, system, places).get("recall at .9", math.nan), 2)


def harmless_table(sheet: Sheet, groups: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Share of harmless rows that each system drops, with the interval of Wilson at 95 %."""
    yield from head("harmless", "rows", *sheet.margins)
    for name, places in groups.items():
        cells = []
        for one in sheet.margins:
            found = sheet.counts(one, places)
            cells.append("" if found is None else share_cell(found.wrong, found.wrong + found.kept))
        yield row(name, len(places), *cells)


def losses_table(sheet: Sheet, whole: str, cascade: str) -> Iterator[str]:
    """Unsafe rows that are dropped if the model reads everything, and those of them that it does not get to read."""
    yield from head("group", f"unsafe, dropped by {whole}", f"of these not {cascade}", "share lost")
    for name, places in {**sheet.mixed(), "all": range(len(sheet.rows))}.items():
        unsafe = [i for i in places if sheet.rows[i].unsafe]
        with np.errstate(invalid="ignore"):
            dropped = sheet.margins[whole][unsafe] >= 0
            lost = dropped & ~(sheet.margins[cascade][unsafe] >= 0)
        yield row(name, int(dropped.sum()), int(lost.sum()), number(float(lost.sum() / max(dropped.sum(), 1)), 3))


SHIFTS = (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)


def shifts_table(sheet: Sheet, system: str, families: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Mean recall and mean share of harmless rows dropped, were all thresholds of a system lower by so much log odds."""
    mixed = sheet.mixed()
    yield from head("thresholds lower by", *(f"{family}: recall / false alarms" for family in families))
    for shift in SHIFTS:
        cells = []
        for names in families.values():
            found = [sheet.counts(system, mixed[name], -shift) for name in names]
            means = [np.mean([getattr(one, what) for one in found]) for what in ("recall", "false_alarms")]
            cells.append(" / ".join(number(float(one)) for one in means))
        yield row(shift, *cells)

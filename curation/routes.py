"""Documents that a filter sets aside for a named output: dropped from the run as `STEP.routed`, and exported by name.

The verdict file does not hold the name: it follows from the scores and the config, as the verdict itself does
(`Filter.route_of`). Costs a look at the rows that were set aside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curation.errors import ConfigError, LawError, nearest
from curation.run import read_json
from curation.shards import Shard, item_marker, open_table
from curation.steps import PlacedStep
from curation.verdicts import Filter, Step

__all__ = ["SET_ASIDE", "check_route", "count_routes", "known_routes", "route_counts", "routed_mask", "routes_of"]

ROUTED_SUFFIX = ".routed"
SET_ASIDE = "set_aside"
"""Among a step's facts: documents by the output they are set aside for."""

_PREFIX = "route:"


def known_routes(step: Step) -> list[str]:
    """Names of the outputs that a step's config sets documents aside for, in the config's order."""
    found = _named(step.config.model_dump(mode="json")) if _sets_aside(step) else []
    return list(dict.fromkeys(found))


def _named(config: Any) -> list[str]:
    if isinstance(config, str):
        return [config.removeprefix(_PREFIX)] if config.startswith(_PREFIX) else []
    values: Iterator[Any] = iter(config.values() if isinstance(config, Mapping) else ())
    if isinstance(config, list):
        values = iter(config)
    return [name for value in values for name in _named(value)]


def _sets_aside(step: Step) -> bool:
    return isinstance(step, Filter) and f"{step.name}{ROUTED_SUFFIX}" in step.reasons


def routes_of(step: Step, verdicts: pa.Table) -> list[str | None]:
    """The output that each document of a verdict table is set aside for; None where it is set aside for none.

    Raises:
        LawError: a document was set aside, but the step names no output: nobody could find it.
    """
    found: list[str | None] = [None] * verdicts.num_rows
    if not _sets_aside(step):
        return found
    assert isinstance(step, Filter)
    is_routed = pc.equal(verdicts.column("reason").cast(pa.string()), f"{step.name}{ROUTED_SUFFIX}")
    rows = pc.indices_nonzero(is_routed.fill_null(False)).to_pylist()
    if not rows:
        return found
    names = [score.name for score in step.score_columns]
    scores = verdicts.select(names).take(rows).combine_chunks()
    routes = step.route_of(scores.to_batches()[0])
    if len(routes) != len(rows) or not all(routes):
        raise LawError(
            f"step {step.name} set {len(rows)} documents aside as {step.name}{ROUTED_SUFFIX}, but names an output for "
            f"{sum(1 for route in routes if route)} of them: the others could not be found again. This is a fault of the step."
        )
    for row, route in zip(rows, routes, strict=True):
        found[row] = route
    return found


def count_routes(step: Step, verdicts: pa.Table) -> Counter[str]:
    """Documents of a verdict table by the output they are set aside for."""
    return Counter(route for route in routes_of(step, verdicts) if route is not None)


def route_counts(placed: Sequence[PlacedStep]) -> dict[str, int]:
    """Documents of a finished run by the output they are set aside for, those of the config without any too."""
    counts: dict[str, int] = {}
    for one in placed:
        found = read_json(one.folder / "_done.json").get("facts", {}).get(SET_ASIDE, {})
        for name in known_routes(one.step):
            counts[name] = counts.get(name, 0) + found.get(name, 0)
    return counts


def check_route(name: str, placed: Sequence[PlacedStep], run_id: str) -> None:
    """Refuse the name of an output that the run's config knows nothing of.

    Raises:
        ConfigError: names those it knows.
    """
    known = list(dict.fromkeys(route for one in placed for route in known_routes(one.step)))
    if name in known:
        return
    if not known:
        raise ConfigError(
            f"--route {name}: run {run_id} sets no document aside. A step of its config does with a setting such as "
            f"`mixed: route:{name}` of the step language."
        )
    raise ConfigError(
        f"--route {name}: run {run_id} sets nothing aside under that name{nearest(name, known)}. Known: {', '.join(known)}."
    )


def routed_mask(placed: Sequence[PlacedStep], shard: Shard, name: str) -> npt.NDArray[np.bool_]:
    """Which documents of a shard are set aside for the output `name`, by whatever step: bool[rows]."""
    mask = np.zeros(shard.rows, np.bool_)
    for one in placed:
        if name not in known_routes(one.step):
            continue
        marker = item_marker(one.folder, shard.name)
        table = open_table(one.folder / f"{shard.name}.arrow", marker["verdict_sha256"], shard.rows).read_all()
        mask |= np.array([route == name for route in routes_of(one.step, table)], np.bool_)
    return mask

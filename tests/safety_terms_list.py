"""A short list of terms for tests: a few strong ones, weak ones with context, an expression."""

from __future__ import annotations

from pathlib import Path

from curation.filters.safety_terms import SafetyTerms, SafetyTermsConfig

ROWS = r"""# language: mul
# licence: CC0-1.0
# source: written for this test
# version: 1
@contact	0	sub	加 | 微信 | 群 | 私聊
gambling	4	sub	赌博 | 博彩
gambling	4	sub	赌场开户 | 線上賭場
gambling	4	sub	카지노
drugs	2	sub	마약
gambling	1	sub	场	@contact
gambling	4	word	online casino | casino | roulette
gambling	4	word	казино
gambling	2	word	bet365 | 365
spam	1	sub	上车	@contact, 老司机	上车点, 公交
spam	1	sub	暗号	@contact
spam	2	regex	加 | vx =~ (加|vx)\s?[a-z][a-z0-9]{3,12}
filler	1	sub	沙发	楼主, 前排	沙发床, 茶几
filler	1	sub	顶	楼主
sexual	4	word	porn | pornhub | escorts
sexual	2	word	sex | anal | ass | pussy
sexual	2	word	pissing
sexual	1	word	s	@contact
drugs	4	word	cocaine | buy cocaine | mdma
drugs	4	word	trạng | coño
hate	4	sub	бля
fraud	1	word	bet	@
fraud	2	sub	群聊		@
"""


def write_list(folder: Path, rows: str = ROWS, name: str = "list.tsv") -> Path:
    """The list as a file."""
    path = folder / name
    path.write_text(rows, "utf-8")
    return path


def step_of(path: Path, **settings: object) -> SafetyTerms:
    """The filter with this list alone."""
    return SafetyTerms(SafetyTermsConfig.model_validate({"shipped": False, "files": [path], **settings}))

"""How much a change may move before `corpusmill impact` fails: the config's section `impact`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ImpactConfig"]

Share = Annotated[float, Field(ge=0, le=1)]


class ImpactConfig(BaseModel):
    """Bounds. A document moves if it is kept on one side only; shares are of the documents that the base keeps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_kept_change: Share | None = Field(
        None, description="largest share of documents that may leave or come in together; null: any"
    )
    max_language_change: Share | None = Field(
        None, description="the same within each language that has `least_documents` in the sample; null: any"
    )
    languages: dict[str, Share] = Field(
        default_factory=dict, description="the same for single languages, by the label of the step `language`"
    )
    least_documents: Annotated[int, Field(ge=1)] = Field(
        30, description="languages with fewer kept documents in the sample are told, but not held to `max_language_change`"
    )

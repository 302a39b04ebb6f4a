"""How much a change may move before `corpusmill impact` fails: the config's section `impact`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ImpactConfig"]

Share = Annotated[float, Field(ge=0, le=1)]


class ImpactConfig(BaseModel):
    """How much a change may move before `corpusmill impact` fails, and CI with it. A document moves if it is kept on one side
    only; shares are of the documents that the base keeps, by weights of a sample that was drawn. No run reads this section, so
    it changes none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_kept_change: Share | None = Field(
        None, description="largest share of documents that may leave or come in together; null: any"
    )
    max_language_change: Share | None = Field(
        None, description="the same within each language that has `least_documents` in the sample; null: any"
    )
    languages: dict[str, Share] = Field(
        default_factory=dict,
        description="the same for single languages, by the label of the step `language`, such as {zho_Hant: 0.01}",
    )
    least_documents: Annotated[int, Field(ge=1)] = Field(
        50,
        description="languages of which each side keeps fewer documents of the sample are told, but not held to "
        "`max_language_change`; where it is small, one document may be more than the bound: 1 of 50 is 2 %",
    )

    @property
    def bounds_anything(self) -> bool:
        """Whether there is a limit in it at all."""
        return bool(self.languages) or (self.max_kept_change, self.max_language_change) != (None, None)

"""Configuration of the export at the end of a run, and what the name of an exported file may be."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, field_validator

__all__ = ["FORMATS", "LANGUAGE", "ExportConfig"]

FORMATS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")
LANGUAGE = "{language}"
"""Stands in the name of a file for the language of its documents."""


class ExportConfig(BaseModel):
    """The kept documents as text, one file for each language in the run's `export/`, written when the run is done."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    pattern: str = "{language}.jsonl.zst"
    """Name of a file: `{language}` becomes `eng_Latn`, `zho_Hans` ...; ends in .jsonl, .jsonl.gz, .jsonl.zst or .parquet."""

    @field_validator("pattern")
    @classmethod
    def _is_a_file_name(cls, value: str) -> str:
        is_name = not {"/", "\0"} & set(value) and not value.startswith((".", "_"))
        if not is_name or value.count(LANGUAGE) != 1 or not value.endswith(FORMATS):
            raise ValueError(
                f"expected the name of a file, with {LANGUAGE} in it once, that ends in {', '.join(FORMATS)}"
            )
        return value

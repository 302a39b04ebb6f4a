"""Other tools for language identification: one driver for all, run by an interpreter that has the tool.

    PYTHON tests/bench/language_peers.py answers TOOL MODEL < texts.json > answers.json
    PYTHON tests/bench/language_peers.py speed TOOL MODEL < texts.json

texts.json is a list of texts, MODEL is lid.176.ftz. `answers` gives the tool's label of each text, null for none. `speed`
prints one line of JSON: processor and wall seconds for all texts, seconds of loading, and memory. The interpreter
need not have this project's packages; each tool is asked as its own documentation shows.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Ask = Callable[[str], Any]


def by_fasttext(model: str) -> Ask:
    """A whole text, line feeds replaced by blanks."""
    loaded = importlib.import_module("fasttext").load_model(model)

    def ask(text: str) -> str | None:
        labels, _ = loaded.predict(text.replace("\n", " "))
        return str(labels[0]).removeprefix("__label__") if len(labels) else None

    return ask


def by_fasttext_lines(model: str) -> Ask:
    """Each line of a text."""
    loaded = importlib.import_module("fasttext").load_model(model)
    return lambda text: loaded.predict(text.split("\n"))[0]


def by_langdetect(_: str, module: str = "langdetect") -> Ask:
    """With a seed, since it walks at random; it raises an exception where it finds nothing."""
    package = importlib.import_module(module)
    package.DetectorFactory.seed = 0

    def ask(text: str) -> str | None:
        try:
            return str(package.detect(text))
        except package.LangDetectException:
            return None

    ask("a text, so that the profiles are loaded")
    return ask


def by_langdetect_rs(model: str) -> Ask:
    """langdetect's core in Rust."""
    return by_langdetect(model, "langdetect_rs")


def by_lingua(_: str) -> Ask:
    """With all its languages and its models for high accuracy."""
    builder = importlib.import_module("lingua").LanguageDetectorBuilder
    detector = builder.from_all_languages().with_preloaded_language_models().build()

    def ask(text: str) -> str | None:
        found = detector.detect_language_of(text)
        return None if found is None else str(found.iso_code_639_3.name).lower()

    return ask


def by_py3langid(_: str) -> Ask:
    """With its model, which it ships."""
    package = importlib.import_module("py3langid")
    package.classify("a text, so that the model is loaded")
    return lambda text: str(package.classify(text)[0])


def by_datatrove(model: str) -> Ask:
    """datatrove's LanguageFilter, which would load its model from the network: here it is given the file."""
    lid: Any = importlib.import_module("datatrove.utils.lid")
    lid.cached_asset_path_or_download = lambda *_, **__: model
    lid.check_required_dependencies = lambda *_: None
    made = importlib.import_module("datatrove.pipeline.filters.language_filter").LanguageFilter(label_only=True)
    document = importlib.import_module("datatrove.data").Document

    def ask(text: str) -> str:
        one = document(text=text, id="0")
        made.filter(one)
        return str(one.metadata["language"])

    ask("a text, so that the model is loaded")
    return ask


FASTTEXT = ("fasttext-community", "fasttext-numpy2-wheel", "fasttext-numpy2")

TOOLS: dict[str, tuple[str, tuple[str, ...], Callable[[str], Ask]]] = {
    "fastText": ("fasttext", FASTTEXT, by_fasttext),
    "fastText by line": ("fasttext", FASTTEXT, by_fasttext_lines),
    "langdetect": ("langdetect", ("langdetect",), by_langdetect),
    "langdetect-rs": ("langdetect_rs", ("langdetect-rs",), by_langdetect_rs),
    "lingua": ("lingua", ("lingua-language-detector",), by_lingua),
    "py3langid": ("py3langid", ("py3langid",), by_py3langid),
    "datatrove": ("datatrove", ("datatrove",), by_datatrove),
}
"""Module that a tool needs, distributions that it may come with, and how it is asked."""


def version(tool: str) -> str:
    """Name and version of the distribution that a tool comes with."""
    for name in TOOLS[tool][1]:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return tool


def memory_from_here() -> float:
    """Resident MB now; `peak_memory` forgets all that was before."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def peak_memory() -> float:
    """Most resident MB since `memory_from_here`."""
    return _status("VmHWM")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def main() -> int:
    what, tool, model = sys.argv[1:4]
    texts = json.load(sys.stdin.buffer)
    before = memory_from_here()
    begin = time.perf_counter()
    ask = TOOLS[tool][2](model)
    loading = time.perf_counter() - begin
    if what == "answers":
        json.dump({"version": version(tool), "labels": [ask(text) for text in texts]}, sys.stdout)
        return 0
    cpu, wall = sum(os.times()[:2]), time.perf_counter()
    for text in texts:
        ask(text)
    used = {"cpu": sum(os.times()[:2]) - cpu, "wall": time.perf_counter() - wall, "loading": loading}
    print(json.dumps({"version": version(tool), "grown_mb": peak_memory() - before, **used}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Put adapters of `corpusmill train-safety`, trained one upon the other, side by side in the file that ships.

    python tools/join_safety_adapters.py --thresholds thresholds.json --out FILE first [second ...]

Each argument is the output folder of a training; each later one had the one before as its --base. Their matrices stand
beside each other (rank 16 and 16 are 32); pooler and head are the last one's, scaling (Platt) and base the first one's.
thresholds.json: {"default": {label: p}, "long": {label: p}}, with those of the union `other`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

UNIONS = {"other": ["gambling", "sexual", "drugs", "weapons", "fraud", "spam"]}
KEPT = ("format", "labels", "temperature", "max_tokens", "stride", "normalised", "base")
Read = tuple[dict[str, str], dict[str, Any]]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folders", type=Path, nargs="+")
    options.add_argument("--thresholds", type=Path, required=True)
    options.add_argument("--out", type=Path, required=True)
    given = options.parse_args()
    first, *others = [read(folder / "adapter.safetensors") for folder in given.folders]
    facts, tensors = first
    for one in others:
        facts, tensors = joined((facts, tensors), one)
    said = json.loads(first[0]["safety"])
    thresholds = json.loads(given.thresholds.read_text("utf-8"))
    safety = {key: said[key] for key in KEPT} | {"unions": UNIONS}
    safety["thresholds"] = {"default": thresholds["default"], "long": thresholds["long"], "languages": {}}
    save_file(tensors, given.out, metadata=facts | {"safety": json.dumps(safety)})
    print(f"{given.out}: {given.out.stat().st_size:,} bytes, rank {facts['rank']}")


def read(path: Path) -> Read:
    """Metadata and tensors."""
    with safe_open(path, "np") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def joined(first: Read, second: Read) -> Read:
    """Two adapters as one: W + s (B1 A1) + s (B2 A2) = W + s [B1 B2] [A1; A2]."""
    (facts, tensors), (later, more) = first, second
    found = dict(tensors)
    ratio = np.float16(float(later["scale"]) / float(facts["scale"]))
    for name, values in more.items():
        if name.endswith("lora_A"):
            found[name] = np.concatenate([tensors[name], values])
        elif name.endswith("lora_B"):
            found[name] = np.concatenate([tensors[name], values * ratio], axis=1)
        else:
            found[name] = values
    rank = str(int(facts["rank"]) + int(later["rank"]))
    return later | {"scale": facts["scale"], "base": facts["base"], "rank": rank}, found


if __name__ == "__main__":
    main()

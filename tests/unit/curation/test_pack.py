"""Kept documents in, token file out: counts that add up, limits that hold, errors that say what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError
from tokenizers import Tokenizer, models, pre_tokenizers

from curation.errors import ConfigError, RunError
from curation.pack import MixConfig, PackConfig, assemble, encode_digest, encode_shard, pack_digest
from curation.run import file_sha256
from tests.fakes import SOURCE, shard_table
from tests.token_files import letter_tokenizer, save_tokenizer, unigram_tokenizer, word_tokenizer
from tokenization.packing.assemble import Assembly
from tokenization.reader import TokenFile, verify
from tokenization.tokenizer import load_tokenizer

CONFIG = PackConfig(seq_len=64)
DEFAULT = load_tokenizer()
TEXTS = [
    *("Hello world.", "今天天气很好，我们去公园吧。", "x", "   ", "a<|endoftext|>b"),
    *("one two three " * 40, "def f(x):\n    return x\n", "😀" * 30, "ไม่มีช่องว่าง", "end"),
]


def write_shard(path: Path, texts: Sequence[str], first_row: int = 0, batch_rows: int = 3) -> Path:
    """A shard as ingest writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = shard_table(texts, first_row)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    return path


def pack(folder: Path, texts: Sequence[str], config: PackConfig = CONFIG, cuts: Sequence[int] = ()) -> dict[str, Any]:
    """Encode and assemble texts, cut into shards at `cuts`."""
    parts = []
    for number, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(texts)], strict=True)):
        shard = write_shard(folder / f"shards/{number}.arrow", texts[a:b], first_row=a)
        parts.append(folder / f"work/{number}.arrow")
        encode_shard(shard, None, parts[-1], config)
    return assemble(parts, pack_folder=folder / "pack", config=config, run_id="run", config_digest="digest")


def test_counts_of_a_part(tmp_path: Path) -> None:
    """Documents, tokens with EOS, characters, and the checksum of what lies on disk."""
    shard, out = write_shard(tmp_path / "s.arrow", TEXTS), tmp_path / "part.arrow"
    counts = encode_shard(shard, None, out, CONFIG)
    encoded = DEFAULT.encode_documents(TEXTS)
    assert counts == {
        "documents": 10,
        "tokens": len(encoded.ids),
        "unknown": 0,
        "characters": sum(map(len, TEXTS)),
        "lost": 0,
        "sha256": file_sha256(out),
        "engine": DEFAULT.engine,
    }


def test_the_engine_is_noted_and_changes_no_byte(tmp_path: Path) -> None:
    """Parts and token files are the same with the fast library and the stock one; the manifest says which it was."""
    shard = write_shard(tmp_path / "s.arrow", TEXTS)
    parts = [tmp_path / name for name in ("auto", "stock")]
    stock = PackConfig(seq_len=64, engine="stock")
    counts = [encode_shard(shard, None, part, config) for part, config in zip(parts, (CONFIG, stock), strict=True)]
    assert parts[0].read_bytes() == parts[1].read_bytes()
    engines = [count.pop("engine") for count in counts]
    assert counts[0] == counts[1]
    assert engines[0].startswith("fastokens")
    assert engines[1].endswith("(asked for)")
    keywords: dict[str, Any] = {"config": CONFIG, "run_id": "run", "config_digest": "digest"}
    for part, engine in zip(parts, engines, strict=True):
        folder = tmp_path / f"pack-{part.name}"
        assemble([part], pack_folder=folder, engines=[engine, engine], **keywords)
        assert json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["engines"] == [engine]
    for name in ("tokens.arrow", "documents.parquet"):
        assert (tmp_path / "pack-auto" / name).read_bytes() == (tmp_path / "pack-stock" / name).read_bytes()


KEEP = [True, False, None, True, False, True, True, True, False, True]


@pytest.mark.parametrize("kind", [np.array, pa.array, lambda keep: pa.array(keep, pa.bool_())])
def test_only_kept_documents_are_encoded(kind: Any, tmp_path: Path) -> None:
    """A mask from NumPy or Arrow; what was not looked at is not kept."""
    keep = kind([bool(k) for k in KEEP] if kind is np.array else KEEP)
    shard, out = write_shard(tmp_path / "s.arrow", TEXTS), tmp_path / "part.arrow"
    kept = [text for text, k in zip(TEXTS, KEEP, strict=True) if k]
    assert encode_shard(shard, keep, out, CONFIG)["tokens"] == len(DEFAULT.encode_documents(kept).ids)
    table = pa.ipc.open_file(str(out)).read_all()
    assert table.column("id").to_pylist() == [f"d{i}" for i, k in enumerate(KEEP) if k]


@pytest.mark.parametrize("n", [0, 9, 11])
def test_verdicts_of_another_shard_are_refused(n: int, tmp_path: Path) -> None:
    """Row counts must fit, or documents would slide."""
    shard = write_shard(tmp_path / "s.arrow", TEXTS)
    with pytest.raises(RunError, match=f"has 10 rows, but {n} verdicts"):
        encode_shard(shard, np.ones(n, np.bool_), tmp_path / "part.arrow", CONFIG)
    assert not (tmp_path / "part.arrow").exists()


def test_what_is_packed(tmp_path: Path) -> None:
    """Counts as the funnel wants them, a file that verifies with its manifest, and every document in its place."""
    packed = pack(tmp_path, TEXTS, cuts=(4,))
    encoded = DEFAULT.encode_documents(TEXTS)
    file = TokenFile(tmp_path / "pack/tokens.arrow", verify="all")
    assert {name: packed[name] for name in ("left_out", "copies", "holdout_documents", "lost_share")} == {
        "left_out": 0,
        "copies": 10,
        "holdout_documents": 0,
        "lost_share": 0.0,
    }
    assert [one["path"] for one in packed["files"]] == ["tokens.arrow"]
    assert (packed["documents"], packed["tokens"], packed["sequences"]) == (10, len(encoded.ids), len(file))
    assert packed["padding_share"] == pytest.approx(1 - len(encoded.ids) / (len(file) * 64))
    assert (file.metadata.run_id, file.metadata.config_digest) == ("run", "digest")
    assert file.metadata.golden_ids == DEFAULT.golden_ids
    table = pq.read_table(tmp_path / "pack/documents.parquet")
    assert table.column("id").to_pylist() == [f"d{i}" for i in range(10)]
    assert table.column("source").to_pylist() == [SOURCE] * 10
    assert table.column("n_tokens").to_pylist() == encoded.lengths.tolist()
    manifest = json.loads((tmp_path / "pack/manifest.json").read_text(encoding="utf-8"))
    assert manifest["files"]["tokens.arrow"] == {
        "bytes": (tmp_path / "pack/tokens.arrow").stat().st_size,
        "seal": file.seal,
    }
    assert manifest["tokenizer"]["fingerprint"] == DEFAULT.fingerprint()
    assert verify(tmp_path / "pack/tokens.arrow").ok


@pytest.mark.parametrize("cuts", [(), (1,), (3, 3, 7), (0, 10), tuple(range(1, 10))])
def test_shards_leave_no_trace(cuts: tuple[int, ...], tmp_path: Path) -> None:
    """The same bytes for any number of shards, empty ones among them."""
    pack(tmp_path / "whole", TEXTS)
    pack(tmp_path / "cut", TEXTS, cuts=cuts)
    for name in ("tokens.arrow", "documents.parquet", "manifest.json"):
        assert (tmp_path / "whole/pack" / name).read_bytes() == (tmp_path / "cut/pack" / name).read_bytes()


@pytest.mark.parametrize("n_parts", [0, 2])
def test_nothing_kept_is_a_valid_file(n_parts: int, tmp_path: Path) -> None:
    """Everything dropped: a token file and a table of zero rows, shares of nothing."""
    parts = []
    for number in range(n_parts):
        shard = write_shard(tmp_path / f"{number}.arrow", TEXTS)
        parts.append(tmp_path / f"part-{number}.arrow")
        encode_shard(shard, np.zeros(10, np.bool_), parts[-1], CONFIG)
    packed = assemble(parts, pack_folder=tmp_path / "pack", config=CONFIG, run_id="run", config_digest="digest")
    (file,) = packed.pop("files")
    assert packed.pop("seq_len") == file.pop("seq_len") == 64
    assert (file.pop("path"), file.pop("split")) == ("tokens.arrow", "all")
    assert not any([*packed.values(), *file.values()])
    assert len(TokenFile(tmp_path / "pack/tokens.arrow", verify="all")) == 0
    assert pq.read_table(tmp_path / "pack/documents.parquet").num_rows == 0


def test_text_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups and batches of a few bytes give the same part of ids as large ones."""
    shard = write_shard(tmp_path / "s.arrow", TEXTS, batch_rows=4)
    encode_shard(shard, pa.array(KEEP), tmp_path / "large", CONFIG)
    monkeypatch.setattr("curation.pack._GROUP_BYTES", 10)
    monkeypatch.setattr("curation.pack._BATCH_BYTES", 40)
    encode_shard(shard, pa.array(KEEP), tmp_path / "small", CONFIG)
    large, small = (pa.ipc.open_file(str(tmp_path / name)) for name in ("large", "small"))
    assert small.num_record_batches > large.num_record_batches
    assert small.read_all().combine_chunks() == large.read_all().combine_chunks()


def _folder(path: Path, made: Any, eos: str) -> str:
    return str(save_tokenizer(path, made, {"eos_token": eos}))


def test_a_tokenizer_that_does_not_know_the_text_stops_the_run(tmp_path: Path) -> None:
    """Too many unknown tokens: the message names the share, the limit and the key; a raised limit lets it pass."""
    tokenizer = _folder(tmp_path / "t", word_tokenizer(), "[SEP]")
    config = PackConfig(tokenizer=tokenizer, seq_len=8, max_lost_share=1)
    with pytest.raises(ConfigError, match=r"pack.max_unk_share: 28.5714% of the tokens are unknown, more than 0.1000%"):
        pack(tmp_path, ["a b x", "a y"], config)
    assert not (tmp_path / "pack").exists()
    packed = pack(tmp_path, ["a b x", "a y"], config.model_copy(update={"max_unk_share": 0.5}))
    assert packed["unk_share"] == pytest.approx(2 / 7)


def test_a_tokenizer_that_drops_characters_stops_the_run(tmp_path: Path) -> None:
    """Without unknown token the unknown share is 0; the lost characters are counted all the same."""
    tokenizer = _folder(tmp_path / "t", letter_tokenizer(), "</s>")
    with pytest.raises(ConfigError, match=r"pack.max_lost_share: 18.1818% of the characters do not come back"):
        pack(tmp_path, ["zebra 鱼🐟 ok"], PackConfig(tokenizer=tokenizer, seq_len=8))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tokenizer": "no-such-name"}, "pack.tokenizer: no tokenizer 'no-such-name'"),
        ({"eos": "<eos>"}, r"pack.tokenizer: .*eos names '<eos>'.*<\|endoftext\|>"),
    ],
)
def test_wrong_tokenizers_are_configuration_errors(settings: dict[str, str], message: str) -> None:
    """Known before any work is done: the digest already needs the tokenizer."""
    with pytest.raises(ConfigError, match=message):
        pack_digest(PackConfig(**settings))


@pytest.mark.parametrize(
    "settings", [{"seq_len": 1}, {"seq_len": 2**24 + 1}, {"strategy": "first_fit"}, {"max_unk_share": 2}, {"seqlen": 9}]
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    """Bounds, closed lists, and no unknown keys."""
    with pytest.raises(ValidationError):
        PackConfig(**settings)


def test_the_digest_names_what_decides_the_result(tmp_path: Path) -> None:
    """Each setting and the tokenizer's content count; where the tokenizer lies does not."""
    digests = {
        pack_digest(PackConfig(**settings))
        for settings in ({}, {"seq_len": 64}, {"strategy": "concat"}, {"max_unk_share": 0.5}, {"eos": "<|pad|>"})
    }
    assert len(digests) == 5
    assert pack_digest(PackConfig(engine="stock")) not in digests, (
        "asked for when ids are in doubt: nothing is used again"
    )
    copies = [_folder(tmp_path / name, unigram_tokenizer(), "</s>") for name in ("a", "b")]
    first, second = (pack_digest(PackConfig(tokenizer=copy)) for copy in copies)
    assert first == second
    _folder(tmp_path / "b", unigram_tokenizer(), "<s>")
    Path(copies[1], "tokenizer.json").touch()
    assert pack_digest(PackConfig(tokenizer=copies[1])) != first


def test_only_what_changes_ids_is_encoded_again() -> None:
    """Lengths, order, holdout and mixture pack the same parts anew; tokenizer, EOS, BOS and engine make new ones."""
    same = [
        *({}, {"seq_len": [64, 128]}, {"strategy": "concat"}, {"shuffle_seed": 1}, {"holdout_share": 0.1}),
        *({"mix": {"epochs": {"a": 2}}}, {"mix": {"weights": {"a": 2}}}, {"max_lost_share": 0.1}),
        *({"seq_len": [128, 64]}, {"mix": {"epochs": {"b": 1, "a": 2}}}, {"mix": {"epochs": {"a": 2, "b": 1}}}),
    ]
    other = [{"eos": "<|pad|>"}, {"bos": "<|pad|>"}, {"engine": "stock"}]
    configs = [PackConfig(**settings) for settings in [*same, *other]]
    assert len({encode_digest(config) for config in configs}) == 1 + len(other)
    assert len({pack_digest(config) for config in configs}) == len(configs), "the order of patterns counts too"
    assert pack_digest(PackConfig(seq_len=[64])) == pack_digest(PackConfig(seq_len=64))


@pytest.mark.parametrize("of_folder", [True, False])
def test_a_trainers_tokenizer_is_known_by_what_it_holds(of_folder: bool, tmp_path: Path) -> None:
    """Another path is no other trainer; another file at the same path must be compared anew, and encodes nothing again."""
    digests = []
    for name in ("a", "b"):
        folder = save_tokenizer(tmp_path / name, word_tokenizer(), {"eos_token": "[SEP]"})
        folder = folder if folder.is_dir() else folder.parent
        config = PackConfig(trainer=str(folder if of_folder else folder / "tokenizer.json"))
        (folder / "weights.bin").write_text(name)
        digests.append(pack_digest(config))
    assert digests[0] == digests[1] != pack_digest(PackConfig())
    encoded = encode_digest(config)
    for change in ("config.json", "tokenizer_config.json", "tokenizer.json"):
        (folder / change).write_text('{"vocab_size": 7}')
        digests.append(pack_digest(config))
    assert len(set(digests)) == 4
    assert encode_digest(config) == encoded


@pytest.mark.parametrize(
    "settings",
    [
        *({"seq_len": []}, {"seq_len": [64, 64]}, {"seq_len": [64, 1]}, {"seq_len": True}, {"holdout_share": 0.6}),
        *({"shuffle_seed": -1}, {"mix": {}}, {"mix": {"epochs": {"a": 1}, "weights": {"a": 1}}}),
        *({"mix": {"epochs": {"a": -1}}}, {"mix": {"weights": {"a": 0}}}, {"mix": {"weights": {"a": float("inf")}}}),
        *({"mix": {"by": "author", "epochs": {"a": 1}}}, {"mix": {"epochs": {"a": float("nan")}}}),
    ],
)
def test_wrong_mixtures_and_lengths_are_refused(settings: dict[str, Any]) -> None:
    """Before any work is done."""
    with pytest.raises(ValidationError):
        PackConfig(**settings)


def test_several_lengths_a_holdout_and_a_mixture(tmp_path: Path) -> None:
    """A folder for each length and side, each with its three files that verify; the counts of all agree."""
    config = PackConfig(
        seq_len=[32, 64], shuffle_seed=7, holdout_share=0.3, mix=MixConfig(by="language", epochs={"en": 2, "zh": 0})
    )
    texts = [f"{text} {i}" for i in range(6) for text in TEXTS]
    shard = write_shard(tmp_path / "s.arrow", texts)
    languages = pa.array([("en", "zh", None)[i % 3] for i in range(len(texts))])
    encode_shard(shard, None, tmp_path / "part.arrow", config, languages)
    keywords: dict[str, Any] = {"config": config, "run_id": "run", "config_digest": "digest"}
    packed = assemble([tmp_path / "part.arrow"], pack_folder=tmp_path / "pack", **keywords)
    names = ["tokens.arrow", "holdout/tokens.arrow", "64/tokens.arrow", "64/holdout/tokens.arrow"]
    assert [file["path"] for file in packed["files"]] == names
    assert [file["split"] for file in packed["files"]] == ["train", "holdout"] * 2
    tables = {}
    for described in packed["files"]:
        path = tmp_path / "pack" / described["path"]
        assert sorted(p.name for p in path.parent.iterdir() if p.is_file()) == [
            *("documents.parquet", "manifest.json", "tokens.arrow")
        ]
        assert verify(path).ok
        header, manifest = TokenFile(path).metadata, json.loads((path.parent / "manifest.json").read_text("utf-8"))
        tables[described["path"]] = table = pq.read_table(path.parent / "documents.parquet")
        for name in ("seq_len", "split", "documents", "tokens", "sequences", "pieces", "padding_share"):
            assert described[name] == getattr(header, name) == manifest[name]
        assert (header.shuffle_seed, manifest["shuffle_seed"], manifest["mix"]) == (7, 7, [*map(dict, header.mix)])
        assert described["cut_documents"] == int((table.column("pieces").to_numpy() > 1).sum())
        assert described["documents"] == table.num_rows
    assert tables[names[0]].column("id").equals(tables[names[2]].column("id"))
    train, held = (set(tables[name].column("id").to_pylist()) for name in names[:2])
    assert len(train) + len(held) == packed["documents"]
    assert packed["holdout_documents"] == len(held) > 0
    assert packed["documents"] + packed["left_out"] == len(texts)
    assert packed["left_out"] == len(texts) // 3
    assert packed["copies"] == tables[names[0]].num_rows > len(train)
    assert set(tables[names[0]].column("language").to_pylist()) == {"en", ""}
    groups = TokenFile(tmp_path / "pack" / names[0]).metadata.mix
    assert [(group["name"], group["epochs"]) for group in groups] == [("en", 2), ("zh", 0), ("*", 1)]
    again = assemble([tmp_path / "part.arrow"], pack_folder=tmp_path / "again", threads=3, **keywords)
    assert again == packed
    for name in names:
        assert (tmp_path / "pack" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_text_is_held_out_in_every_run(tmp_path: Path) -> None:
    """By hash of the text: other shards, other neighbours, another seed and other lengths change no side."""
    texts = [f"text number {i}" for i in range(200)]
    sides = []
    for number, (mine, config) in enumerate(
        (
            (texts, PackConfig(holdout_share=0.2)),
            (texts[::-2], PackConfig(holdout_share=0.2, shuffle_seed=3, seq_len=16)),
        )
    ):
        pack(tmp_path / str(number), mine, config, cuts=(30,))
        table = pq.read_table(tmp_path / f"{number}/pack/holdout/documents.parquet")
        sides.append({mine[int(id[1:])] for id in table.column("id").to_pylist()})
    assert 20 < len(sides[0]) < 60
    assert sides[1] == sides[0] & set(texts[::-2])


@pytest.mark.parametrize(
    ("mix", "message"),
    [
        ({"weights": {"x*": 1}}, r"pack.mix: no pattern of weights fits source 'memory:texts'"),
        ({"weights": {"*": 1, "x*": 1}}, r"pack.mix: weights: 'x\*' fits no source"),
    ],
)
def test_mixtures_that_cannot_be_made_are_configuration_errors(mix: Any, message: str, tmp_path: Path) -> None:
    """Named with the key; nothing is published."""
    with pytest.raises(ConfigError, match=message):
        pack(tmp_path, TEXTS, PackConfig(seq_len=64, mix=mix))
    assert not (tmp_path / "pack").exists()


@pytest.mark.parametrize("n", [9, 11])
def test_languages_of_another_shard_are_refused(n: int, tmp_path: Path) -> None:
    """One for each row, or documents would be mixed as what they are not."""
    shard = write_shard(tmp_path / "s.arrow", TEXTS)
    with pytest.raises(RunError, match=f"has 10 rows, but {n} languages"):
        encode_shard(shard, None, tmp_path / "part.arrow", CONFIG, pa.array(["en"] * n))


@pytest.mark.parametrize("strategy", ["best_fit", "concat"])
def test_a_document_longer_than_anything(strategy: str, tmp_path: Path) -> None:
    """Longer than many sequences and whole blocks: whole sequences, a tail, no empty one, and no token lost."""
    texts = ["x", "long words in a row " * 40_000, "", "y" * 3]
    packed = pack(tmp_path, texts, PackConfig(seq_len=2, strategy=strategy, shuffle_seed=1))
    encoded = DEFAULT.encode_documents(texts)
    assert packed["tokens"] == len(encoded.ids)
    assert packed["sequences"] == -(-len(encoded.ids) // 2)
    assert verify(tmp_path / "pack/tokens.arrow").ok


def test_the_rest_of_the_last_sequence_is_not_lost(tmp_path: Path) -> None:
    """Ten sequences and 7 tokens, as one stream: 11 sequences, the last with 7 tokens, and nothing lost at borders."""
    n = 10 * 16 + 7
    text = next(text for k in range(n) if len(DEFAULT.encode_documents([text := "a b " * (k + 1)]).ids) >= n)
    ids = DEFAULT.encode_documents([text]).ids
    packed = pack(tmp_path, [text], PackConfig(seq_len=16, strategy="concat"))
    file = TokenFile(tmp_path / "pack/tokens.arrow")
    assert packed["tokens"] == len(ids)
    assert packed["sequences"] == -(-len(ids) // 16) == 11
    stream = np.concatenate([file[i] for i in range(11)])
    assert stream[: len(ids)].tolist() == ids.tolist()
    assert file.documents(10).lengths.tolist() == [len(ids) % 16]


def test_ids_above_16_bits_are_stored_in_32(tmp_path: Path) -> None:
    """By the largest id with added tokens, not by what occurs: no id ever wraps around."""
    for largest, dtype in ((65_535, np.uint16), (65_536, np.uint32), (100_000, np.uint32)):
        made = Tokenizer(models.WordLevel({"[UNK]": 0, "</s>": 1, "a": 2, "b": largest}, unk_token="[UNK]"))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        made.add_special_tokens(["</s>"])
        config = PackConfig(tokenizer=_folder(tmp_path / f"t{largest}", made, "</s>"), seq_len=4, max_lost_share=1)
        pack(tmp_path / str(largest), ["a b b", "a"], config)
        file = TokenFile(tmp_path / f"{largest}/pack/tokens.arrow", verify="all")
        assert file[0].dtype == dtype
        assert file[0].tolist() == [2, largest, largest, 1]


LIMITED = """
import resource, sys
from pathlib import Path
from curation.errors import RunError
from curation.pack import PackConfig, assemble
part, folder = Path(sys.argv[1]), Path(sys.argv[2])
for limit in (2_000, 40_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        assemble([part], pack_folder=folder, config=PackConfig(seq_len=64), run_id="run", config_digest="digest")
    except RunError as error:
        print(error)
"""


def test_a_full_disk_publishes_nothing(tmp_path: Path) -> None:
    """Files may not grow any more, anonymous ones or the token file: a named error, and the earlier files stand."""
    texts = [f"text number {i} of the shard" for i in range(2_000)]
    shard = write_shard(tmp_path / "s.arrow", texts, batch_rows=1000)
    encode_shard(shard, None, tmp_path / "work/part.arrow", CONFIG)
    pack(tmp_path, TEXTS)
    before = {path.name: path.read_bytes() for path in (tmp_path / "pack").iterdir()}
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "work/part.arrow"), str(tmp_path / "pack")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    first, second = done.stdout.splitlines()
    assert "anonymous file beside the parts" in first
    assert "tokens.arrow could not be written" in second
    assert "run the same command again" in first
    assert {path.name: path.read_bytes() for path in (tmp_path / "pack").iterdir()} == before


def test_a_killed_assembly_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the token file and its table: nothing is published, parts are whole, the next try gives the same."""
    pack(tmp_path, TEXTS)
    (part,) = (tmp_path / "work").iterdir()
    checksum = file_sha256(part)
    keywords: dict[str, Any] = {"config": CONFIG, "run_id": "run", "config_digest": "digest", "checksums": [checksum]}
    child = os.fork()
    if not child:
        monkeypatch.setattr(Assembly, "write_documents", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        assemble([part], pack_folder=tmp_path / "again", **keywords)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert all(path.name.startswith(".") for path in (tmp_path / "again").iterdir())
    assemble([part], pack_folder=tmp_path / "again", **keywords)
    for name in ("tokens.arrow", "documents.parquet", "manifest.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "pack" / name).read_bytes()


def test_two_workers_at_once(tmp_path: Path) -> None:
    """After a lost heartbeat two tries run together: both succeed, with the same bytes, and parts stay."""
    texts = [f"text number {i}" for i in range(500)]
    shard = write_shard(tmp_path / "s.arrow", texts, batch_rows=100)
    counts = encode_shard(shard, None, tmp_path / "part.arrow", CONFIG)

    def work(_: int) -> dict[str, Any]:
        keywords: dict[str, Any] = {"config": CONFIG, "run_id": "run", "config_digest": "digest", "threads": 2}
        return assemble(
            [tmp_path / "part.arrow"], pack_folder=tmp_path / "pack", checksums=[counts["sha256"]], **keywords
        )

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(8)))
    assert all(result == results[0] for result in results)
    assert verify(tmp_path / "pack/tokens.arrow").ok
    assert sorted(path.name for path in (tmp_path / "pack").iterdir()) == [
        *("documents.parquet", "manifest.json", "tokens.arrow")
    ]
    assert file_sha256(tmp_path / "part.arrow") == counts["sha256"]


def test_damaged_shards_and_parts_are_run_errors(tmp_path: Path) -> None:
    """Missing or foreign files are made anew by running again, so that is what the message says."""
    shard, part = write_shard(tmp_path / "s.arrow", TEXTS), tmp_path / "part.arrow"
    counts = encode_shard(shard, None, part, CONFIG)
    with pytest.raises(RunError, match="Run the same command again"):
        encode_shard(tmp_path / "missing.arrow", None, part, CONFIG)
    keywords: dict[str, Any] = {"pack_folder": tmp_path / "pack", "run_id": "run", "config_digest": "digest"}
    other = PackConfig(tokenizer=_folder(tmp_path / "t", unigram_tokenizer(), "</s>"))
    with pytest.raises(RunError, match="was encoded by tokenizer"):
        assemble([part], config=other, **keywords)
    with pytest.raises(RunError, match="is missing or damaged"):
        assemble([tmp_path / "missing.arrow"], config=CONFIG, **keywords)
    with pytest.raises(RunError, match="is not the part that was written"):
        assemble([part], config=CONFIG, checksums=["0" * 64], **keywords)
    assert assemble([part], config=CONFIG, checksums=[counts["sha256"]], **keywords)["documents"] == 10


def test_the_configuration_is_light(tmp_path: Path) -> None:
    """Reading a config (or parsing a DAG) loads no tokenizer."""
    code = "import sys, curation.config; print(sorted({'tokenizers', 'torch', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"

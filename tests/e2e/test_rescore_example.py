"""The example trainer's own checkpoint judges a run: what is stored is the loss that the trainer itself would have."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
import yaml

from curation.config import parse_config
from curation.launch import drive, start_run
from curation.pack import PackConfig, assemble, encode_shard
from curation.pipeline import Pipeline
from curation.rescore.checkpoints import GivenTokenizer, pin, wait_for
from curation.rescore.config import ScoreConfig
from curation.rescore.score import Order, Rescore, threshold_folder
from curation.shards import read_column
from tests.example_trainer import load_example
from tests.fakes import shard_table
from tests.token_files import save_tokenizer, small_bpe
from tokenization.progress import ProgressLedger
from tokenization.tokenizer import load_tokenizer

torch = pytest.importorskip("torch", reason="torch is not installed: `make torch`")
pytest.importorskip("transformers", reason="transformers is not installed: `make setup`")
pytestmark = pytest.mark.slow

SEQ_LEN = 128


@pytest.fixture(scope="module")
def gpt() -> ModuleType:
    """The example as a module."""
    return load_example()


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer of 600 tokens."""
    from tokenizers import Tokenizer

    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"), Tokenizer.from_str(small_bpe()), settings)


def texts() -> list[str]:
    return [f"The mill by the river turns {n} times, and then it rests for {n * n} days." for n in range(60)]


@pytest.fixture(scope="module")
def trained(gpt: ModuleType, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of six steps, with its ledger."""
    folder = tmp_path_factory.mktemp("training")
    config = PackConfig(tokenizer=str(tokenizer), eos="<|endoftext|>", seq_len=SEQ_LEN)
    table = shard_table(texts())
    with pa.ipc.new_file(str(folder / "shard.arrow"), table.schema) as writer:
        writer.write_table(table)
    encode_shard(folder / "shard.arrow", None, folder / "part.arrow", config)
    assemble([folder / "part.arrow"], pack_folder=folder / "pack", config=config, run_id="run", config_digest="digest")
    file = folder / "pack" / "tokens.arrow"
    gpt.main([str(file), "--out", str(folder / "out"), "--steps", "6", "--batch", "2", "--device", "cpu"])
    return folder / "out"


def test_the_loss_of_a_document_is_the_trainers(
    gpt: ModuleType, trained: Path, tokenizer: Path, tmp_path: Path
) -> None:
    """From the ledger's threshold to scores: each document's loss per token is that of the example's model on it alone."""
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": one}) + "\n" for one in texts()), encoding="utf-8")
    pipeline = start_run(
        parse_config(yaml.safe_dump({"name": "c", "steps": ["exact"]})), [str(tmp_path / "in.jsonl")], tmp_path / "root"
    )
    drive(pipeline, workers=1)
    ledger = ProgressLedger(trained)
    _, entry = next(iter(ledger.thresholds_passed(1000)))
    assert entry.checkpoint
    order = Order(entry.run, 1000, entry.tokens_seen)
    found = wait_for(trained / entry.checkpoint, entry.checkpoint_sha256, seconds=5)
    model = pin(
        found,
        threshold_folder(tmp_path / "root", order.training_run, order.threshold) / "_model",
        tokenizer=GivenTokenizer(str(tokenizer), eos="<|endoftext|>"),
        fingerprint=entry.tokenizer,
    )
    assert (model.bos, model.positions) == ("none", SEQ_LEN)
    config = ScoreConfig(dtype="float32", device="cpu")
    rescore = Rescore.create(tmp_path / "root", Pipeline.open(pipeline.run.folder), order, model, config)
    for one in rescore.passes():
        for item in range(one.n_items):
            rescore.run_item(one.name, item)
    assert rescore.close()["judged"] == len(texts())
    losses = rescore.scores().column("loss").to_pylist()
    state = torch.load(trained / entry.checkpoint, weights_only=True)["model"]
    network = gpt.GPT(len(state["embedding.weight"]))
    network.load_state_dict(state)
    whole = [text for shard in rescore.shards for text in read_column(shard, "text").to_pylist()]
    encoder = load_tokenizer(tokenizer, eos="<|endoftext|>")
    for row in (0, 17, 59):
        ids = torch.from_numpy(encoder.encode_batch([whole[row]])[0].astype("int64"))[None]
        n = ids.shape[1]
        mask = torch.ones(1, 1, n, n, dtype=torch.bool).tril()
        rows = gpt.Rows(ids, torch.arange(n)[None], ids, mask, torch.tensor([0, n]), n)
        with torch.inference_mode():
            logits = network(rows)[0]
        expected = torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:]).item()
        assert losses[row] == pytest.approx(expected, rel=1e-4)

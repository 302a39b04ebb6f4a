"""The example trainer: it learns, sees one document at a time, resumes bit by bit; and the page about training runs."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
import zstandard
from torch.nn import functional
from torch.utils.data import default_convert

from curation.pack import PackConfig, assemble, encode_shard
from tests.example_trainer import EXAMPLE, load_example
from tests.fakes import shard_table
from tests.token_files import save_tokenizer, small_bpe
from tokenization.mask import Mask
from tokenization.progress import ProgressLedger
from tokenization.reader import TokenFile

pytestmark = pytest.mark.slow

REPO = Path(__file__).resolve().parents[2]
PAGE = REPO / "docs" / "how-to" / "train-from-a-token-file.md"
SEQ_LEN, BATCH = 128, 8
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


gpt = load_example()


def some_texts(test_data: Path, n: int) -> list[str]:
    """Real texts of a few hundred characters, most in Latin script."""
    raw = zstandard.ZstdDecompressor().stream_reader((test_data / "2_text" / "crawl-00.jsonl.zst").open("rb"))
    texts: list[str] = []
    for line in io.TextIOWrapper(raw, encoding="utf-8"):
        text = json.loads(line)["text"]
        if 50 < len(text) < 600 and sum(map(str.isascii, text)) > 0.9 * len(text):
            texts.append(text)
            if len(texts) == n:
                break
    return texts


def write_pack(folder: Path, texts: list[str], tokenizer: Path, **settings: Any) -> Path:
    """Pack texts as a run does; returns the token file."""
    config = PackConfig(tokenizer=str(tokenizer), eos="<|endoftext|>", seq_len=SEQ_LEN, **settings)
    table = shard_table(texts)
    folder.mkdir(parents=True)
    with pa.ipc.new_file(str(folder / "shard.arrow"), table.schema) as writer:
        writer.write_table(table)
    encode_shard(folder / "shard.arrow", None, folder / "part.arrow", config)
    assemble([folder / "part.arrow"], pack_folder=folder / "pack", config=config, run_id="run", config_digest="digest")
    return folder / "pack" / "tokens.arrow"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer of 600 tokens."""
    from tokenizers import Tokenizer

    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    return save_tokenizer(tmp_path_factory.mktemp("tokenizer"), Tokenizer.from_str(small_bpe()), settings)


@pytest.fixture(scope="module")
def texts(test_data: Path) -> list[str]:
    return some_texts(test_data, 300)


@pytest.fixture(scope="module")
def tokens(texts: list[str], tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A token file of a few hundred texts."""
    return write_pack(tmp_path_factory.mktemp("run") / "run", texts, tokenizer)


def train(tokens: Path, out: Path, steps: int, *more: str) -> str:
    """Run the program in a process of its own; returns what it says."""
    command = [sys.executable, str(EXAMPLE), *arguments(tokens, out, steps, *more)]
    done = subprocess.run(command, cwd=REPO, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def arguments(tokens: Path, out: Path, steps: int, *more: str) -> list[str]:
    return [str(tokens), "--out", str(out), "--steps", str(steps), "--batch", str(BATCH), "--device", "cpu", *more]


def refused(capsys: pytest.CaptureFixture[str], tokens: Path, out: Path, steps: int, *more: str) -> str:
    """What the program says when it refuses: one line."""
    with pytest.raises(SystemExit) as stop:
        gpt.main(arguments(tokens, out, steps, *more))
    said = capsys.readouterr()
    assert (stop.value.code, said.out) == (1, "")
    assert re.fullmatch(r"train_gpt: .*\n", said.err)
    return said.err


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """More would wait for each other where the cores are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def losses(out: Path) -> dict[int, float]:
    """The loss of each step; of a step that was done again the last one."""
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return {line["step"]: line["loss"] for line in lines}


def state(out: Path) -> dict[str, Any]:
    """The newest checkpoint."""
    entry = ProgressLedger(out / "progress.jsonl").read().latest_checkpoint()
    assert entry
    assert entry.checkpoint
    loaded: dict[str, Any] = torch.load(out / entry.checkpoint, weights_only=True)
    return loaded


def same_bits(a: Any, b: Any) -> bool:
    """Equal in every bit, through dicts and lists."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_bits(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_bits, a, b))
    return bool(torch.equal(a, b)) if isinstance(a, torch.Tensor) else a == b


@pytest.fixture(scope="module")
def in_one_go(tokens: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A training of 45 steps."""
    out = tmp_path_factory.mktemp("one") / "out"
    return out, train(tokens, out, 45, "--save-every", "15")


def test_it_learns(in_one_go: tuple[Path, str], tokens: Path) -> None:
    """The loss begins at ln(vocabulary) and falls by more than a nat and a half; the last line says so."""
    out, said = in_one_go
    found = losses(out)
    assert list(found) == list(range(1, 46))
    assert found[1] == pytest.approx(torch.tensor(600.0).log().item(), abs=0.3)
    assert sum(found[step] for step in range(36, 46)) / 10 < found[1] - 1.5
    last = said.splitlines()[-1]
    assert re.fullmatch(
        r"[\d,]+ tokens seen, loss 6\.\d+ -> 4\.\d+ \(mean of the last 10 steps\), [\d,]+ tokens/s, "
        r"[\d.]+% of the time waiting for data",
        last,
    )
    share = 1 - TokenFile(tokens).metadata.padding_share
    assert int(last.split()[0].replace(",", "")) == pytest.approx(45 * BATCH * SEQ_LEN * share, rel=0.02)
    assert re.match(r"step 2  loss [\d.]+  [\d,]+ tokens  [\d,]+ tokens/s$", said.splitlines()[0])


def test_a_training_that_was_stopped_ends_with_the_same_bits(
    in_one_go: tuple[Path, str], tokens: Path, tmp_path: Path
) -> None:
    """15 steps, then 30, then 45, each in a new process and with another number of workers: losses, weights, optimizer."""
    train(tokens, tmp_path, 15, "--workers", "2")
    train(tokens, tmp_path, 30, "--resume", "--workers", "1")
    train(tokens, tmp_path, 45, "--resume")
    assert losses(tmp_path) == losses(in_one_go[0])
    assert same_bits(state(tmp_path), state(in_one_go[0]))
    assert state(tmp_path)["stream"]["step"] == 45


def test_a_training_that_goes_back(
    capsys: pytest.CaptureFixture[str], in_one_go: tuple[Path, str], tokens: Path, tmp_path: Path
) -> None:
    """From an earlier checkpoint the same steps again; nothing is overwritten, and the ledger follows."""
    gpt.main(arguments(tokens, tmp_path, 10, "--save-every", "5"))
    ledger = ProgressLedger(tmp_path / "progress.jsonl")
    first = [entry for entry in ledger.read().entries if entry.checkpoint]
    assert [entry.step for entry in first] == [5, 10]
    gpt.main(arguments(tokens, tmp_path, 15, "--save-every", "5", "--resume", str(first[0].checkpoint)))
    assert {step: loss for step, loss in losses(in_one_go[0]).items() if step <= 15} == losses(tmp_path)
    assert [entry.step for entry in ledger.read().lineage()] == [0, 5, 5, 10, 15]
    assert sorted(path.name[:13] for path in tmp_path.glob("*.pt")) == [f"step-{n:08d}" for n in (5, 10, 10, 15)]
    every = first[0].tokens_seen * 9 // 10
    assert [(k, e.step) for k, e in ledger.thresholds_passed(every)] == [(1, 5), (2, 10), (3, 15)]
    capsys.readouterr()
    gpt.main(arguments(tokens, tmp_path, 15, "--resume"))
    assert "nothing to do: 15 steps" in capsys.readouterr().out


def test_masks_that_come_during_a_training(
    capsys: pytest.CaptureFixture[str], in_one_go: tuple[Path, str], tokens: Path, tmp_path: Path
) -> None:
    """From where it goes on their sequences are left out, and the losses before are what they were; a mask that is missing
    later is named."""
    mask = tmp_path / "mask.arrow"
    Mask.of(TokenFile(tokens), range(0, len(TokenFile(tokens)), 2)).write(mask)
    gpt.main(arguments(tokens, tmp_path, 3))
    gpt.main(arguments(tokens, tmp_path, 6, "--resume", "--skip", str(mask)))
    found, whole = losses(tmp_path), losses(in_one_go[0])
    assert [found[step] == whole[step] for step in range(1, 7)] == [True] * 3 + [False] * 3
    assert state(tmp_path)["stream"]["skip"][0]["step"] == 3
    capsys.readouterr()
    assert "does not skip" in refused(capsys, tokens, tmp_path, 9, "--resume")
    gpt.main(arguments(tokens, tmp_path, 7, "--resume", "--skip", f"{mask}@3"))
    assert state(tmp_path)["stream"]["step"] == 7


def test_the_ledger_says_where_it_is(in_one_go: tuple[Path, str], tokens: Path) -> None:
    """A line at the beginning and one a checkpoint, with tokens that were seen, tokenizer and seal."""
    out, said = in_one_go
    history = ProgressLedger(out / "progress.jsonl").read()
    assert (history.problems, history.torn) == ((), None)
    assert [entry.step for entry in history.entries] == [0, 15, 30, 45]
    last = history.entries[-1]
    assert f"{last.tokens_seen:,} tokens seen" in said
    file = TokenFile(tokens)
    assert (last.token_files, last.tokenizer) == ((file.seal,), file.metadata.tokenizer.fingerprint)
    assert (out / str(last.checkpoint)).is_file()


def model_and_rows(tokens: Path, n: int = 6) -> tuple[Any, Any, Any]:
    """A model that has learnt nothing yet, a batch of tensors, and its rows."""
    batch = default_convert(TokenFile(tokens).batch(range(n)))
    torch.manual_seed(1)
    model = gpt.GPT(600)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)  # far from zero, so that a leak would be seen
    return model, batch, gpt.rows_of(batch, 0, n, torch.device("cpu"), varlen=False)


def test_documents_do_not_see_each_other(tokens: Path) -> None:
    """Other tokens in one document change its own logits from there on, and not one bit of any other's."""
    model, batch, rows = model_and_rows(tokens)
    before = model(rows)
    changed = 0
    for a, b in itertools.pairwise(batch.cu_seqlens.tolist()):
        middle = (a + b) // 2
        other = rows.tokens.flatten().clone()
        other[middle:b] = (other[middle:b] + 7) % 600
        after = model(rows._replace(tokens=other.view_as(rows.tokens)))
        same = (after == before).all(-1).flatten()
        assert same[:middle].all()
        assert same[b:].all()
        assert not same[middle:b].any()
        changed += 1
    assert changed == len(batch.lengths) > 8


def test_a_document_is_read_as_if_it_stood_alone(tokens: Path) -> None:
    """Positions restart: its logits in the middle of a sequence are those at the beginning of one."""
    model, batch, rows = model_and_rows(tokens)
    together = model(rows).flatten(0, 1)
    borders = batch.cu_seqlens.tolist()
    for a, b in itertools.pairwise(borders):
        alone = rows.tokens.flatten()[None, a:b]
        mask = torch.ones(b - a, b - a, dtype=torch.bool).tril()[None, None]
        one = gpt.Rows(alone, torch.arange(b - a)[None], alone, mask, rows.cu_seqlens, b - a)
        torch.testing.assert_close(model(one)[0], together[a:b], rtol=1e-4, atol=1e-4)


def test_padding_and_borders_are_nobodys_target(tokens: Path) -> None:
    """Every token of a document but its first is predicted once, by the one before it; nothing else is."""
    n = len(TokenFile(tokens))
    _, batch, rows = model_and_rows(tokens, n)
    expected = torch.full_like(rows.tokens, -100).flatten()
    flat, padding = batch.tokens.flatten(), 0
    for a, b, row in zip(batch.cu_seqlens[:-1], batch.cu_seqlens[1:], batch.doc_rows, strict=True):
        if row >= 0:
            expected[a : b - 1] = flat[a + 1 : b]
        padding += int(row < 0)
    assert padding > 0
    assert torch.equal(rows.targets.flatten(), expected)
    header = TokenFile(tokens).metadata
    assert int((rows.targets >= 0).sum()) == header.tokens - header.pieces


def flash(q: Any, k: Any, v: Any, cu_q: Any, cu_k: Any, max_q: int, max_k: int, *, window_size: tuple[int, int]) -> Any:
    """What torch's varlen_attn computes, one document after the other; it has no kernel for a CPU."""
    assert torch.equal(cu_q, cu_k)
    assert cu_q.dtype == torch.int32
    assert (int(cu_q[0]), int(cu_q[-1])) == (0, len(q))
    assert max_q == max_k >= int(cu_q.diff().max())
    assert window_size == (-1, 0)
    parts = []
    for a, b in itertools.pairwise(cu_q.tolist()):
        one = (each[a:b].transpose(0, 1)[None] for each in (q, k, v))
        parts.append(functional.scaled_dot_product_attention(*one, is_causal=True)[0].transpose(0, 1))
    return torch.cat(parts)


def test_varlen_attention_is_given_the_same_documents(monkeypatch: pytest.MonkeyPatch, tokens: Path) -> None:
    """With borders instead of a mask the logits are the same, for a part of a batch too."""
    monkeypatch.setattr(gpt, "varlen_attn", flash)
    model, batch, rows = model_and_rows(tokens)
    masked = model(rows)
    cpu = torch.device("cpu")
    for first, last in ((0, 6), (0, 1), (1, 3), (5, 6)):
        part = gpt.rows_of(batch, first, last, cpu, varlen=True)
        assert part.mask is None
        torch.testing.assert_close(model(part), masked[first:last], rtol=1e-4, atol=1e-4)


def test_parts_of_a_batch_add_up(monkeypatch: pytest.MonkeyPatch, tokens: Path) -> None:
    """The loss of a step is the mean over its targets, however many forward passes it takes."""
    found = []
    for at_once in (4096, SEQ_LEN, 3 * SEQ_LEN):
        monkeypatch.setattr(gpt, "TOKENS_AT_ONCE", at_once)
        model, batch, rows = model_and_rows(tokens, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        found.append(gpt.train_step(model, optimizer, batch, False))
        whole = functional.cross_entropy(model(rows).flatten(0, 1), rows.targets.flatten())
        assert found[-1] == pytest.approx(whole.item(), rel=1e-5)
    assert found == pytest.approx([found[0]] * 3, rel=1e-5)


def test_another_tokenizer_is_refused(
    capsys: pytest.CaptureFixture[str], in_one_go: tuple[Path, str], texts: list[str], tokenizer: Path, tmp_path: Path
) -> None:
    """To resume on a file whose ids mean other tokens; the message names both fingerprints."""
    data = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
    data["model"]["merges"].pop()
    other = tmp_path / "other"
    other.mkdir()
    (other / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    foreign = write_pack(tmp_path / "run", texts[:50], other)
    said = refused(capsys, foreign, in_one_go[0], 80, "--resume")
    assert "packed with tokenizer" in said
    assert TokenFile(foreign).metadata.tokenizer.fingerprint in said
    assert state(in_one_go[0])["stream"]["step"] == 45


def test_a_damaged_checkpoint_is_refused(capsys: pytest.CaptureFixture[str], tokens: Path, tmp_path: Path) -> None:
    """By the checksum in the ledger; the way back is named, and works."""
    gpt.main(arguments(tokens, tmp_path, 2, "--save-every", "1"))
    first, second = sorted(tmp_path.glob("*.pt"))
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(data)
    capsys.readouterr()
    assert f"{second} is damaged" in refused(capsys, tokens, tmp_path, 3, "--resume")
    gpt.main(arguments(tokens, tmp_path, 3, "--resume", first.name))
    assert "tokens seen, loss" in capsys.readouterr().out


def test_a_checkpoint_is_written_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A crash while it is written leaves the old one."""
    path = tmp_path / "c.pt"
    gpt.write_whole(path, b"old")

    def crash(_: int) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(gpt.os, "fsync", crash)
        with pytest.raises(OSError, match="no space"):
            gpt.write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    gpt.write_whole(path, b"newer")
    assert path.read_bytes() == b"newer"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "holds a training already: add --resume"),
        (["--resume", "step-7.pt"], r"no such checkpoint in .*progress.jsonl \(step-7.pt\); it names step-00000015-"),
        (["--resume", "--batch", "3"], "batch_size 8, this stream has 3"),
        (["--resume", "--seed", "3"], "saved with seed 0"),
    ],
)
def test_mistakes_are_named(
    capsys: pytest.CaptureFixture[str], more: list[str], message: str, in_one_go: tuple[Path, str], tokens: Path
) -> None:
    """One line that says what to do, no traceback; the training is as it was."""
    assert re.search(message, refused(capsys, tokens, in_one_go[0], 80, *more))
    assert state(in_one_go[0])["stream"]["step"] == 45


@pytest.mark.parametrize(
    ("content", "message"), [(None, "No such file"), (b"text", "a token file has at least"), (b"x" * 9999, "ARROW1")]
)
def test_files_that_are_none(
    capsys: pytest.CaptureFixture[str], content: bytes | None, message: str, tmp_path: Path
) -> None:
    """Missing, too small, foreign: the path is named, nothing is written."""
    path = tmp_path / "tokens.arrow"
    if content is not None:
        path.write_bytes(content)
    said = refused(capsys, path, tmp_path / "out", 1)
    assert str(path) in said
    assert message in said
    assert not (tmp_path / "out").exists()


def blocks() -> list[str]:
    """Python on the page about training, block by block."""
    found: list[str] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return found


def test_the_page_about_training_runs(texts: list[str], tokenizer: Path, tmp_path: Path) -> None:
    """All of its blocks, one after the other, in a folder with the runs that it speaks of."""
    pytest.importorskip("grain")
    pytest.importorskip("datasets")
    pytest.importorskip("transformers")
    runs = tmp_path / "out" / "runs"
    write_pack(runs / "web-20261129-101500-8c4a", texts, tokenizer, holdout_share=0.1)
    write_pack(runs / "code-20261129-120000-1f2e", texts[:50], tokenizer)
    (tmp_path / "my-tokenizer").symlink_to(tokenizer)
    marked = [f"# block {number}\n{block}" for number, block in enumerate(blocks())]
    assert len(marked) >= 14
    (tmp_path / "page.py").write_text("\n".join(marked), encoding="utf-8")
    environment = {**ENVIRONMENT, "PYTHONPATH": str(REPO), "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d\.\d{3} nats a token$", done.stdout, re.MULTILINE)
    assert "30 million tokens: out/training/step-15.pt" in done.stdout

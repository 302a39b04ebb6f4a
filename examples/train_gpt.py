"""A small GPT trained from a token file, in plain torch: on a CPU in a minute, on a GPU with torch's varlen attention.

    python examples/train_gpt.py RUN/pack/tokens.arrow --out out
    python examples/train_gpt.py RUN/pack/tokens.arrow --out out --steps 120 --resume

Documents do not see each other. Padding and the first token of a document are nobody's target. A training that was
stopped goes on with the batches that were next, to the same bits on a CPU. Each checkpoint is published in a ledger.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import itertools
import json
import math
import os
import time
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.varlen import varlen_attn
from torch.utils.data import DataLoader

from tokenization.progress import Entry, ProgressLedger
from tokenization.reader import Batch, TokenFile
from tokenization.stream import TokenStream

WIDTH, LAYERS, HEADS = 128, 4, 4
LEARNING_RATE, WARM_UP = 3e-3, 20
TOKENS_AT_ONCE = 4096  # of one forward pass: each has logits and their gradient, 8 bytes a word of the vocabulary


class Rows(NamedTuple):
    """n sequences of t tokens."""

    tokens: Tensor  # int64[n, t]
    position_ids: Tensor  # int64[n, t], from 0 in each document
    targets: Tensor  # int64[n, t], -100 where the next token is padding or belongs to the next document
    mask: Tensor | None  # bool[n, 1, t, t]: who sees whom; None: cu_seqlens say it
    cu_seqlens: Tensor  # int32[documents + 1], their borders among n * t tokens
    max_seqlen: int


def rows_of(batch: Batch, first: int, last: int, device: torch.device, varlen: bool) -> Rows:
    """Sequences first .. last of a batch of tensors."""
    tokens, position_ids, real = (each[first:last] for each in (batch.tokens, batch.position_ids, batch.real))
    t = tokens.shape[1]
    targets = torch.full_like(tokens, -100)
    targets[:, :-1] = torch.where(real[:, 1:] & (position_ids[:, 1:] > 0), tokens[:, 1:], -100)
    document = (position_ids == 0).cumsum(1)  # 1, 1, 1, 2, 2, ..
    mask = None if varlen else (document[:, :, None] == document[:, None, :]).tril()[:, None].to(device)
    here = (batch.cu_seqlens >= first * t) & (batch.cu_seqlens <= last * t)  # each sequence begins at a border
    tokens, position_ids, targets = tokens.to(device), position_ids.to(device), targets.to(device)
    return Rows(tokens, position_ids, targets, mask, (batch.cu_seqlens[here] - first * t).to(device), batch.max_seqlen)


def attend(q: Tensor, k: Tensor, v: Tensor, rows: Rows) -> Tensor:
    """Causal attention within each document; all are [n, t, heads, width / heads]."""
    if rows.mask is not None:
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=rows.mask).transpose(1, 2)
    flat = (each.flatten(0, 1) for each in (q, k, v))
    borders, longest = rows.cu_seqlens, rows.max_seqlen
    return varlen_attn(*flat, borders, borders, longest, longest, window_size=(-1, 0)).view_as(q)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions (arXiv 2104.09864); cos and sin are [n, t, 1, width / heads / 2]."""
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).type_as(x)


class Block(nn.Module):
    """Attention, then a feed-forward network; each adds to the stream."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, rows: Rows, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).unbind(2)
        x = x + self.out(attend(rotate(q, cos, sin), rotate(k, cos, sin), v, rows).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """A decoder that reads and writes tokens with one matrix."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:  # smaller where all layers add up
                adds = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * LAYERS) if adds else 0.02)

    def forward(self, rows: Rows) -> Tensor:
        """Logits, [n, t, vocabulary]."""
        speed = 10_000 ** -torch.linspace(0, 1, WIDTH // HEADS // 2 + 1, device=rows.tokens.device)[:-1]
        angle = rows.position_ids[:, :, None, None] * speed
        cos, sin = angle.cos(), angle.sin()
        x = self.embedding(rows.tokens)
        for block in self.blocks:
            x = block(x, rows, cos, sin)
        return functional.linear(self.norm(x), self.embedding.weight)


def train_step(model: GPT, optimizer: torch.optim.Optimizer, batch: Batch, varlen: bool) -> float:
    """One step of the optimizer; returns the mean loss over the targets of the batch, in nats."""
    device = model.embedding.weight.device
    n, t = batch.tokens.shape
    at_once = max(1, TOKENS_AT_ONCE // t)
    parts = [rows_of(batch, first, min(first + at_once, n), device, varlen) for first in range(0, n, at_once)]
    n_targets = max(1, sum(int((part.targets >= 0).sum()) for part in parts))
    total = 0.0
    for rows in parts:
        with torch.autocast(device.type, torch.bfloat16, enabled=varlen):  # flash attention takes 16 bits
            logits = model(rows).flatten(0, 1)
        loss = functional.cross_entropy(logits.float(), rows.targets.flatten(), reduction="sum") / n_targets
        loss.backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:  # constant after the warm-up: it knows no last step, so --steps may be raised
        group["lr"] = LEARNING_RATE * min(1.0, (batch.step + 1) / WARM_UP)
    optimizer.step()
    optimizer.zero_grad()
    return total


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all, whatever crashes."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def mask_of(word: str) -> Path | tuple[int, Path]:
    """MASK, or MASK@STEP."""
    path, _, step = word.rpartition("@")
    return (int(step), Path(path)) if path and step.isdecimal() else Path(word)


class Training:
    """A model, its optimizer and its place in the stream: anew, or from a checkpoint that the ledger names."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.ledger = args, ProgressLedger(args.out / "progress.jsonl")
        gpu = args.device == "cuda" or (args.device == "auto" and torch.cuda.is_available())
        if gpu and not torch.cuda.is_available():
            raise ValueError("--device cuda: torch finds no GPU here")
        self.varlen = gpu and torch.cuda.get_device_capability() >= (8, 0)  # older ones take the mask
        entry = self._checkpoint()
        # Refuses another tokenizer than the checkpoint's: its ids mean other tokens.
        file = TokenFile(args.file, verify="lazy", tokenizer=entry.tokenizer if entry else None)
        card, self.seq_len = file.metadata.tokenizer, file.metadata.seq_len
        torch.manual_seed(args.seed)
        self.model = GPT(card.max_id + 1).to("cuda" if gpu else "cpu")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
        skip = [mask_of(word) for word in args.skip]
        self.stream = TokenStream(file, batch_size=args.batch, seed=args.seed, epochs=None, skip=skip)
        if entry:
            self._load(entry)
        self.tokens_seen = entry.tokens_seen if entry else 0
        self.attempt = self.ledger.begin("gpt", tokenizer=card.fingerprint, token_files=[file.seal], after=entry)

    def _checkpoint(self) -> Entry | None:
        """The line of the checkpoint to go on from."""
        history, wanted = self.ledger.read(), self.args.resume
        if wanted is None and history.entries:
            raise ValueError(f"{self.args.out} holds a training already: add --resume, or give another --out")
        entry = history.latest_checkpoint() if wanted == "newest" else history.of_checkpoint(wanted or "")
        if wanted and not entry:
            names = ", ".join(dict.fromkeys(e.checkpoint for e in history.entries if e.checkpoint)) or "none"
            raise ValueError(f"--resume: no such checkpoint in {self.ledger.path} ({wanted}); it names {names}")
        return entry

    def _load(self, entry: Entry) -> None:
        path = self.args.out / str(entry.checkpoint)
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != entry.checkpoint_sha256:
            raise ValueError(f"{path} is damaged (its SHA-256 is not the ledger's): go back with --resume CHECKPOINT")
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        try:
            self.stream.load_state_dict(state["stream"])
        except ValueError as error:
            raise ValueError(f"--resume needs the FILE, --batch, --seed and --skip of {path}: {error}") from error

    def _save(self, step: int) -> None:
        """A checkpoint with a name of its own, then its line: what a ledger names is there, and stays what it was."""
        path, file = self.args.out / f"step-{step:08d}-{self.attempt.id[:8]}.pt", io.BytesIO()
        weights = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        settings = {"heads": HEADS, "positions": self.seq_len}  # what the weights do not tell who scores with them
        torch.save({**weights, "stream": self.stream.state_dict(after=step - 1), "settings": settings}, file)
        write_whole(path, file.getvalue())
        self.attempt.append(self.tokens_seen, step, path.name, sha256=hashlib.sha256(file.getvalue()).hexdigest())

    def run(self) -> str:
        """Train until --steps; returns what to say of it."""
        args, first, seen_before, waited = self.args, self.stream.step, self.tokens_seen, 0.0
        losses: list[float] = []
        loader = DataLoader(self.stream, batch_size=None, num_workers=args.workers)
        begun = asked = time.perf_counter()
        for batch in itertools.islice(loader, max(0, args.steps - first)):
            waited += time.perf_counter() - asked
            losses.append(train_step(self.model, self.optimizer, batch, self.varlen))
            self.tokens_seen += int(batch.real.sum())
            step = batch.step + 1
            with (args.out / "log.jsonl").open("a", encoding="utf-8") as log:
                log.write(json.dumps({"step": step, "loss": losses[-1], "tokens_seen": self.tokens_seen}) + "\n")
            if step % max(1, args.save_every) == 0 or step == args.steps:
                self._save(step)
            seconds = time.perf_counter() - begun
            speed = f"{(self.tokens_seen - seen_before) / seconds:,.0f} tokens/s"
            if step % max(1, args.steps // 20) == 0:
                print(f"step {step:,}  loss {losses[-1]:.3f}  {self.tokens_seen:,} tokens  {speed}", flush=True)
            asked = time.perf_counter()
        if not losses:
            return f"nothing to do: {first:,} steps and {self.tokens_seen:,} tokens are behind it; give more --steps"
        loss = f"loss {losses[0]:.3f} -> {sum(losses[-10:]) / len(losses[-10:]):.3f} (mean of the last {len(losses[-10:])} steps)"
        return f"{self.tokens_seen:,} tokens seen, {loss}, {speed}, {waited / seconds:.1%} of the time waiting for data"


def main(argv: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("file", type=Path, help="a token file: RUN/pack/tokens.arrow")
    parser.add_argument("--out", type=Path, required=True, help="folder of checkpoints, progress.jsonl and log.jsonl")
    parser.add_argument("--steps", type=int, default=60, help="in all, those done before included (60)")
    parser.add_argument("--batch", type=int, default=1, help="sequences of a step (1)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and order (0)")
    parser.add_argument("--save-every", type=int, default=100, help="steps (100)")
    parser.add_argument("--workers", type=int, default=0, help="processes that read ahead (0)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--resume", nargs="?", const="newest", metavar="CHECKPOINT", help="the newest if none is named")
    summary = "sequences to leave out, of `corpusmill mask`, from here on or from a step; may be repeated"
    parser.add_argument("--skip", action="append", default=[], metavar="MASK[@STEP]", help=summary)
    args = parser.parse_args(argv)
    try:
        print(Training(args).run())
    except (OSError, ValueError) as error:
        parser.exit(1, f"train_gpt: {error}\n")


if __name__ == "__main__":
    main()

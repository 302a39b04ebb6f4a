"""Training of a safety model: a BERT encoder learns to say which categories a text belongs to.

Loss: binary cross-entropy for each label; a rare label's hits weigh sqrt(harmless / hits), 8 at most. AdamW, learning rate
up and down in straight lines. After each half epoch the development part is judged, and the best state is what is kept;
it ends early when `patience` judgements in a row were no better. Products in bfloat16, on CPU and GPU.

What lies below the first layer that learns is worked out once for all epochs where it fits into memory. All chance comes
from seed, epoch and step, so that a run that was stopped goes on to the same end.

Costs: see docs/how-to/train-a-safety-model.md. Needs torch.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from quality_models.safety_calibration import mean_average_precision
from quality_models.safety_lora import attach
from quality_models.safety_training_augment import augmented
from quality_models.safety_training_base import Base
from quality_models.safety_training_batches import Encoded, batches, encode, join, load_tokenizer, padded_places
from quality_models.safety_training_head import READ_FOR_HEAD, start_head
from quality_models.safety_training_network import forward_from, forward_to, layers_below, seed_dropout, with_dropout
from quality_models.safety_training_rows import Row
from quality_models.safety_training_settings import TrainingSettings
from quality_models.safety_training_state import Checkpoint, Progress
from quality_models.safety_training_workers import Workers

__all__ = ["Trainer", "label_matrix", "pick_device"]

log = logging.getLogger("corpusmill")

HEAVIEST = 8.0
CLIP = 1.0
JUDGED_PER_EPOCH = 2
MOST_PIECES = 64
MINUTE = 60.0
Numbers = npt.NDArray[np.float32]


def label_matrix(rows: Sequence[Row], labels: Sequence[str]) -> Numbers:
    """float32[rows, labels]: 1 where a row has a label."""
    at = {label: place for place, label in enumerate(labels)}
    matrix = np.zeros((len(rows), len(labels)), np.float32)
    for row, line in zip(rows, matrix, strict=True):
        line[[at[label] for label in row.labels]] = 1
    return matrix


def pick_device(wanted: str) -> Any:
    """auto, cpu or cuda. Raises ValueError where there is no such device."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: expected a GPU that torch can use, found none; leave it out, or give cpu")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


class _Texts:
    """Encoded texts with what is wanted of them, and, where it is kept, what goes into the first layer that learns."""

    def __init__(self, encoded: Encoded, wanted: Numbers, weights: Numbers) -> None:
        self.encoded, self.wanted, self.weights = encoded, wanted, weights
        self.states: Any = None

    def __len__(self) -> int:
        return len(self.wanted)


class Trainer:
    """One training: the model learns in place."""

    def __init__(
        self,
        base: Base,
        rows: Sequence[Row],
        development: Sequence[Row],
        labels: Sequence[str],
        settings: TrainingSettings,
    ) -> None:
        self.settings, self.labels, self.rows = settings, labels, rows
        self.device = pick_device(settings.device)
        self.model = base.model
        layers = self.model.config.num_hidden_layers
        self.first = settings.freeze or 0
        if self.first >= layers and settings.adapter:
            raise ValueError(
                f"--freeze {self.first}: expected fewer than the {layers} layers, or nothing takes adapters"
            )
        _prepare(self.model, settings, self.first, layers, self.device)
        self.model.to(self.device)
        self.workers = Workers(self.device)
        self.below_is_frozen = bool(settings.adapter) or settings.freeze is not None
        self.below = layers_below(self.model, self.first, self.below_is_frozen)
        self.tokenizer = load_tokenizer(base.tokenizer, settings.max_tokens)
        self.pad = int(self.model.config.pad_token_id or 0)
        self.pieces = 1
        self.development = self._texts(development)
        self.whole: _Texts | None = None
        self.changed = False
        self.keep_states = self._fits()
        if base.fresh:
            sample = np.random.default_rng(settings.seed).permutation(len(rows))[:READ_FOR_HEAD]
            read = self._texts([rows[at] for at in sample.tolist()])
            start_head(self.model, lambda: self.judge(read), label_matrix(rows, labels))
        self.positive = _positive_weights(label_matrix(rows, labels), np.array([row.weight for row in rows]))

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.workers.close()

    def _texts(self, rows: Sequence[Row]) -> _Texts:
        encoded = encode(self.tokenizer, [row.text for row in rows])
        full = int((encoded.lengths >= self.settings.max_tokens).sum())
        if full:
            log.info("%s of %s texts fill --max-tokens: what comes after is not learned", f"{full:,}", f"{len(rows):,}")
        return _Texts(encoded, label_matrix(rows, self.labels), np.array([row.weight for row in rows], np.float32))

    def _fits(self) -> bool:
        """Whether to keep the states below the first layer that learns: for layers, not for embeddings alone."""
        if not self.below_is_frozen or self.first == 0:
            return False
        self.whole = self._texts(self.rows)
        tokens = len(self.whole.encoded.ids) * (2 if self.settings.augment else 1)
        needed = tokens * self.model.config.hidden_size * 2
        if needed > self.settings.cache_mb * 1_000_000:
            log.info("states of the frozen layers: %s MB, over --cache-mb; worked out in each epoch", needed // 10**6)
            return False
        return True

    def _remember(self, texts: _Texts) -> None:
        """Work out the states of the frozen layers, bfloat16[tokens, width], end to end as the ids are."""
        started = time.monotonic()
        width = self.model.config.hidden_size
        states = torch.empty(len(texts.encoded.ids), width, dtype=torch.bfloat16, device=self.device)
        self.model.eval()

        def one(part: npt.NDArray[np.int64]) -> None:
            places, real = padded_places(texts.encoded.offsets, part)
            with torch.inference_mode(), self._autocast():
                hidden = self._below(texts, places, real)
            kept = hidden[torch.from_numpy(real).to(self.device)]
            states[torch.from_numpy(places[real]).to(self.device)] = kept.bfloat16()

        for _ in self.workers.map(one, batches(texts.encoded.lengths, self.settings.batch_tokens)):
            pass
        texts.states = states
        log.info("frozen layers of %s texts worked out in %.0f s", f"{len(texts):,}", time.monotonic() - started)

    def _autocast(self) -> Any:
        return torch.autocast(self.device.type, torch.bfloat16)

    def _below(self, texts: _Texts, places: npt.NDArray[np.int64], real: npt.NDArray[np.bool_]) -> Any:
        ids = np.where(real, texts.encoded.ids[places], self.pad).astype(np.int64)
        mask = torch.from_numpy(real).to(self.device)
        return forward_to(self.model, self.below, torch.from_numpy(ids).to(self.device), mask)

    def logits(self, texts: _Texts, part: npt.NDArray[np.int64]) -> Any:
        """float32[len(part), labels] of some of the texts."""
        places, real = padded_places(texts.encoded.offsets, part)
        with self._autocast():
            if texts.states is not None:
                hidden = texts.states[torch.from_numpy(places).to(self.device)]
            else:
                with torch.set_grad_enabled(torch.is_grad_enabled() and not self.below_is_frozen):
                    hidden = self._below(texts, places, real)
            return forward_from(self.model, hidden, torch.from_numpy(real).to(self.device), self.first)

    def judge(self, texts: _Texts) -> Numbers:
        """Logits float32[texts, labels] without dropout."""
        self.model.eval()
        parts = batches(texts.encoded.lengths, self.settings.batch_tokens)

        def one(part: npt.NDArray[np.int64]) -> Numbers:
            with torch.inference_mode():
                return cast(Numbers, self.logits(texts, part).cpu().numpy())

        found = np.empty((len(texts), len(self.labels)), np.float32)
        for part, logits in zip(parts, self.workers.map(one, parts), strict=True):
            found[part] = logits
        return found

    def train(self, checkpoint: Checkpoint | None = None) -> Progress:
        """Learn until the epochs are over or it gets no better; the model is left in its best state."""
        learning = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        optimizer = _optimizer(learning, self.settings)
        progress = checkpoint.load(learning, optimizer) if checkpoint else None
        progress = progress or Progress()
        if not progress.over:
            for epoch in range(progress.epoch, self.settings.epochs):
                if not progress.over:
                    self._epoch(epoch, progress, learning, optimizer, checkpoint)
            progress.over = True
            if checkpoint:
                checkpoint.save(progress, {})
        progress.restore_best(learning)
        return progress

    def _epoch(
        self, epoch: int, progress: Progress, learning: dict[str, Any], optimizer: Any, checkpoint: Checkpoint | None
    ) -> None:
        texts = self._of_epoch(epoch)
        parts = batches(texts.encoded.lengths, self.settings.batch_tokens, seed=_chance(self.settings.seed, epoch, -1))
        judged = _milestones(len(parts))
        pace = _Pace()
        for step in range(progress.step, len(parts)):
            done = (epoch + step / len(parts)) / self.settings.epochs
            for group in optimizer.param_groups:
                group["lr"] = group["top"] * _schedule(done, self.settings.warm_up)
            seed = _chance(self.settings.seed, epoch, step)
            progress.losses.append(self._step(texts, parts[step], learning, optimizer, seed))
            progress.epoch, progress.step = epoch, step + 1
            pace.count(int(texts.encoded.lengths[parts[step]].sum()), done)
            if step + 1 in judged:
                self._judge(progress, learning, (step + 1) / len(parts))
                if progress.over:
                    break
            if checkpoint and checkpoint.due():
                checkpoint.save(progress, learning, optimizer)
        if not progress.over:
            progress.epoch, progress.step = epoch + 1, 0

    def _of_epoch(self, epoch: int) -> _Texts:
        """What is learned in an epoch. With kept states the same in all: rows as they are, and changed once."""
        if self.settings.augment and not self.keep_states:
            return self._texts(augmented(self.rows, self.settings.seed, epoch))
        self.whole = self.whole or self._texts(self.rows)
        if self.settings.augment and not self.changed:
            plain, other = self.whole, self._texts(augmented(self.rows, self.settings.seed, 0))
            self.whole = _Texts(
                join(plain.encoded, other.encoded),
                np.concatenate([plain.wanted, other.wanted]),
                np.concatenate([plain.weights, other.weights]),
            )
            self.changed = True
        if self.keep_states and self.whole.states is None:
            self._remember(self.whole)
        return self.whole

    def _step(
        self, texts: _Texts, part: npt.NDArray[np.int64], learning: dict[str, Any], optimizer: Any, seed: int
    ) -> float:
        """One step; where a GPU has too little memory, in halves, quarters ... of the batch."""
        while True:
            try:
                loss = self._gradients(texts, part, learning, seed)
                break
            except torch.cuda.OutOfMemoryError:
                if self.pieces >= MOST_PIECES or self.pieces >= len(part):
                    raise ValueError(
                        f"GPU: too little memory for {len(part) // self.pieces} texts at once; lower --batch-tokens"
                    ) from None
                self.pieces *= 2
                optimizer.zero_grad(set_to_none=True)
                torch.cuda.empty_cache()
                log.warning("the GPU ran out of memory; each batch is now cut into %d pieces", self.pieces)
        nn.utils.clip_grad_norm_(list(learning.values()), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(loss):
            raise ValueError(f"the loss is {loss}; lower --learning-rate ({self.settings.rate:g})")
        return loss

    def _gradients(self, texts: _Texts, part: npt.NDArray[np.int64], learning: dict[str, Any], seed: int) -> float:
        """Set the gradients of a batch, and return its loss. The pieces' gradients are added in their order."""
        self.model.train()
        pieces = np.array_split(part, min(max(self.pieces, self.workers.threads), len(part)))
        whole, parameters = float(texts.weights[part].sum()), list(learning.values())

        def one(at: int) -> tuple[float, Any]:
            seed_dropout(seed + at, self.device)
            loss = self._loss(texts, pieces[at]) / whole
            return float(loss.detach()), torch.autograd.grad(loss, parameters)

        total = 0.0
        for loss, gradients in self.workers.map(one, range(len(pieces))):
            total += loss
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        return total

    def _loss(self, texts: _Texts, piece: npt.NDArray[np.int64]) -> Any:
        """Sum over texts of weight times mean loss of the labels."""
        wanted, weights = (torch.from_numpy(of[piece]).to(self.device) for of in (texts.wanted, texts.weights))
        losses = nn.functional.binary_cross_entropy_with_logits(
            self.logits(texts, piece), wanted, pos_weight=self.positive.to(self.device), reduction="none"
        )
        return (losses.mean(1) * weights).sum()

    def _judge(self, progress: Progress, learning: dict[str, Any], done: float) -> None:
        if self.keep_states and self.development.states is None:
            self._remember(self.development)
        score = mean_average_precision(self.judge(self.development), self.development.wanted)
        better = progress.note(score, done, learning, self.settings.patience)
        log.info(
            "epoch %.1f: loss %.4f, average precision on the development part %.4f%s",
            progress.epoch + done, progress.history[-1]["loss"], score, " (best)" if better else "",
        )  # fmt: skip


class _Pace:
    """Says once a minute how fast it goes, and how long it takes at most."""

    def __init__(self) -> None:
        self.started = self.said = time.monotonic()
        self.begin: float | None = None
        self.tokens = 0

    def count(self, tokens: int, done: float) -> None:
        """`done`: share of all epochs that was over before these tokens."""
        self.begin = done if self.begin is None else self.begin
        self.tokens += tokens
        now = time.monotonic()
        if now - self.said >= MINUTE and done > self.begin:
            self.said, spent = now, now - self.started
            left = (1 - done) * spent / (done - self.begin) / MINUTE
            log.info("%.0f %% done, %s tokens/s, %.0f minutes to go", 100 * done, f"{self.tokens / spent:,.0f}", left)


def _prepare(model: nn.Module, settings: TrainingSettings, first: int, layers: int, device: Any) -> None:
    """Say what learns, and put dropout where it does."""
    if settings.adapter:
        attach(model, range(first, layers), settings.adapter, settings.scale, settings.seed)
    elif settings.freeze is not None:
        for name, parameter in model.named_parameters():
            of_layer = name.startswith("bert.encoder.layer.") and int(name.split(".")[3]) < first
            parameter.requires_grad = not (name.startswith("bert.embeddings.") or of_layer)
    with_dropout(model, settings.dropout, first)
    if device.type == "cpu":
        model.config._attn_implementation = "eager"  # the fused kernel's way back takes five times as long there


def _optimizer(learning: dict[str, Any], settings: TrainingSettings) -> Any:
    groups: dict[tuple[float, float], list[Any]] = {}
    for name, parameter in learning.items():
        head = "pooler" in name or name.startswith("classifier")
        key = (settings.head_rate if head else settings.rate, settings.weight_decay if parameter.dim() > 1 else 0.0)
        groups.setdefault(key, []).append(parameter)
    listed = [{"params": of, "lr": top, "top": top, "weight_decay": decay} for (top, decay), of in groups.items()]
    return torch.optim.AdamW(listed, betas=(0.9, 0.98), eps=1e-6)


def _positive_weights(wanted: Numbers, weights: npt.NDArray[np.float64]) -> Any:
    """float32[labels]: how much more a hit of a label weighs than its absence."""
    hits = (wanted * weights[:, None]).sum(0)
    return torch.from_numpy(
        np.clip(np.sqrt((weights.sum() - hits) / np.maximum(hits, 1e-9)), 1, HEAVIEST).astype(np.float32)
    )


def _schedule(done: float, warm_up: float) -> float:
    """Share of the top learning rate, `done` being the share of all epochs that is over."""
    return (done + 1e-3) / (warm_up + 1e-3) if done < warm_up else (1 - done) / (1 - warm_up)


def _milestones(steps: int) -> set[int]:
    return {math.ceil(steps * part / JUDGED_PER_EPOCH) for part in range(1, JUDGED_PER_EPOCH + 1)}


def _chance(seed: int, epoch: int, step: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, step + 1]).generate_state(1, np.uint32)[0])

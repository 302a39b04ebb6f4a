"""The batches of a whole training, in an order that any rank, worker or restart works out for itself.

    from tokenization.stream import TokenStream

    stream = TokenStream("pack/tokens.arrow", batch_size=64, seed=1, epochs=2)      # rank=, world=
    len(stream)                         # steps
    for batch in stream:                # from the step where the stream stands, as a file is read
        train(batch.tokens, batch.position_ids, batch.cu_seqlens)
        save(stream.state_dict())       # a few hundred bytes, whatever was read
    stream[1000]                        # any step at once: the same batch in every process
    stream.places(1000)                 # and which sequences it holds: where did that spike of the loss come from?

**One order.** The global batch of step s is a function of (files, seed, s) alone. An epoch is one permutation of all
sequences; batches go on across its end, so every batch is full and nothing is read twice or left out in an epoch. Each
rank takes its slice of the global batch (`rank=`, `world=`), so another world size trains on the same sequences.

**Resume.** `load_state_dict(state)` continues exactly, with any number of ranks and workers. It refuses other files,
another seed, batch size, weights or shuffling unless told which may have changed.

**torch.** Import torch before making a stream, and it is an IterableDataset; workers share its steps, in order:

    loader = DataLoader(stream, batch_size=None, num_workers=2, collate_fn=tokenization.tensors.to_tensors)
    for batch in loader:                               # a Batch of tensors
        save(stream.state_dict(after=batch.step))      # workers read ahead: the loop knows the step, the stream does not

Each pass of such a loader begins at the step where the stream of this process stands: seek() before a second one.
Workers are rarely needed: torch hands over a piece of memory in 1 ms or more, in which time this process reads a megabyte.
`to_tensors` makes one piece of a batch; without it each of eight tensors is one.

**Several files** of one tokenizer: `TokenStream(["web/tokens.arrow", "code/tokens.arrow"], weights=[0.8, 0.2], ..)`.
Without weights they are one file; with weights every batch is mixed in these proportions, and each file is
permuted anew whenever it has been read once.

**Masks.** `skip=["mask.arrow"]` leaves the sequences of a mask (`mask.Mask`) out, from the step where the stream first knows of
it: 0 for a new one, else the step of the state that it goes on from. All steps before are what they were, and after it the
rest follows in the order that it had, with full batches. A state names its masks: give the same ones to go on, and new ones.

Costs the reading of the sequences and 0.05 ms a step; opening and resuming cost 1 ms a file, at any step. Masks cost what
`thin` says.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenization.batch import Batch, Fields, checked_type, lay_out
from tokenization.errors import TokenFileError
from tokenization.golden import TrainerTokenizer, check_tokenizer
from tokenization.order import Ahead, Order, whole_weights
from tokenization.reader import Read, TokenFile, Verify
from tokenization.skip import MaskSource, Skip, SkipSource, begun, open_skips, resumed, rows_of_files, told_of
from tokenization.stream_arguments import check_numbers, opened

__all__ = ["TokenStream"]

STATE_VERSIONS = (1, 2)
"""Without masks and with them: who does not know them must not read on as if there were none."""
Numbers = npt.NDArray[np.int64]
Source = str | os.PathLike[str] | TokenFile


class TokenStream:
    """Steps of a training, each a `Batch`. Picklable, safe with fork and spawn; one thread iterates, any may index.

    Args:
        files: a path or an open TokenFile, or several with one tokenizer and one sequence length.
        batch_size: sequences of a step over all ranks.
        seed: any whole number.
        weights: shares of the sequences of a step, for each file, in any unit. None: all files are read as one.
        shuffle: False reads in the order of the files, in every epoch.
        rank: which slice of each batch is read here, 0 .. world - 1.
        world: number of slices, at most batch_size. If it does not divide batch_size, slices differ by one sequence:
            then weigh the loss of each rank by its sequences.
        epochs: how many times as many sequences as the files hold, less those that masks leave out. None: without end, and
            without len().
        drop_last: leave out the last step of all if it is not full; else it is shorter, for some ranks perhaps empty.
        fields: `tokens` leaves positions and borders out of the batches.
        dtype: int64 or int32, of tokens and positions.
        verify: `none`, `lazy` or `all`, as for TokenFile; for files that are opened here.
        tokenizer: yours, to be refused if it is not that of the files; as for TokenFile.
        read: `map` or `copy`, as for TokenFile.
        skip: masks, each a path or a `Mask`, or a pair of a step and one: sequences that are left out from that step on, or
            from where this stream begins. One that was left out stays out. With weights each file's own order is thinned,
            so the mixture stays exact.
    """

    def __init__(
        self,
        files: Source | Sequence[Source],
        *,
        batch_size: int,
        seed: int,
        weights: Sequence[float] | None = None,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
        epochs: int | None = 1,
        drop_last: bool = True,
        fields: Fields = "all",
        dtype: npt.DTypeLike = np.int64,
        verify: Verify = "none",
        tokenizer: TrainerTokenizer | None = None,
        read: Read = "map",
        skip: MaskSource | Sequence[SkipSource] = (),
    ) -> None:
        """Open files for training; nothing is read yet. The arguments are described above.

        Raises:
            TokenFileError: a file or mask is damaged, or they do not belong together.
            TokenizerError: the tokenizer is not that of the files.
            ValueError: an argument does not fit; the message names it.
        """
        self.files = opened(files, verify, read)
        """The open files."""
        if tokenizer is not None:
            check_tokenizer(self.files[0].metadata, tokenizer, str(self.files[0].path))
        check_numbers(batch_size, rank, world, epochs)
        self.batch_size, self.rank, self.world, self.epochs = batch_size, rank, world, epochs
        self.drop_last = drop_last
        self._fields: Fields = fields
        self._dtype = checked_type(dtype, fields)
        self._order = self._whole = self._make_order(operator.index(seed), shuffle, weights)
        """The order, and what it would be without masks."""
        self._step = 0
        self._anchor = (0, 0)
        """A step and the sequences before it: from there on each step has batch_size of them."""
        self._asked = open_skips(skip, self.files)
        self._leave_out(begun(self._asked, batch_size))
        if self._steps() == 0:
            raise ValueError(
                f"batch_size {batch_size} is more than the {self._end:,} sequences of all epochs, and drop_last leaves out what "
                "is not full: there is no step. Give a smaller batch_size, drop_last=False, or more epochs."
            )
        self._offer_to_torch()

    def _make_order(self, seed: int, shuffle: bool, weights: Sequence[float] | None) -> Order:
        sizes = [len(file) for file in self.files]
        if weights is not None and len(weights) != len(sizes):
            raise ValueError(f"{len(weights)} weights for {len(sizes)} files")
        for file in self.files:
            if not len(file) and (weights is not None or not sum(sizes)):
                raise ValueError(f"{file.path} holds no sequences: nothing can be read from it. Leave it out")
        return Order(sizes, seed=seed, shuffle=shuffle, weights=None if weights is None else whole_weights(weights))

    def _leave_out(self, skips: tuple[Skip, ...]) -> None:
        """Leave out masks, and none but these."""
        self._skips, self._order = skips, self._whole
        if skips:
            each = self._whole.weights is not None
            self._order = self._whole.without(rows_of_files(skips, self.files, each=each))
        self._end = None if self.epochs is None else self._order.left_of(self.epochs * self._order.total)
        """Sequences of all epochs; None without end."""

    @property
    def step(self) -> int:
        """The step that iteration gives next."""
        return self._step

    @property
    def epoch(self) -> int:
        """The epoch of the next step's first sequence, from 0; with weights, by the sum of all files. Masked ones count."""
        return self._order.whole(self._sequences_before(self._step)) // self._order.total

    @property
    def seq_len(self) -> int:
        """Tokens of a sequence."""
        return self.files[0].metadata.seq_len

    @property
    def steps_per_epoch(self) -> float:
        """Sequences of all files / batch_size, masked ones included."""
        return self._order.total / self.batch_size

    def __len__(self) -> int:
        """Steps of all epochs, those before the current one included.

        Raises:
            TypeError: `epochs=None` has no end.
        """
        steps = self._steps()
        if steps is None:
            raise TypeError("a stream with epochs=None has no end and no len(); give epochs, or iterate")
        return steps

    def __getitem__(self, step: int) -> Batch:
        """This rank's slice of the batch of a step; negative steps count from the end."""
        return self._batch(self._checked(step), self._order)

    def places(self, step: int) -> tuple[Numbers, Numbers]:
        """The whole batch of a step, over all ranks: (number of the file, index of the sequence in it), without reading."""
        return self._order.places(*self._range(self._checked(step)))

    def __iter__(self) -> Iterator[Batch]:
        """Steps from the current one on; in a worker of torch's DataLoader, each n-th of them.

        When a step is handed out, `step` and `state_dict()` already stand behind it, and the system reads the next one
        from the disk while you train.
        """
        worker, workers = _worker()
        steps, order = self._steps(), Ahead(self._order)
        self._prefetch(self._step + worker, order)
        while steps is None or self._step + worker < steps:
            step = self._step + worker
            self._step += workers
            batch = self._batch(step, order)
            self._prefetch(step + workers, order)
            yield batch

    def seek(self, step: int) -> None:
        """Continue with this step: 0 begins anew, len(stream) is the end."""
        step, steps = operator.index(step), self._steps()
        if not self._anchor[0] <= step or (steps is not None and step > steps):
            raise ValueError(f"step {step}: expected {self._anchor[0]} to {steps}")
        self._step = step
        self._offer_to_torch()

    def state_dict(self, after: int | None = None) -> dict[str, Any]:
        """Where the stream stands, as plain numbers and strings, to be saved with the model.

        Args:
            after: the last step that was trained, `batch.step`; needed where workers read ahead. None: what was iterated.
        """
        step = self._step if after is None else operator.index(after) + 1
        if step < self._anchor[0]:
            raise ValueError(
                f"after step {step - 1}: this stream began at step {self._anchor[0]}, with another batch size"
            )
        steps = self._steps()
        if steps is not None and step > steps:
            raise ValueError(f"after step {step - 1}: the stream has {steps} steps")
        weights = self._order.weights
        return {
            "version": STATE_VERSIONS[bool(self._skips)],
            "step": step,
            "sequences": self._sequences_before(step),
            "batch_size": self.batch_size,
            "seed": self._order.seed,
            "shuffle": self._order.shuffle,
            "weights": None if weights is None else list(weights),
            "files": [file.seal for file in self.files],
            **({"skip": told_of(self._skips)} if self._skips else {}),
        }

    def load_state_dict(self, state: Mapping[str, Any], *, changed: Collection[str] = ()) -> None:
        """Continue where a state was saved, with any rank, world and number of workers.

        Args:
            state: of `state_dict()`.
            changed: what may differ from then: some of `files`, `seed`, `batch_size`, `weights`, `shuffle`, `skip`. With
                another batch size, the next step begins at the first sequence that was not read; its earlier steps are gone.
                A mask that the state does not know and that begins at its step or later is no change.

        Raises:
            TokenFileError: the files are not those of the state.
            ValueError: something else differs, or it is no state of a stream.
        """
        self._check_state(state, changed)
        step, sequences = operator.index(state["step"]), operator.index(state["sequences"])
        if step < 0 or sequences < 0:
            raise ValueError(f"a state at step {step}, after {sequences} sequences: expected 0 or more")
        anchor = (0, 0) if sequences == step * self.batch_size else (step, sequences)
        self._leave_out(resumed(self._asked, state, self.batch_size, anchor[0], changed="skip" in changed))
        self._anchor = anchor
        self._step = step
        self._offer_to_torch()

    def _check_state(self, state: Mapping[str, Any], changed: Collection[str]) -> None:
        """Refuse a state of something else."""
        own = self.state_dict()
        if not isinstance(state, Mapping):
            raise ValueError(f"expected what state_dict() gave, a mapping; found {state!r:.80}")
        missing = sorted(own.keys() - state.keys() - {"skip"})
        if missing or state["version"] not in STATE_VERSIONS:
            raise ValueError(
                f"no state of a TokenStream of version {STATE_VERSIONS[-1]}: lacks {missing}: {dict(state)!r:.200}"
            )
        compared = ("files", "seed", "batch_size", "weights", "shuffle")
        unknown = set(changed) - {*compared, "skip"}
        if unknown:
            raise ValueError(f"changed: {sorted(unknown)} can never differ, or is not part of a state")
        for key in compared:
            if state[key] != own[key] and key not in changed:
                kind = TokenFileError if key == "files" else ValueError
                raise kind(
                    f"the state was saved with {key} {state[key]!r}, this stream has {own[key]!r}: it would go on with "
                    f"other sequences. If you mean it, pass changed=[{key!r}]."
                )

    def __repr__(self) -> str:
        names = ", ".join(str(file.path) for file in self.files)
        return (
            f"TokenStream({names}: step {self._step} of {self._steps()}, {self.batch_size} sequences of {self.seq_len} "
            f"a step, rank {self.rank} of {self.world})"
        )

    def _checked(self, step: int) -> int:
        step, steps = operator.index(step), self._steps()
        if step < 0 and steps is not None:
            step += steps
        if not self._anchor[0] <= step or (steps is not None and step >= steps):
            raise IndexError(f"step {step}: the stream has steps {self._anchor[0]} to {steps}")
        return step

    def _steps(self) -> int | None:
        """Steps of all epochs; None without end."""
        if self._end is None:
            return None
        step, sequences = self._anchor
        left = max(0, self._end - sequences)
        return step + (left // self.batch_size if self.drop_last else -(-left // self.batch_size))

    def _sequences_before(self, step: int) -> int:
        return self._anchor[1] + (step - self._anchor[0]) * self.batch_size

    def _range(self, step: int) -> tuple[int, int]:
        """Places of the whole batch of a step in the endless order."""
        first = self._sequences_before(step)
        end = first + self.batch_size
        return first, end if self._end is None else min(end, self._end)

    def _own_places(self, step: int, order: Order | Ahead) -> tuple[Numbers, Numbers]:
        """What this rank reads of a step."""
        first, last = self._range(step)
        size = last - first
        return order.places(first + size * self.rank // self.world, first + size * (self.rank + 1) // self.world)

    def _batch(self, step: int, order: Order | Ahead) -> Batch:
        files, rows = self._own_places(step, order)
        return lay_out(self.files, self.seq_len, files, rows, dtype=self._dtype, fields=self._fields, step=step)

    def _prefetch(self, step: int, order: Order | Ahead) -> None:
        """Have a step read from the disk, all of its sequences side by side, while another one is trained."""
        steps = self._steps()
        if steps is None or step < steps:
            files, rows = self._own_places(step, order)
            for number, file in enumerate(self.files):
                file.prefetch(rows[files == number] if len(self.files) > 1 else rows)

    def _offer_to_torch(self) -> None:
        """Let torch's DataLoader see an IterableDataset, if torch is there; it is never imported."""
        torch_data: Any = sys.modules.get("torch.utils.data")
        if torch_data is not None:
            torch_data.IterableDataset.register(type(self))


def _worker() -> tuple[int, int]:
    """Which worker of torch's DataLoader this process is, of how many: (0, 1) outside of any."""
    torch_data: Any = sys.modules.get("torch.utils.data")
    info = None if torch_data is None else torch_data.get_worker_info()
    return (0, 1) if info is None else (int(info.id), int(info.num_workers))

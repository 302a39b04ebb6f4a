"""A stream gives the same batches to any world, worker and restart, and refuses what would change them."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.token_files import CARD, small_header, write_small_file
from tokenization.batch import Batch
from tokenization.errors import TokenFileError
from tokenization.reader import TokenFile
from tokenization.stream import TokenStream


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_file(tmp_path_factory.mktemp("stream") / "tokens.arrow")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another file of the same tokenizer, with 25 sequences."""
    return write_small_file(tmp_path_factory.mktemp("other") / "tokens.arrow", small_header(25))


def stream_of(files: Any, **changes: Any) -> TokenStream:
    return TokenStream(files, **{"batch_size": 6, "seed": 1, "epochs": 3, **changes})


def same(one: Batch, two: Batch) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_batch_holds_the_sequences_it_names(path: Path, other: Path) -> None:
    """Tokens, positions, borders, rows and mask of every sequence, by its own file; padding is a piece of its own."""
    stream = stream_of([path, other], weights=[2, 1])
    files = [TokenFile(path), TokenFile(other)]
    for step in range(len(stream)):
        batch = stream[step]
        assert batch.step == step
        assert [array.dtype for array in batch[:4]] == [np.int64, np.int64, np.int32, np.int32]
        pieces = iter(zip(batch.lengths.tolist(), batch.doc_rows.tolist(), strict=True))
        for place, (number, row) in enumerate(zip(batch.files, batch.sequences, strict=True)):
            file = files[number]
            assert np.array_equal(batch.tokens[place], file[row])
            assert [next(pieces), next(pieces), next(pieces)] == [
                *zip(file.documents(row).lengths.tolist(), file.documents(row).rows.tolist(), strict=True),
                (4, -1),
            ]
            assert batch.position_ids[place].tolist() == [*range(5), *range(7), *range(4)]
            assert batch.real[place].tolist() == [True] * 12 + [False] * 4
        assert batch.cu_seqlens.tolist() == [0, *np.cumsum(batch.lengths).tolist()]
        assert (batch.cu_seqlens[-1], batch.max_seqlen) == (batch.tokens.size, 7)


def test_full_sequences_have_no_padding(tmp_path: Path) -> None:
    """A mix of full and loose sequences: pieces tile the batch, `real` is what they say."""
    from tokenization.layout import Block
    from tokenization.token_file import TokenFileWriter

    lengths = [[16], [5, 11], [3, 4], [1] * 16, [15]]
    header = small_header(5, documents=22, pieces=22, tokens=70)
    tokens = np.full((5, 16), 1, np.uint16)
    for row, pieces in enumerate(lengths):
        tokens[row, : sum(pieces)] = 5
        tokens[row, np.cumsum(pieces) - 1] = 0
    borders = np.cumsum([0, *map(len, lengths)]).astype(np.int32)
    with TokenFileWriter(tmp_path / "t.arrow", header) as writer:
        writer.write(Block(tokens, borders, np.concatenate(lengths).astype(np.int32), np.arange(22)))
    batch = TokenFile(tmp_path / "t.arrow", verify="all").batch([4, 0, 2, 3, 1])
    assert batch.lengths.tolist() == [15, 1, 16, 3, 4, 9, *[1] * 16, 5, 11]
    assert batch.doc_rows.tolist() == [21, -1, 0, 3, 4, -1, *range(5, 21), 1, 2]
    assert batch.real.sum(axis=1).tolist() == [15, 16, 7, 16, 16]
    assert batch.max_seqlen == 16
    positions = [place for length in batch.lengths.tolist() for place in range(length)]
    assert batch.position_ids.reshape(-1).tolist() == positions


@pytest.mark.parametrize("dtype", [np.int32, "int32", np.int64])
def test_types(dtype: Any, path: Path) -> None:
    """int64 or int32, of tokens and positions; other types and fields are refused by name."""
    batch = stream_of(path, dtype=dtype)[0]
    assert batch.tokens.dtype == batch.position_ids.dtype == np.dtype(dtype)
    with pytest.raises(ValueError, match="int64 or int32, found uint16"):
        TokenFile(path).batch([0], dtype=np.uint16)
    with pytest.raises(ValueError, match="'all' or 'tokens', found 'ids'"):
        TokenFile(path).batch([0], fields="ids")  # type: ignore[arg-type]


def test_tokens_alone(path: Path) -> None:
    """`fields="tokens"`: the same tokens, nothing else."""
    batch, whole = stream_of(path, fields="tokens")[5], stream_of(path)[5]
    assert np.array_equal(batch.tokens, whole.tokens)
    assert np.array_equal(batch.sequences, whole.sequences)
    assert batch[1:7] == (None,) * 6
    assert batch.step == 5


def test_batches_go_on_across_epochs(path: Path) -> None:
    """40 sequences in batches of 6: all are full but the last, and each epoch reads every sequence once."""
    stream = stream_of(path, drop_last=False)
    sequences = [stream[step].sequences for step in range(len(stream))]
    assert [len(batch) for batch in sequences] == [6] * 20
    flat = np.concatenate(sequences).reshape(3, 40)
    assert all(sorted(epoch) == list(range(40)) for epoch in flat.tolist())
    assert (len(stream_of(path, epochs=1)), len(stream_of(path, epochs=1, drop_last=False))) == (6, 7)
    assert len(stream_of(path, epochs=1, drop_last=False)[6].tokens) == 4
    assert stream.steps_per_epoch == pytest.approx(40 / 6)


def test_iteration_goes_on_like_a_file(path: Path) -> None:
    """From the current step to the end, then nothing, until it is sent back; the state in the loop is behind the step."""
    stream = stream_of(path)
    for batch in stream:
        assert stream.state_dict() == stream.state_dict(after=batch.step)
        if batch.step == 4:
            break
    assert (stream.step, stream.epoch) == (5, 0)
    assert [batch.step for batch in stream] == list(range(5, 20))
    assert list(stream) == []
    assert stream.epoch == 3
    stream.seek(18)
    assert [batch.step for batch in stream] == [18, 19]
    for step in (-1, 21):
        with pytest.raises(ValueError, match=f"step {step}: expected 0 to 20"):
            stream.seek(step)


def test_indices(path: Path) -> None:
    """Any step at once, from the end too; outside is an IndexError; an endless stream has neither end nor len."""
    stream = stream_of(path)
    assert same(stream[-1], stream[19])
    for step in (20, -21):
        with pytest.raises(IndexError, match="steps 0 to 20"):
            stream[step]
    endless = stream_of(path, epochs=None)
    assert same(endless[19], stream[19])
    assert endless[10**15].tokens.shape == (6, 16)
    with pytest.raises(TypeError, match="no end"):
        len(endless)
    with pytest.raises(IndexError):
        endless[-1]
    assert [batch.step for batch, _ in zip(endless, range(3), strict=False)] == [0, 1, 2]


@pytest.mark.parametrize("weights", [None, [3, 1]])
@pytest.mark.parametrize("world", [1, 2, 3, 4, 6])
def test_ranks_share_each_batch(world: int, weights: list[float] | None, path: Path, other: Path) -> None:
    """Their slices, one behind the other, are the global batch, which is the same for every world."""
    whole = stream_of([path, other], weights=weights)
    ranks = [stream_of([path, other], weights=weights, rank=rank, world=world) for rank in range(world)]
    for step in range(len(whole)):
        parts = [rank[step] for rank in ranks]
        assert np.array_equal(np.concatenate([part.tokens for part in parts]), whole[step].tokens)
        assert np.array_equal(np.concatenate([part.doc_rows for part in parts]), whole[step].doc_rows)
        files, rows = ranks[-1].places(step)
        assert (files.tolist(), rows.tolist()) == (whole[step].files.tolist(), whole[step].sequences.tolist())


def test_a_short_last_batch_over_ranks(path: Path) -> None:
    """4 sequences for 6 ranks: each once, some ranks none, and their batch is empty but whole."""
    ranks = [stream_of(path, epochs=1, drop_last=False, rank=rank, world=6)[6] for rank in range(6)]
    assert sorted(len(batch.tokens) for batch in ranks) == [0, 0, 1, 1, 1, 1]
    empty = next(batch for batch in ranks if not len(batch.tokens))
    assert (empty.tokens.shape, empty.cu_seqlens.tolist(), empty.max_seqlen) == ((0, 16), [0], 0)


def test_state_is_small_and_plain(path: Path) -> None:
    """JSON of a few hundred bytes at any step; it names the step, not the place of the file."""
    stream = stream_of(path, epochs=None)
    stream.seek(10**12)
    state = stream.state_dict()
    assert len(json.dumps(state)) < 400
    assert json.loads(json.dumps(state)) == state
    assert (state["step"], state["sequences"]) == (10**12, 6 * 10**12)
    assert str(path) not in json.dumps(state)


@pytest.mark.parametrize("world", [1, 3])
def test_resume_is_exact(world: int, path: Path, tmp_path: Path) -> None:
    """In another process, from a copy of the file elsewhere, at another world: the very batches that were left."""
    whole = stream_of(path)
    moved = tmp_path / "moved.arrow"
    moved.write_bytes(path.read_bytes())
    for stop in (0, 3, 7, 20):
        state = json.loads(json.dumps(whole.state_dict(after=stop - 1)))
        ranks = [stream_of(moved, rank=rank, world=world) for rank in range(world)]
        for rank in ranks:
            rank.load_state_dict(state)
        for parts in zip(*ranks, strict=True):
            expected = whole[parts[0].step]
            assert np.array_equal(np.concatenate([part.tokens for part in parts]), expected.tokens)
        assert all(rank.step == 20 for rank in ranks)


@pytest.mark.parametrize(
    ("key", "changes"),
    [("seed", {"seed": 2}), ("batch_size", {"batch_size": 5}), ("shuffle", {"shuffle": False}), ("files", {})],
)
def test_a_state_of_something_else_is_refused(key: str, changes: dict[str, Any], path: Path, other: Path) -> None:
    """Named with both values; taken when told that it changed."""
    state = stream_of(path).state_dict(after=3)
    stream = stream_of(other if key == "files" else path, **changes)
    with pytest.raises(
        TokenFileError if key == "files" else ValueError, match=rf"saved with {key} .*changed=\['{key}'\]"
    ):
        stream.load_state_dict(state)
    assert stream.step == 0
    stream.load_state_dict(state, changed=[key])
    assert stream.step == 4


def test_weights_are_part_of_the_state(path: Path, other: Path) -> None:
    """Another mixture is another order; the same one in other units is the same."""
    state = stream_of([path, other], weights=[0.7, 0.3]).state_dict(after=1)
    stream_of([path, other], weights=[7, 3]).load_state_dict(state)
    with pytest.raises(ValueError, match="saved with weights"):
        stream_of([path, other], weights=[6, 4]).load_state_dict(state)
    with pytest.raises(TokenFileError, match="saved with files"):
        stream_of([other, path], weights=[7, 3]).load_state_dict(state)


def test_another_batch_size_goes_on_with_what_is_unread(path: Path) -> None:
    """Batches grow in mid-epoch: nothing is read twice or left out; so does the next restart."""
    stream = stream_of(path, epochs=1)
    read = [batch.sequences for batch, _ in zip(stream, range(3), strict=False)]
    larger = stream_of(path, epochs=1, batch_size=11)
    larger.load_state_dict(stream.state_dict(after=2), changed=["batch_size"])
    assert (larger.step, len(larger)) == (3, 5)
    read.append(next(iter(larger)).sequences)
    again = stream_of(path, epochs=1, batch_size=11)
    again.load_state_dict(larger.state_dict())
    read += [batch.sequences for batch in again]
    assert sorted(np.concatenate(read).tolist()) == list(range(40))
    with pytest.raises(IndexError, match="steps 4 to 5"):
        again[2]
    with pytest.raises(ValueError, match="began at step 4"):
        again.state_dict(after=2)


@pytest.mark.parametrize(
    "state", [{}, {"version": 2}, {"version": 1, "step": 3}, {"model": 1}], ids=["empty", "newer", "cut", "foreign"]
)
def test_what_is_no_state(state: dict[str, Any], path: Path) -> None:
    """Said, not guessed at."""
    with pytest.raises(ValueError, match="no state of a TokenStream"):
        stream_of(path).load_state_dict(state)
    with pytest.raises(ValueError, match="expected 0 or more"):
        stream_of(path).load_state_dict({**stream_of(path).state_dict(), "step": -1})
    with pytest.raises(ValueError, match="can never differ"):
        stream_of(path).load_state_dict(stream_of(path).state_dict(), changed=["world"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"world": 0}, "world is 0"),
        ({"world": 7}, "world is 7: expected a whole number from 1 to 6"),
        ({"rank": 1}, "rank is 1: expected a whole number from 0 to 0"),
        ({"epochs": 0}, "epochs is 0"),
        ({"weights": [1, 1]}, "2 weights for 1 files"),
        ({"weights": [-1]}, r"weights\[0\] is -1"),
        ({"fields": "some"}, "fields must be"),
        ({"dtype": "float32"}, "dtype must be"),
    ],
)
def test_arguments_that_do_not_fit(changes: dict[str, Any], said: str, path: Path) -> None:
    """Named when the stream is made, not at a step."""
    with pytest.raises(ValueError, match=said):
        stream_of(path, **changes)


def test_files_that_do_not_belong_together(path: Path, tmp_path: Path) -> None:
    """Another tokenizer (both fingerprints named), another sequence length, no files, no sequences."""
    from dataclasses import replace

    stranger = write_small_file(tmp_path / "s.arrow", small_header(tokenizer=replace(CARD, fingerprint="a" * 64)))
    with pytest.raises(TokenFileError, match=f"{'a' * 64}, but .*{'f' * 64}"):
        stream_of([path, stranger])
    empty = write_small_file(tmp_path / "e.arrow", small_header(0))
    for files, weights in ((empty, None), ([path, empty], [1, 1])):
        with pytest.raises(ValueError, match="holds no sequences"):
            stream_of(files, weights=weights)
    assert len(stream_of([path, empty])) == 20
    with pytest.raises(ValueError, match="no files"):
        stream_of([])
    with pytest.raises(FileNotFoundError):
        stream_of(tmp_path / "missing.arrow")


def test_copies_are_independent(path: Path) -> None:
    """Pickled or copied it stands at the same step, and goes its own way."""
    stream = stream_of(path)
    stream.seek(7)
    for twin in (pickle.loads(pickle.dumps(stream)), copy.copy(stream)):
        assert same(next(iter(twin)), stream[7])
        assert (stream.step, twin.step) == (7, 8)
    assert len(pickle.dumps(stream)) < 2_000
    assert repr(stream).endswith("step 7 of 20, 6 sequences of 16 a step, rank 0 of 1)")


def test_steps_cost_no_memory(path: Path) -> None:
    """A step in epoch 10**9 allocates what any step does: there is no index of what was read."""
    stream = stream_of(path, epochs=None)
    stream[0]
    tracemalloc.start()
    stream[10**11]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000


@pytest.mark.parametrize("read", ["map", "copy"])
def test_the_next_step_is_announced(read: Any, path: Path, other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sequences, of every file, before the current one is handed out; none beyond the end; the first one too."""
    announced: list[tuple[str, int]] = []
    monkeypatch.setattr(
        TokenFile, "prefetch", lambda file, rows: announced.extend((str(file.path), int(i)) for i in rows)
    )
    stream = stream_of([path, other], epochs=1, read=read)
    handed = []
    for batch in stream:
        handed += [
            (str(stream.files[number].path), int(row)) for number, row in zip(batch.files, batch.sequences, strict=True)
        ]
        ahead = set(announced) - set(handed)
        assert len(ahead) == (6 if batch.step < len(stream) - 1 else 0)
    assert sorted(announced) == sorted(handed)


@pytest.mark.parametrize("read", ["map", "copy"])
def test_announcing_changes_nothing(read: Any, path: Path) -> None:
    """Any sequences may be announced, none too; what is read is the same."""
    file = TokenFile(path, read=read)
    file.prefetch(np.arange(40))
    file.prefetch(np.array([], np.int64))
    assert np.array_equal(file[:], TokenFile(path)[:])


def test_a_stream_without_a_step_is_refused(path: Path) -> None:
    """A training loop that ends at once would say nothing; a step that is not full may be asked for."""
    sequences = len(TokenFile(path))
    with pytest.raises(ValueError, match=rf"batch_size {sequences + 1} is more than the {sequences} sequences"):
        TokenStream(path, batch_size=sequences + 1, seed=0, epochs=1)
    assert len(TokenStream(path, batch_size=sequences + 1, seed=0, epochs=1, drop_last=False)) == 1


def test_a_state_beyond_the_end_or_of_nothing_is_refused(path: Path) -> None:
    """Neither a step that the stream has not, nor what is no state at all."""
    stream = stream_of(path)
    assert stream.state_dict(after=len(stream) - 1)["step"] == len(stream)
    with pytest.raises(ValueError, match=f"the stream has {len(stream)} steps"):
        stream.state_dict(after=len(stream))
    with pytest.raises(ValueError, match="expected what state_dict"):
        stream.load_state_dict(None)  # type: ignore[arg-type]


def test_a_run_s_folder_is_no_token_file(path: Path) -> None:
    """The message says which file in it is meant."""
    with pytest.raises(TokenFileError, match=r"is a folder\. Give the file: tokens\.arrow"):
        TokenStream(path.parent, batch_size=1, seed=0)

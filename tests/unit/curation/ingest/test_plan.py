"""A plan names every file once, cuts big ones at fixed bytes, groups small ones, and skips nothing silently."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from curation.errors import InputError
from curation.ingest import plan as plan_module
from curation.ingest.config import IngestConfig
from curation.ingest.plan import Plan, plan_inputs

MB = 2**20
LINE = b'{"text":"a line of some length, so that files grow fast enough"}\n'


def plan(*inputs: Path | str, workers: int = 1, **settings: Any) -> Plan:
    return plan_inputs([str(one) for one in inputs], IngestConfig(**settings), workers)


def write(path: Path, content: bytes = LINE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def names(made: Plan) -> list[str]:
    return [Path(one.source).name for one in made.inputs]


def kinds(made: Plan) -> dict[str, str]:
    return {Path(one.source).name: one.kind for one in made.inputs}


# -- finding ----------------------------------------------------------------------------------------


def test_folders_are_read_to_the_ground_and_say_what_they_leave_out(tmp_path: Path) -> None:
    """Every file of a folder is either an input or named as ignored, with the reason."""
    read = ["a.jsonl", "b/c.jsonl.gz", "b/d/e.parquet", "b/part-00000", "b/licensed.jsonl"]
    ignored = {
        ".hidden.jsonl": "hidden",
        ".git/x.jsonl": "hidden folder",
        "_SUCCESS": "hidden",
        "_temporary/0/x.jsonl": "hidden folder",
        "b/x.jsonl.tmp": "unfinished",
        "b/x.jsonl.part": "unfinished",
        "a.jsonl.sha256": "checksum",
        "SHA256SUMS": "checksum",
        "MANIFEST.md": "list of files",
        "README.md": "note",
        "LICENSE": "note",
        "b/make.py": "code",
    }
    for name in [*read, *ignored]:
        write(tmp_path / name)
    made = plan(tmp_path)
    assert [one.source for one in made.inputs] == sorted(str(tmp_path / name) for name in read)
    why = {str(Path(source).relative_to(tmp_path)): reason for source, reason in made.ignored}
    for name, word in ignored.items():
        name = name.split("/")[0] if "folder" in word else name
        assert word in why[name], name
    assert len(why) == len(ignored)


def test_what_is_named_outright_is_read(tmp_path: Path) -> None:
    """A name that a folder would leave out is read when it is an argument, also beside its folder."""
    hidden = write(tmp_path / ".hidden.jsonl")
    assert plan(hidden).inputs[0].source == plan(tmp_path, hidden).inputs[0].source == str(hidden)


def test_order_and_repetition_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any order of arguments, names given twice, globs and relative paths give the same plan."""
    files = [write(tmp_path / f"{name}.jsonl", LINE * (i + 1)) for i, name in enumerate("cab")]
    expected = plan(*files)
    monkeypatch.chdir(tmp_path)
    for inputs in (
        [*files[::-1]],
        [*files, *files],
        [tmp_path],
        [tmp_path, files[0]],
        ["*.jsonl"],
        ["./a.jsonl", *files],
    ):
        assert plan(*inputs) == expected, inputs
    assert plan(tmp_path, workers=3) == expected
    assert names(expected) == ["a.jsonl", "b.jsonl", "c.jsonl"]


def test_a_file_under_two_names_counts_once(tmp_path: Path) -> None:
    """A link to a file is the same file: read once, and named as such."""
    write(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "a.jsonl")
    (tmp_path / "dead.jsonl").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop").symlink_to(tmp_path)
    made = plan(tmp_path)
    assert names(made) == ["a.jsonl"]
    assert [Path(source).name for source, _ in made.ignored] == ["b.jsonl", "dead.jsonl", "loop"]


def test_linked_folders_are_entered(tmp_path: Path) -> None:
    """Data that lies behind a link to a folder is data."""
    write(tmp_path / "elsewhere/a.jsonl")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/linked").symlink_to(tmp_path / "elsewhere")
    assert [one.source for one in plan(tmp_path / "in").inputs] == [str(tmp_path / "in/linked/a.jsonl")]


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("corpus/par-000.jsonl", ["does not exist", "part-000.jsonl"]),
        ("corpsu/part-000.jsonl", ["does not exist", "corpus"]),
        ("corpus/*.parquet", ["no file matches", "part-000.jsonl"]),
        ("pipe", ["neither a file nor a folder"]),
        ("memory://nowhere/at-all", ["nothing is there"]),
        ("nosuchstore://x/y", ["cannot be looked up"]),
    ],
)
def test_a_wrong_argument_is_named_with_what_there_is(argument: str, words: list[str], tmp_path: Path) -> None:
    """A missing input stops the run at once, and the message shows the nearest names."""
    write(tmp_path / "corpus/part-000.jsonl")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError) as error:
        plan(argument if "://" in argument else tmp_path / argument)
    for word in words:
        assert word in str(error.value)


def test_an_empty_folder_is_a_plan_without_parts(tmp_path: Path) -> None:
    """Nothing to read is no error, and the plan says it."""
    made = plan(tmp_path)
    assert (made.inputs, made.parts) == ((), ())
    assert "no documents" in made.notes[0]


def test_urls_are_found_like_files() -> None:
    """A folder, a glob and a file of any store that fsspec knows."""
    for name in ("b.jsonl", "a.jsonl.gz", "README.md", "_temporary/0/c.jsonl"):
        with fsspec.open(f"memory://plan/{name}", "wb") as stream:
            stream.write(LINE)
    expected = ["memory:///plan/a.jsonl.gz", "memory:///plan/b.jsonl"]
    made = plan("memory://plan")
    assert [one.source for one in made.inputs] == expected
    assert [source for source, _ in made.ignored] == ["memory:///plan/README.md", "memory:///plan/_temporary/0/c.jsonl"]
    assert [one.source for one in plan("memory://plan/*.jsonl*").inputs] == expected
    assert [one.source for one in plan("memory://plan/b.jsonl").inputs] == expected[1:]
    assert plan("memory://plan/b.jsonl").inputs[0].size == len(LINE)


def test_names_that_are_no_utf8_become_urls(tmp_path: Path) -> None:
    """A file whose name is not valid UTF-8 is read, under a name that JSON and Arrow can hold."""
    odd = os.fsencode(tmp_path) + b"/caf\xe9.jsonl"
    with open(odd, "wb") as stream:  # noqa: PTH123  bytes are the point
        stream.write(LINE)
    (one,) = plan(tmp_path).inputs
    assert one.source == f"file://{tmp_path}/caf%E9.jsonl"
    assert plan(one.source).inputs == (one,)


# -- kinds ------------------------------------------------------------------------------------------


def test_kinds_go_by_content_first(tmp_path: Path) -> None:
    """Magic bytes decide, then the name; what is neither is planned as one damaged file, not skipped."""
    table = pa.table({"text": ["a"]})
    pq.write_table(table, tmp_path / "parquet.jsonl")
    with pa.OSFile(str(tmp_path / "arrow.bin"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    warc = b"WARC/1.0\r\nWARC-Type: response\r\n\r\n"
    with tarfile.open(tmp_path / "archive.tar", "w") as archive:
        archive.add(tmp_path / "arrow.bin")
    files = {
        "plain.jsonl": LINE,
        "plain.json": LINE,
        "data.txt": LINE,
        "part-00000": LINE,
        "bom": b"\xef\xbb\xbf" + LINE,
        "utf16": b"\xff\xfe" + LINE.decode().encode("utf-16-le"),
        "named.jsonl.gz": LINE,
        "zipped": gzip.compress(LINE),
        "zst": zstandard.compress(LINE),
        "empty.jsonl": b"",
        "a.warc": warc,
        "b.warc.gz.bad": gzip.compress(warc),
        "c.zst": zstandard.compress(warc),
        "d.warc.gz": gzip.compress(warc)[:20],
        "noise.bin": bytes(range(256)),
        "page.html": b"<html></html>",
        "x.jsonl.bz2": b"BZh91AY&SY",
        "x.zip": b"PK\x03\x04",
        "tar.gz": gzip.compress((tmp_path / "archive.tar").read_bytes()),
    }
    for name, content in files.items():
        write(tmp_path / name, content)
    found = kinds(plan(tmp_path))
    unknown = {"noise.bin", "page.html", "x.jsonl.bz2", "x.zip", "tar.gz", "archive.tar"}
    expected = {
        name: "unknown" if name in unknown else "warc" if b"WARC" in files.get(name, b"") else "jsonl" for name in found
    }
    expected |= dict.fromkeys(["a.warc", "b.warc.gz.bad", "c.zst", "d.warc.gz"], "warc")
    assert found == {**expected, "parquet.jsonl": "parquet", "arrow.bin": "arrow"}


def test_the_config_may_say_the_kind(tmp_path: Path) -> None:
    """`format` overrules the bytes."""
    assert kinds(plan(write(tmp_path / "x.bin", b"noise"), format="warc")) == {"x.bin": "warc"}


@pytest.mark.parametrize(
    ("content", "words"), [(b"BZh91AY", "bzip2"), (b"col1,col2\n", "'col1,col2"), (b"\x93\x94\xff", "93 94 ff")]
)
def test_nothing_to_read_is_an_error(content: bytes, words: str, tmp_path: Path) -> None:
    """If no input is of a known kind, the run does not start; the message says what was found."""
    with pytest.raises(InputError, match=r"expected JSON lines") as error:
        plan(write(tmp_path / "x.csv", content))
    assert words in str(error.value)


# -- cutting and grouping -----------------------------------------------------------------------------


def big(path: Path, n_bytes: int) -> Path:
    rows, n, size = [], 0, 0
    while size < n_bytes:
        rows.append(b'{"text":"%s %d"}\n' % (b"x" * (n * 37 % 2000), n))
        size += len(rows[-1])
        n += 1
    return write(path, b"".join(rows))


@pytest.mark.parametrize("workers", [1, 3])
def test_big_plain_files_are_cut_at_fixed_bytes(workers: int, tmp_path: Path) -> None:
    """Slices lie at multiples of slice_mb, cover the file, and know the number of their first line."""
    path = big(tmp_path / "big.jsonl", 3 * MB + 1000)
    content = path.read_bytes()
    made = plan(path, slice_mb=1, workers=workers)
    slices = [one for part in made.parts for one in part.slices]
    assert [(one.start, one.end) for one in slices] == [(0, MB), (MB, 2 * MB), (2 * MB, 3 * MB), (3 * MB, len(content))]
    for one in slices:
        begins = one.start if one.start == 0 else content.index(b"\n", one.start - 1) + 1
        assert one.first_line == content.count(b"\n", 0, begins) + 1
    assert made.inputs[0].sha256 == hashlib.sha256(content).hexdigest()


def test_a_line_that_begins_with_the_slice_is_its_first(tmp_path: Path) -> None:
    """A newline as the last byte before a slice makes the slice's first byte a line's beginning."""
    line = b'{"text":"' + b"x" * (MB // 4 - 12) + b'"}\n'
    made = plan(write(tmp_path / "x.jsonl", line * 12), slice_mb=1)
    assert [part.slices[0].first_line for part in made.parts] == [1, 5, 9]


@pytest.mark.parametrize("name", ["x.jsonl.gz", "utf16", "old mac", "array"])
def test_files_that_need_their_beginning_stay_whole(name: str, tmp_path: Path) -> None:
    """Compressed files, other encodings, other line ends and JSON documents are one slice each."""
    content = big(tmp_path / "x", 2 * MB).read_bytes()
    made = {
        "x.jsonl.gz": zstandard.ZstdCompressor(level=-5).compress(os.urandom(2 * MB)),
        "utf16": content.decode().encode("utf-16"),
        "old mac": content.replace(b"\n", b"\r"),
        "array": json.dumps([{"text": "a" * 1000}] * 3000, indent=1).encode(),
    }[name]
    (one,) = plan(write(tmp_path / "y.jsonl", made), slice_mb=1).parts
    assert [(slice_.start, slice_.end) for slice_ in one.slices] == [(0, len(made))]


def test_small_files_are_put_together(tmp_path: Path) -> None:
    """Parts have about slice_mb, in the order of the names, whatever the number of files."""
    for i in range(40):
        write(tmp_path / f"{i:02d}.jsonl", LINE * 2000)
    made = plan(tmp_path, slice_mb=1)
    sizes = [sum(one.end - one.start for one in part.slices) for part in made.parts]
    assert all(MB <= size < 1.2 * MB for size in sizes[:-1])
    assert [Path(one.source).name for part in made.parts for one in part.slices] == [
        f"{i:02d}.jsonl" for i in range(40)
    ]
    assert [part.index for part in made.parts] == list(range(len(made.parts)))


def test_slices_grow_rather_than_parts_become_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a largest number of parts; beyond it slices grow, and the plan says so."""
    monkeypatch.setattr(plan_module, "MAX_PARTS", 4)
    made = plan(big(tmp_path / "big.jsonl", 10 * MB), slice_mb=1)
    assert len(made.parts) <= 4
    assert "slices of 4 MB instead of 1 MB" in made.notes[0]


def test_plans_survive_json(tmp_path: Path) -> None:
    """A plan written and read is the same plan, and keeps what shows that an input has changed."""
    big(tmp_path / "a.jsonl", 3 * MB)
    write(tmp_path / "b.jsonl.gz", gzip.compress(LINE))
    write(tmp_path / "c.tmp")
    made = plan(tmp_path, slice_mb=1)
    stored = json.loads(json.dumps(made.to_json()))
    assert Plan.from_json(stored) == made
    write(tmp_path / "b.jsonl.gz", gzip.compress(LINE * 2))
    now = plan(tmp_path, slice_mb=1)
    assert [
        a.source for a, b in zip(made.inputs, now.inputs, strict=True) if (a.size, a.mtime) != (b.size, b.mtime)
    ] == [str(tmp_path / "b.jsonl.gz")]
    with pytest.raises(InputError, match="Start a new run"):
        Plan.from_json({**stored, "format": 99})

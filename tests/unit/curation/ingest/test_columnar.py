"""Every row of a parquet or Arrow file ends as a document or in the quarantine, in bounded memory."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import InputError, RunError
from curation.ingest import arrow_files
from curation.ingest.cells import id_cells, json_cells
from curation.ingest.columnar import read_columnar
from curation.ingest.config import IngestConfig
from curation.ingest.record import DAMAGE, Damage, Document, Slice, SliceReport

TEXTS = ["The council met.", "市议会开会。", "a\nb", "x" * 50]


def write_parquet(table: pa.Table, path: Path, rows: int) -> None:
    pq.write_table(table, path, row_group_size=rows)


def write_file(table: pa.Table, path: Path, rows: int) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


def write_packed(table: pa.Table, path: Path, rows: int) -> None:
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table, max_chunksize=rows)


def write_stream(table: pa.Table, path: Path, rows: int) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


Writer = Callable[[pa.Table, Path, int], None]
FORMS: dict[str, Writer] = {
    "parquet": write_parquet,
    "arrow": write_file,
    "arrow, packed": write_packed,
    "arrow stream": write_stream,
}
each_form = pytest.mark.parametrize("form", FORMS)


def write(table: pa.Table, folder: Path, form: str, rows: int = 100) -> Path:
    path = folder / f"x.{form.split()[0].strip(',')}"
    FORMS[form](table, path, rows)
    return path


def read(
    path: Path | str, size: int | None = None, **settings: Any
) -> tuple[list[Document], list[Damage], SliceReport]:
    """Read a file and hold its counts against each other."""
    n_bytes = Path(path).stat().st_size if size is None else size
    report = SliceReport()
    kind = "parquet" if str(path).endswith("parquet") else "arrow"
    found = list(read_columnar(Slice(str(path), kind, 0, n_bytes, n_bytes), IngestConfig(**settings), report))
    documents = [one for one in found if isinstance(one, Document)]
    damages = [one for one in found if isinstance(one, Damage)]
    assert report.records == len(documents) + sum(not damage.whole_file for damage in damages)
    assert {damage.reason for damage in damages if damage.whole_file} == set(report.damaged)
    assert all(damage.reason in DAMAGE for damage in damages)
    assert len(report.sha256) == 64
    return documents, damages, report


def as_type(texts: list[str | None], kind: pa.DataType) -> pa.Array:
    """Text in an Arrow type, some of which refuse str."""
    if pa.types.is_dictionary(kind):
        return pa.array(texts, kind.value_type).dictionary_encode()
    if pa.types.is_fixed_size_binary(kind):
        return pa.array([None if text is None else text.encode().ljust(50)[:50] for text in texts], kind)
    as_bytes = any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view))
    return pa.array([text.encode() if as_bytes and text is not None else text for text in texts], kind)


TYPES = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(50),
    pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.large_string()),
]  # fmt: skip


@each_form
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_text_is_read_from_every_type_that_holds_text(form: str, kind: pa.DataType, tmp_path: Path) -> None:
    """Text comes out byte for byte, with its row, and nulls are named."""
    table = pa.table({"id": range(5), "text": as_type([*TEXTS, None], kind)})
    documents, damages, _ = read(write(table, tmp_path, form, rows=2))
    assert [document.text.rstrip() for document in documents] == TEXTS
    assert [(document.id, document.line, document.row) for document in documents] == [
        (str(i), i + 1, i) for i in range(4)
    ]
    assert all(document.byte_offset is None for document in documents)
    assert [(damage.reason, damage.line, damage.detail) for damage in damages] == [("null_text", 5, "id 4")]


@each_form
def test_rows_without_text_are_named(form: str, tmp_path: Path) -> None:
    """Null, empty and blank texts are quarantined; the rest is kept."""
    table = pa.table({"text": [None, "", " \n\u3000", "ok"]})
    documents, damages, _ = read(write(table, tmp_path, form))
    assert [document.text for document in documents] == ["ok"]
    assert [(damage.reason, damage.line) for damage in damages] == [
        ("null_text", 1),
        ("empty_text", 2),
        ("empty_text", 3),
    ]


@each_form
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()], ids=str)
def test_text_that_is_no_utf8_is_found_in_its_row(form: str, kind: pa.DataType, tmp_path: Path) -> None:
    """Arrow does not check its strings: the bad row is quarantined with its bytes, its neighbours are kept."""
    hidden = pa.array([b"good", b"caf\xe9", b"\xed\xa0\x80", b"fine"], pa.binary())
    if not pa.types.is_binary(kind):
        wide = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
        column = (
            hidden.cast(pa.binary_view()).view(kind) if pa.types.is_string_view(kind) else hidden.cast(wide).view(kind)
        )
    else:
        column = hidden
    documents, damages, report = read(write(pa.table({"text": column, "id": ["a", "b", "c", "d"]}), tmp_path, form))
    assert [document.text for document in documents] == ["good", "fine"]
    assert [(damage.reason, damage.line, damage.raw) for damage in damages] == [
        ("bad_utf8", 2, b"caf\xe9"),
        ("bad_utf8", 3, b"\xed\xa0\x80"),
    ]
    assert damages[0].detail == "id b; byte 3 of the text is 0xe9: unexpected end of data"
    assert report.damaged == []


@each_form
def test_dates_and_numbers_as_text_stay_strings(form: str, tmp_path: Path) -> None:
    """A text that looks like a date is a text (B016)."""
    documents, _, _ = read(write(pa.table({"text": ["2024-01-02", "17"]}), tmp_path, form))
    assert [document.text for document in documents] == ["2024-01-02", "17"]


WRONG_COLUMNS = [
    (pa.table({"content": ["a"], "n": [1]}), "unknown_column", ["content, n", "ingest.text_column"]),
    (pa.table({"text": pa.array([{"body": "a"}])}), "wrong_text_type", ["struct<body: string>", "ingest.text_column"]),
    (pa.table({"text": [1]}), "wrong_text_type", ["int64"]),
    (pa.table({"text": [["a"]]}), "wrong_text_type", ["list<"]),
]


@each_form
@pytest.mark.parametrize(("table", "reason", "words"), WRONG_COLUMNS, ids=[row[2][0] for row in WRONG_COLUMNS])
def test_a_file_without_a_text_column_is_one_damage(
    form: str, table: pa.Table, reason: str, words: list[str], tmp_path: Path
) -> None:
    """Not one damage a row: one for the file, which names the columns and the option, and counts what is lost."""
    documents, [damage], report = read(write(table, tmp_path, form))
    assert (documents, report.records) == ([], 0)
    assert (damage.reason, damage.whole_file) == (reason, True)
    assert all(word in damage.detail for word in words)
    assert report.notes.get("rows_lost") == (1 if form == "parquet" else None)


def test_columns_are_chosen_by_the_config(tmp_path: Path) -> None:
    """Text, id and url are read from the named columns; what is not chosen goes to meta."""
    table = pa.table({"text": ["not this"], "body": ["this"], "key": [7], "link": ["http://x/"], "id": ["no"]})
    path = write(table, tmp_path, "parquet")
    [document], _, _ = read(path, text_column="body", id_column="key", url_column="link")
    assert (document.text, document.id, document.url) == ("this", "7", "http://x/")
    assert orjson.loads(document.meta or "") == {"text": "not this", "id": "no"}


@each_form
def test_columns_of_one_name_are_all_kept(form: str, tmp_path: Path) -> None:
    """Two columns of one name both reach meta; two text columns are a fault of the file."""
    table = pa.Table.from_arrays([pa.array([text]) for text in "abc"], ["text", "x", "x"])
    [document], _, _ = read(write(table, tmp_path, form))
    assert orjson.loads(document.meta or "") == {"x": "b", "x#2": "c"}
    doubled = table.rename_columns(["text", "text", "x"])
    documents, [damage], _ = read(write(doubled, tmp_path, form))
    assert (documents, damage.reason, damage.whole_file) == ([], "duplicate_key", True)


VALUES = [
    # Arrow array of one value, as JSON, as id
    (pa.array(["é"]), "é", "é"),
    (pa.array([""]), "", None),
    (pa.array([12], pa.uint64()), 12, "12"),
    (pa.array([True]), True, "true"),
    (pa.array([1.5]), 1.5, "1.5"),
    (pa.array([float("nan")]), None, None),
    (pa.array([float("inf")]), None, "inf"),
    (pa.array([None]), None, None),
    (pa.array([b"bytes"]), "bytes", "bytes"),
    (pa.array([b"\xff\x00"]), "/wA=", "/wA="),
    (pa.array([dt.date(2024, 5, 6)]), "2024-05-06", "2024-05-06"),
    (pa.array([dt.datetime(2024, 5, 6, 7, 8, 9)]), "2024-05-06T07:08:09.000000", "2024-05-06T07:08:09.000000"),
    (pa.array([1], pa.timestamp("ns")), "1970-01-01T00:00:00.000000001", "1970-01-01T00:00:00.000000001"),
    (pa.array([0], pa.timestamp("s", "Asia/Tokyo")), "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    (pa.array([10**6], pa.timestamp("s", "No/Where")), "1970-01-12T13:46:40Z", "1970-01-12T13:46:40Z"),
    (pa.array([decimal.Decimal("1.10")]), "1.10", "1.10"),
    (pa.array([{"a": 1, "t": dt.date(2024, 5, 6)}]), {"a": 1, "t": "2024-05-06"}, '{"a":1,"t":"2024-05-06"}'),
    (pa.array([["a", None]]), ["a", None], '["a",null]'),
    (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())), [["k", 1]], '[["k",1]]'),
    (pa.array(["x"]).dictionary_encode(), "x", "x"),
    (
        pa.array([b"0123456789abcdef"], pa.uuid()),
        "30313233-3435-3637-3839-616263646566",
        "30313233-3435-3637-3839-616263646566",
    ),
    (pa.array([10**9], pa.date32()), "<value out of range: 1000000000>", "<value out of range: 1000000000>"),
]


@pytest.mark.parametrize(("column", "value", "id_"), VALUES, ids=[f"{row[0].type} {row[1]}" for row in VALUES])
def test_other_columns_become_json(column: pa.Array, value: Any, id_: str | None, tmp_path: Path) -> None:
    """Any type has a JSON form and an id form, the same whichever packages are installed (pandas changes as_py)."""
    table = pa.table({"text": ["a"], "x": column})
    [document], _, _ = read(write(table, tmp_path, "arrow"))
    assert (orjson.loads(document.meta)["x"] if document.meta else None) == value
    assert id_cells(column) == [id_]


def test_meta_values_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    """A nested string that is no UTF-8 costs its value, not its row, and shows in the notes."""
    strings = pa.array([b"\xff", b"ok"], pa.binary()).view(pa.string())
    column = pa.StructArray.from_arrays([strings], ["s"])
    assert json_cells(column) == ([None, {"s": "ok"}], 1)
    documents, _, report = read(write(pa.table({"text": ["a", "b"], "x": column}), tmp_path, "arrow"))
    assert [document.meta for document in documents] == [None, '{"x":{"s":"ok"}}']
    assert report.notes == {"meta_values_unreadable": 1}


def test_rows_over_the_limit_are_too_long(tmp_path: Path) -> None:
    """The limit holds for the text and for text and meta together; only the first bytes are kept."""
    table = pa.table({"text": ["a" * 2**21, "b", "c"], "x": [None, "d" * 2**21, None]})
    documents, damages, _ = read(write(table, tmp_path, "parquet"), max_record_mb=1, quarantine_raw_kb=1)
    assert [document.text for document in documents] == ["c"]
    assert [(damage.reason, damage.line, len(damage.raw)) for damage in damages] == [
        ("too_long", 1, 1024),
        ("too_long", 2, 1),
    ]
    assert damages[0].raw_length == 2**21


def test_a_dictionary_of_long_texts_is_not_multiplied(tmp_path: Path) -> None:
    """5,000 rows of one 1 MB text are 5 GB when expanded: each row shares the one string."""
    words = pa.array(["w" * 2**20])
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), words)
    path = write(pa.table({"text": column}), tmp_path, "arrow", rows=5000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = SliceReport()
    size = path.stat().st_size
    assert sum(1 for _ in read_columnar(Slice(str(path), "arrow", 0, size, size), IngestConfig(), report)) == 5000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_big_blocks_are_read_in_pieces(tmp_path: Path) -> None:
    """One row group of 47 MB costs a piece of it."""
    noise = random.Random(0).randbytes(20_000).hex()
    table = pa.table({"text": [noise[i % 1000 :] for i in range(1200)]})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=1200, write_batch_size=16)  # pages of 1 MB: a page is unpacked whole
    del table
    before = pa.total_allocated_bytes()
    size = path.stat().st_size
    for one in read_columnar(Slice(str(path), "parquet", 0, size, size), IngestConfig(), SliceReport()):
        assert isinstance(one, Document)
        assert pa.total_allocated_bytes() - before < 30_000_000


# -- damage ---------------------------------------------------------------------------------------


def _spoil(path: Path, *, group: int, column: int) -> None:
    """Overwrite the middle of a column chunk."""
    meta = pq.ParquetFile(path).metadata.row_group(group).column(column)
    data = bytearray(path.read_bytes())
    start = meta.data_page_offset + meta.total_compressed_size // 2
    data[start : start + 40] = bytes(40)
    path.write_bytes(data)


def _noisy(rows: int) -> pa.Table:
    rng = random.Random(5)
    texts = [rng.randbytes(60).hex() for _ in range(rows)]
    return pa.table(
        {"id": [f"n{i}-{rng.random()}" for i in range(rows)], "text": texts, "tag": [t[::-1] for t in texts]}
    )


def test_a_damaged_row_group_costs_only_itself(tmp_path: Path) -> None:
    """The other groups are kept, the damage names the rows, and rows after it keep their numbers."""
    path = tmp_path / "x.parquet"
    pq.write_table(_noisy(400), path, row_group_size=100, use_dictionary=False)
    _spoil(path, group=1, column=1)
    documents, damages, report = read(path)
    lost = report.notes["rows_lost"]
    assert len(documents) + lost == 400
    assert 0 < lost <= 100
    assert [document.row for document in documents if document.row >= 200] == list(range(200, 400))
    assert [(damage.reason, damage.whole_file) for damage in damages] == [("bad_row_group", True)]
    assert f"row group 1 (rows 101 to 200): lost {lost} rows" in damages[0].detail


def test_a_damaged_side_column_costs_no_text(tmp_path: Path) -> None:
    """Where only another column is damaged, every text is kept, without that column from the damage on."""
    path = tmp_path / "x.parquet"
    pq.write_table(_noisy(400), path, row_group_size=100, use_dictionary=False)
    _spoil(path, group=1, column=2)
    documents, [damage], report = read(path)
    assert [document.row for document in documents] == list(range(400))
    assert "without column tag" in damage.detail
    assert report.notes == {}
    assert any(document.meta is None for document in documents[100:200])
    assert all(document.meta for document in documents[200:])


def test_checksums_of_pages_are_verified(tmp_path: Path) -> None:
    """A flipped bit inside an uncompressed page decodes to other text: only the checksum tells."""
    path = tmp_path / "x.parquet"
    pq.write_table(_noisy(50), path, compression="none", use_dictionary=False, write_page_checksum=True)
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + 2000] ^= 1
    path.write_bytes(data)
    documents, [damage], _ = read(path)
    assert documents == []
    assert "CRC" in damage.detail


def test_a_damaged_batch_of_an_arrow_file_costs_only_itself(tmp_path: Path) -> None:
    """Offsets that point nowhere would crash Arrow: they are found before they are used."""
    path = write(pa.table({"text": [f"text {i}" for i in range(40)]}), tmp_path, "arrow", rows=10)
    data = path.read_bytes()
    offsets = b"".join(i.to_bytes(4, "little") for i in (0, 6, 12, 18, 24))
    path.write_bytes(data.replace(offsets, offsets[:8] + b"\xff\xff\xff\x7f" + offsets[12:], 1))
    documents, damages, report = read(path)
    assert [document.line for document in documents] == list(range(11, 41))
    assert [damage.reason for damage in damages] == ["bad_row_group", "bad_row_group"]
    assert report.notes == {"rows_lost": 10}


def test_an_arrow_stream_that_ends_too_early_keeps_what_came(tmp_path: Path) -> None:
    """Whole batches before the cut are read; the cut is named."""
    path = write(pa.table({"text": [f"text {i}" for i in range(40)]}), tmp_path, "arrow stream", rows=10)
    path.write_bytes(path.read_bytes()[:-60])
    documents, [damage], _ = read(path)
    assert len(documents) == 30
    assert damage.reason == "corrupt_stream"
    assert "record batch 3" in damage.detail


@pytest.mark.parametrize("content", [b"", b"PAR1", b"ARROW1\0\0", b"not columnar at all", b"FEA1" + bytes(40)])
@pytest.mark.parametrize("name", ["x.parquet", "x.arrow"])
def test_files_of_another_kind_are_one_damage(name: str, content: bytes, tmp_path: Path) -> None:
    """No exception, one `bad_file`."""
    path = tmp_path / name
    path.write_bytes(content)
    documents, [damage], _ = read(path)
    assert documents == []
    assert (damage.reason, damage.whole_file) == ("bad_file", True)


def test_empty_tables_are_no_damage(tmp_path: Path) -> None:
    """Zero rows, zero batches, zero row groups."""
    for form in FORMS:
        empty = pa.table({"text": pa.array([], pa.string())})
        assert read(write(empty, tmp_path, form))[:2] == ([], [])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMS)), st.integers(0, 2**32))
def test_damaged_files_never_raise(tmp_path_factory: pytest.TempPathFactory, form: str, seed: int) -> None:
    """Random flips and cuts: no exception, no crash, and what is read is accounted for."""
    rng = random.Random(seed)
    table = pa.table(
        {
            "id": range(60),
            "text": [f"line {i} 文字 " * rng.randint(1, 9) for i in range(60)],
            "url": pa.array([f"u{i % 7}" for i in range(60)]).dictionary_encode(),
            "tags": [["a", "b"]] * 60,
            "s": [{"x": i, "y": "z"} for i in range(60)],
        }
    )
    path = write(table, tmp_path_factory.mktemp("x"), form, rows=20)
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 3, 20))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.3:
        del data[rng.randrange(1, len(data)) :]
    path.write_bytes(data)
    read(path)


# -- stores ---------------------------------------------------------------------------------------


@each_form
def test_urls_are_read_as_files_are(form: str, tmp_path: Path) -> None:
    """Any store that fsspec knows gives the same rows."""
    local = write(pa.table({"text": TEXTS, "id": range(4)}), tmp_path, form, rows=2)
    url = f"memory://columnar/{local.name}"
    with fsspec.open(url, "wb") as stream:
        stream.write(local.read_bytes())
    assert read(url, local.stat().st_size)[0] == read(local)[0]


@each_form
def test_file_names_that_are_no_utf8(form: str, tmp_path: Path) -> None:
    """A name is bytes to the system: such files are read, and their damage is told apart from their name."""
    path = write(pa.table({"text": TEXTS}), tmp_path, form, rows=2)
    odd = path.rename(tmp_path / os.fsdecode(b"caf\xe9." + path.suffix[1:].encode()))
    assert [document.text for document in read(odd)[0]] == TEXTS


def test_a_fault_of_the_store_is_no_damage_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost connection must not put a sound file into the quarantine: it is an error, and a retry may help."""
    local = write(pa.table({"text": TEXTS}), tmp_path, "parquet")
    url = f"memory://columnar/{local.name}"
    with fsspec.open(url, "wb") as stream:
        stream.write(local.read_bytes())

    class Failing:
        """A stream of a store whose connection breaks."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __getattr__(self, name: str) -> Any:
            return getattr(self._stream, name)

        def read(self, n_bytes: int) -> bytes:
            raise ValueError("connection reset")

    opened = arrow_files.open_source
    monkeypatch.setattr(arrow_files, "open_source", lambda source: Failing(opened(source)))
    with pytest.raises(RunError, match="connection reset"):
        read(url, local.stat().st_size)


def test_a_missing_or_changed_file_is_an_error(tmp_path: Path) -> None:
    """The plan names files by size: another size, or none, is no damage to be counted."""
    path = write(pa.table({"text": TEXTS}), tmp_path, "parquet")
    with pytest.raises(InputError, match="changed"):
        read(path, path.stat().st_size + 1)
    with pytest.raises(InputError, match="gone"):
        read(tmp_path / "none.parquet", 10)

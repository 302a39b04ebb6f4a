"""The page says what funnel.json says, loads nothing, runs nothing, and stands whatever the crawl holds."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from curation.run import Run

HOSTILE = {
    "breaks out of the style": "</style><script>alert(1)</script><img src=x onerror=alert(1)>",
    "template syntax": "{{ 7 * 7 }} {% raw %} ${x} <!-- --><![CDATA[",
    "turns the line around": "abc \u202edlrow olleh\u202c end \u2066x\u2069 \u200ey",
    "control characters": "nul \x00 bell \x07 escape \x1b[31m delete \x7f c1 \x85",
    "one line of a megabyte": "A" * 1_000_000,
    "Arabic": "مرحبا بالعالم، هذا نص عربي. " * 40,
    "astral": "𝒳𝒴𝒵 🎉 👨‍👩‍👧 \U000e0041 " * 30,
    "marks without a letter": "\u0301\u0302\u0303" * 300,
    "only blanks": " \n\n\n\n\t\u3000 " * 50,
    "quotes and brackets": """'"><a href="javascript:alert(1)" onclick='x'>&lt;&amp;&#0;""",
}


def some_docs(made: Any, n: int = 300) -> list[Any]:
    texts = [f"word{i % 90} " * (1 + i % 12) for i in range(n)]
    return [made.doc(text, f"https://host{i % 7}.example/p{i}") for i, text in enumerate(texts)]


def bad_line(number: int, reason: str = "bad_json", **more: Any) -> dict[str, Any]:
    return {
        "file": "/data/crawl-00.jsonl", "line": number, "byte_offset": 10 * number, "reason": reason, "whole_file": False,
        "detail": "expected a value", "raw": '{"text": "half a', "raw_length": 16, **more,
    }  # fmt: skip


def test_numbers_are_those_of_the_funnel(made: Any) -> None:
    """Lines, documents, every step's in and kept, every reason's count, tokens: all as in funnel.json."""
    steps = [made.exact(), made.length(), made.language()]
    folder = made.run(some_docs(made), steps, quarantine=[bad_line(i) for i in range(7)], pack=True)
    funnel = json.loads((folder / "report" / "funnel.json").read_text(encoding="utf-8"))
    page = made.page(folder)
    assert f"lines in {funnel['inputs']['lines']} = documents {funnel['documents']} + quarantined 7" in page.words
    dropped = sum(n for step in funnel["steps"] for n in step["dropped"].values())
    assert f"documents {funnel['documents']} = kept {funnel['kept']} + dropped {dropped}" in page.words
    assert f"kept {funnel['kept']} = in the token file {funnel['packed']['documents']}" in page.words
    assert "does not hold" not in page.words
    assert "every number agrees" in page.words
    for step in funnel["steps"]:
        assert page.row(step["name"])[1:3] == [f"{step['docs_in']:,}", f"{step['docs_kept']:,}"]
        for reason, n in step["dropped"].items():
            assert page.row(reason)[1] == f"{n:,}"
    assert page.row("bad_json")[1] == "7"
    assert page.row("tokens")[1] == f"{funnel['packed']['tokens']:,}"


def test_the_funnel_is_drawn_with_the_same_numbers(made: Any) -> None:
    """Both drawings name every reason with its count."""
    folder = made.run(some_docs(made), [made.exact(), made.length()], quarantine=[bad_line(1, "bad_utf8")])
    page = made.page(folder)
    drawings = re.findall(r'<svg class="funnel.*?</svg>', page.html, re.DOTALL)
    assert len(drawings) == 2
    funnel = json.loads((folder / "report" / "funnel.json").read_text(encoding="utf-8"))
    for drawing in drawings:
        for reasons in [funnel["quarantined"], *(step["dropped"] for step in funnel["steps"])]:
            for reason, n in reasons.items():
                assert f"<title>{reason}: {n:,} of " in drawing


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_stay_text(made: Any, name: str) -> None:
    """Whatever stands in a text, an id, an address, a file's name, a damaged line or an error: it is shown, not obeyed."""
    text = HOSTILE[name]
    short = text[:200]
    docs = [made.doc(text, short, f"/data/{short}", short), made.doc("plain words here " * 9, None), made.doc(text)]
    bad = [
        bad_line(1, detail=short, raw=text, file=short),
        bad_line(2, raw=None, raw_base64=base64.b64encode(text.encode()).decode()),
    ]
    folder = made.run(docs, [made.exact(), made.length()], quarantine=bad, config_text=text)
    for state in ("done", "failed"):
        Run(folder).update(state=state, error=text)
        page = made.page(folder)
        check_harmless(page)
        assert len(page.bytes) < 300_000


def check_harmless(page: Any) -> None:
    """No script, no handler, nothing loaded, nothing invisible."""
    assert page.tags.isdisjoint({"script", "iframe", "img", "link", "object", "embed", "form", "base", "image", "use"})
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in {"src", "srcset", "action", "xlink:href", "background", "poster"}, (tag, name, value)
        assert name != "href" or value.startswith("#"), value
    assert not re.search(r"url\s*\(|@import", page.html)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page.html)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert ("meta", "content", policy) in page.attributes


def test_every_link_leads_to_a_place_on_the_page(made: Any) -> None:
    """Anchors exist and ids are unique."""
    page = made.page(made.run(some_docs(made), [made.exact(), made.length()], quarantine=[bad_line(1)], pack=True))
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    targets = {value[1:] for _, name, value in page.attributes if name == "href"}
    assert targets <= set(ids)


def test_the_same_run_gives_the_same_bytes(made: Any) -> None:
    """Building again changes nothing."""
    folder = made.run(
        some_docs(made), [made.exact(), made.length()], quarantine=[bad_line(i) for i in range(9)], pack=True
    )
    assert made.page(folder).bytes == made.page(folder).bytes


def test_samples_do_not_depend_on_the_cut_into_shards(made: Any, tmp_path: Path) -> None:
    """The same documents in other shards show the same samples."""
    found = []
    for rows in (1000, 37):
        made.root = tmp_path / str(rows)
        page = made.page(made.run(some_docs(made), [made.length()], shard_rows=rows))
        found.append(re.findall(r"<article.*?</article>", page.html, re.DOTALL))
    assert found[0] == found[1]
    assert len(found[0]) > 6


def test_no_documents(made: Any) -> None:
    """Zero documents: a page of zeros, not a crash."""
    page = made.page(made.run([], [made.exact(), made.length()], quarantine=[bad_line(1)], pack=True))
    assert "lines in 1 = documents 0 + quarantined 1" in page.words
    assert "There are no documents" in page.words


def test_no_lines_at_all(made: Any) -> None:
    """Zero lines: no division by them."""
    assert "lines in 0 = documents 0 + quarantined 0" in made.page(made.run([])).words


def test_one_document(made: Any) -> None:
    page = made.page(made.run([made.doc("only one document, long enough to stay")], [made.exact(), made.length()]))
    assert "documents 1 = kept 1 + dropped 0" in page.words


def test_no_steps_and_no_pack(made: Any) -> None:
    """A config without steps keeps everything."""
    page = made.page(made.run(some_docs(made, 20)))
    assert "documents 20 = kept 20 + dropped 0" in page.words
    assert "Token file" not in page.words


def test_a_rule_that_never_fired_is_named(made: Any) -> None:
    """From 1,000 documents on, and not before."""
    big = made.page(made.run(some_docs(made, 1000), [made.length()]))
    assert "Never fired although length looked at 1,000 documents: length.too_long" in big.words


def test_silence_on_few_documents_is_not_worth_a_word(made: Any) -> None:
    assert "Never fired" not in made.page(made.run(some_docs(made, 999), [made.length()])).words


def test_a_rule_that_takes_more_than_half_is_marked(made: Any) -> None:
    page = made.page(made.run(some_docs(made), [made.length(8)]))
    assert "length.too_short took" in page.words
    assert 'class="heavy"' in page.html


def test_a_funnel_that_does_not_add_up_is_red(made: Any) -> None:
    """The page counts the verdict files itself and says where the funnel differs."""
    folder = made.run(some_docs(made), [made.length()])
    path = folder / "report" / "funnel.json"
    funnel = json.loads(path.read_text(encoding="utf-8"))
    funnel["kept"] += 1
    funnel["steps"][0]["docs_kept"] += 1
    path.write_text(json.dumps(funnel), encoding="utf-8")
    page = made.page(folder)
    assert "does not hold" in page.words
    assert "its verdict files hold" in page.words
    assert "every number agrees" not in page.words


def test_a_damaged_verdict_file_is_named(made: Any) -> None:
    """The rest of the report stands."""
    folder = made.run(some_docs(made), [made.length()])
    victim = next((folder / "steps").glob("*/00000.arrow"))
    victim.write_bytes(victim.read_bytes()[:-40])
    page = made.page(folder)
    assert "is not the file that was written" in page.words
    assert "Funnel" in page.words


@pytest.mark.parametrize(
    "victim", ["shards/00000.arrow", "steps/*/_step.json", "inputs.json", "pack/documents.parquet"]
)
def test_any_damaged_file_leaves_a_report(made: Any, victim: str) -> None:
    """What is damaged is named on top; the rest is shown."""
    folder = made.run(some_docs(made), [made.exact(), made.length()], pack=True, shard_rows=100)
    path = next(folder.glob(victim))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    page = made.page(folder)
    check_harmless(page)
    assert path.name in page.words.split("Funnel", 2)[1]
    assert "Worth a look" in page.words
    path.unlink()
    check_harmless(made.page(folder))


def test_a_duplicate_stands_beside_the_document_that_was_kept(made: Any) -> None:
    """The partner is found in another shard than the copy, too."""
    docs = [
        made.doc("one text that stands twice in this run", id="first"),
        made.doc("another text of its own", id="other"),
    ]
    docs.append(made.doc(docs[0].text, id="copy"))
    page = made.page(made.run(docs, [made.exact()]))
    pair = re.search(r'<article class="sample dropped pair">.*?</article>', page.html, re.DOTALL)
    assert pair is not None
    assert "copy" in pair.group()
    assert "first" in pair.group().split("kept instead")[1]


def test_borderline_samples_stand_on_their_side(made: Any) -> None:
    """Just dropped: the longest of the too short; just kept: the shortest of the others."""
    docs = [made.doc("word " * n, id=f"n{n:02d}") for n in range(1, 30)]
    page = made.page(made.run(docs, [made.length(10)]))
    sides = re.search(r'<div class="sides">(.*?)</details>', page.html, re.DOTALL)
    assert sides is not None
    dropped, kept = sides.group(1).split("just kept")
    assert re.findall(r"<bdi>(n\d\d)</bdi>", dropped) == ["n07", "n08", "n09"]
    assert re.findall(r"<bdi>(n\d\d)</bdi>", kept) == ["n10", "n11", "n12"]


def test_addresses_and_numbers_are_masked_everywhere(made: Any) -> None:
    """In texts, ids, addresses of pages and quarantined lines, as text and as hex."""
    secret = "write to john.doe@mail.example or call +49 30 1234567"
    raw = base64.b64encode(b"\xff" + secret.encode()).decode()
    bad = [bad_line(1, raw=secret), bad_line(2, "bad_utf8", raw=None, raw_base64=raw)]
    doc = made.doc(secret, "https://x.example/?mail=john.doe@mail.example", id="john.doe@mail.example")
    page = made.page(made.run([doc], [made.length(100)], quarantine=bad))
    assert "john" not in page.html
    assert "1234567" not in page.html
    assert b"john".hex(" ") not in page.html
    assert "write to" in page.html


def test_languages_are_counted(made: Any) -> None:
    docs = [
        made.doc("这是一个中文句子，里面没有别的。"),
        made.doc("and this is an English sentence"),
        made.doc("and one more of them"),
    ]
    page = made.page(made.run(docs, [made.language()]))
    assert page.row("zh")[1:3] == ["1", "1"]
    assert page.row("en")[1:3] == ["2", "2"]


def test_scripts_are_counted(made: Any) -> None:
    """Japanese is one row, though it is written in three scripts."""
    texts = ["日本語の文章です。漢字とかな。", "中文句子没有假名", "Latin letters only", "только кириллица", "123 456"]
    page = made.page(made.run([made.doc(text) for text in texts]))
    for script in ("Kana and Han", "Han", "Latin", "Cyrillic"):
        assert page.row(script)[1:3] == ["1", "1"]
    assert "1 documents without letters" in page.words


def test_a_damaged_input_stands_first(made: Any) -> None:
    docs = [*some_docs(made, 20), made.doc("text from a cut file here", source="/data/cut.jsonl.gz")]
    page = made.page(made.run(docs, [made.length()]))
    assert "damaged truncated_stream" in " ".join(page.row("cut.jsonl.gz"))
    assert page.html.index("cut.jsonl.gz</bdi></th>") < page.html.index("crawl-00.jsonl</bdi></th>")


def test_every_step_on_every_document_has_no_funnel(made: Any) -> None:
    """`judge_all` runs: steps side by side."""
    folder = made.run(some_docs(made), [made.length()])
    info = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "run.json").write_text(json.dumps({**info, "judge_all": True}), encoding="utf-8")
    page = made.page(folder)
    assert "Every step judged every document" in page.words
    assert '<svg class="funnel' not in page.html


def test_a_run_stopped_in_the_middle_says_so_on_top(tmp_path: Path, made: Any) -> None:
    """State and error first; then what was done, from the markers; then what was not reached."""
    folder = unfinished_run(tmp_path)
    page = made.page(folder)
    check_harmless(page)
    assert "This run failed" in page.words
    assert "the disk <b>burst</b>" in page.words
    assert "not reached: length" in page.words
    assert "documents 4 = kept so far 3 + dropped 1" in page.words
    assert page.words.index("This run failed") < page.words.index("lines in")


def unfinished_run(root: Path) -> Path:
    from curation.config import parse_config
    from curation.launch import start_run

    source = root / "in.jsonl"
    texts = ["first text", "second text", "first text", "third text"]
    source.write_text(
        "".join(json.dumps({"id": str(i), "text": t}) + "\n" for i, t in enumerate(texts)), encoding="utf-8"
    )
    config = parse_config("name: stopped\nsteps: [exact: {}, length: {}]\n")
    pipeline = start_run(config, [str(source)], root / "root")
    for stage in ("ingest", "dedup"):
        for work in pipeline.passes(stage):
            for item in range(work.n_items):
                pipeline.run_item(work.name, item)
        pipeline.close(stage)
    pipeline.run.update(state="failed", error="OSError: the disk <b>burst</b>", end=None)
    return pipeline.run.folder


def test_a_run_refused_for_its_quarantine_shows_the_lines(tmp_path: Path, made: Any) -> None:
    """Ingest that was refused left inputs.json and the quarantine: both are shown."""
    from curation.config import parse_config
    from curation.launch import drive, start_run

    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "good"}\n{"text": \n{"text": 5}\n', encoding="utf-8")
    pipeline = start_run(parse_config("steps: [exact: {}]\n"), [str(source)], tmp_path / "root")
    with pytest.raises(Exception, match="max_quarantine_share"):
        drive(pipeline, workers=1)
    page = made.page(pipeline.run.folder)
    assert "This run failed" in page.words
    assert "lines in 3 = documents 1 + quarantined 2" in page.words
    assert page.row("wrong_text_type")[1] == "1"


def test_a_run_that_has_only_begun(tmp_path: Path, made: Any) -> None:
    """Nothing but run.json and the config."""
    from curation.config import parse_config
    from curation.launch import start_run

    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "good"}\n', encoding="utf-8")
    pipeline = start_run(parse_config("steps: [exact: {}]\n"), [str(source)], tmp_path / "root")
    page = made.page(pipeline.run.folder)
    assert "This run is not finished" in page.words
    assert "in.jsonl" in page.words


def test_a_changed_threshold_is_shown_and_the_old_one_is_not(tmp_path: Path, made: Any) -> None:
    """Folders of older digests lie beside the new ones; blank lines and files that were not read are named."""
    from curation.config import parse_config
    from curation.launch import drive, finish_run, start_run

    source = tmp_path / "in.jsonl"
    source.write_text(
        "\n\n" + "".join(json.dumps({"text": "word " * n}) + "\n" for n in range(1, 41)), encoding="utf-8"
    )
    kept = []
    for least in (10, 30):
        config = parse_config(f"steps: [length: {{min_units: {least}}}]\n")
        pipeline = start_run(config, [str(source), str(source)], tmp_path / "root", run_id="again")
        drive(pipeline, workers=1)
        funnel = finish_run(pipeline)
        page = made.page(pipeline.run.folder)
        assert f"threshold {least}: " in page.words
        assert page.row("length.too_short")[1] == str(funnel["steps"][0]["dropped"]["length.too_short"])
        kept.append(funnel["kept"])
    assert kept == [31, 11]
    assert len(list((pipeline.run.folder / "steps").iterdir())) == 2
    assert "threshold 10: " not in page.words
    assert "2 blank lines are not counted" in page.words


def test_real_crawl_text_makes_a_page_of_modest_size(made: Any, test_data: Path) -> None:
    """1,132 documents in twenty languages, with raw HTML and mojibake among them: harmless, and under 2 MB."""
    import zstandard

    packed = (test_data / "2_text" / "crawl-02.jsonl.zst").read_bytes()
    lines = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(packed).read().splitlines()
    docs = [made.doc(row["text"], row["url"], id=row["id"]) for row in map(json.loads, lines)]
    page = made.page(made.run(docs, [made.exact(), made.length(30), made.language()], pack=True))
    check_harmless(page)
    assert len(docs) == 1132
    assert "lines in 1,132 = documents 1,132 + quarantined 0" in page.words
    assert len(page.bytes) < 2_000_000

"""The blacklist from the command line: what a person adds, asks, takes back and hands on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from curation.blacklist import Blacklist
from curation.cli import main
from curation.ids import text_id

TEXT = " ".join(f"word{number * number % 97}" for number in range(200))


class Shell:
    """Runs `corpusmill blacklist ...` in a folder, and knows what it printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.err = ""

    def __call__(self, line: str, *more: str, code: int = 0) -> str:
        self._capsys.readouterr()
        action, *rest = shlex.split(line)
        place = [] if "--path" in rest else ["--path", str(self.folder / "list")]
        assert main(["blacklist", action, *place, *rest, *more]) == code
        captured = self._capsys.readouterr()
        self.err = captured.err
        return captured.out


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


def test_a_text_is_added_asked_for_and_taken_back(shell: Shell) -> None:
    """By the text, by a file that holds it, by its text_id; the whole past is told."""
    (shell.folder / "page.txt").write_text(TEXT + "\r\n")
    assert shell("add --text page.txt --reason manual.noise --who me") == "1\n"
    name = text_id(TEXT).hex()
    for word in ("page.txt", TEXT, name, name.upper()):
        told = shell("why", word)
        assert told.startswith(f"holds at version 1: text   {name}  manual.noise")
    assert shell("remove --text page.txt --why mistaken --who you") == "2\n"
    told = shell("why page.txt")
    assert f"does not hold at version 2: text {name}" in told
    assert "version 1: " in told
    assert "taken back" in told
    assert "note mistaken" in told
    assert shell("why page.txt --version 1").startswith("holds at version 1")
    listed = shell("list --verify").splitlines()
    assert [line.split("  by ")[1] for line in listed] == ["me: manual.noise", "you: mistaken"]


def test_a_near_copy_is_named(shell: Shell) -> None:
    """With its estimate; another text is not."""
    shell("add --reason test.noise --text", TEXT)
    assert f"near copy: text {text_id(TEXT).hex()}, Jaccard about 0.9" in shell("why", TEXT + " end")
    assert shell("why", "quite another text of eight words in all") == "nothing on version 1 of the blacklist\n"
    assert shell("why --near 1", TEXT + " end") == "nothing on version 1 of the blacklist\n"


def test_addresses_are_found_in_any_spelling(shell: Shell) -> None:
    """A page by its domain, a domain by itself."""
    shell("add --domain Spam.Example --url https://a.example/x --reason spam --evidence 40 --expires 30d")
    assert "domain spam.example  spam  evidence 40" in shell("why http://www.spam.example/page")
    assert "domain spam.example" in shell("why SPAM.example")
    assert "url    a.example/x" in shell("why http://a.example:80/x#top")
    assert shell("why spam.example --at 2100-01-01").startswith("does not hold at version 1")


def test_two_versions_are_compared(shell: Shell) -> None:
    """Both ways, also with version 0."""
    shell("add --domain a.example --domain b.example --reason x")
    shell("remove --domain a.example --why y")
    shell("add --domain c.example --reason x")
    lines = shell("diff 1 3").splitlines()
    assert [line.split("  ")[0] for line in lines] == ["+ domain c.example", "- domain a.example"]
    assert len(shell("diff 0").splitlines()) == 2
    assert json.loads(shell("diff 2 --json").removeprefix("+ "))["domain"] == "c.example"


@pytest.mark.parametrize("kind", ["jsonl", "arrow", "parquet"])
def test_what_is_exported_can_be_added_elsewhere(shell: Shell, kind: str) -> None:
    """The same holds there; tables keep the signatures."""
    shell("add --reason x --score 1.5 --language eng_Latn --expires 2099-01-01 --text", TEXT)
    shell("add --domain a.example --url https://b.example/c?d=ü --reason y --note z")
    shell("remove --domain a.example --why w")
    shell(f"export -o out.{kind}")
    shell(f"add --path other --from out.{kind} --reason unused")
    here, there = (Blacklist.open(shell.folder / name).entries().to_pylist() for name in ("list", "other"))
    for row in here + there:
        if kind == "jsonl":
            row["signature"] = None
    assert here == there
    assert len(here) == 2
    if kind == "parquet":
        assert pq.read_table(shell.folder / "out.parquet").num_rows == 2


def test_rows_of_a_file_are_added(shell: Shell) -> None:
    """Texts are signed, each row may have its own reason."""
    rows = [
        {"text": TEXT, "reason": "own"},
        {"text_id": "0" * 32},
        {"url": "https://a.example"},
        {"domain": "b.example"},
    ]
    (shell.folder / "bad.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    shell("add --from bad.jsonl --reason common")
    table = Blacklist.open(shell.folder / "list").entries()
    assert table["reason"].to_pylist() == ["own", "common", "common", "common"]
    assert [one is not None for one in table["signature"].to_pylist()] == [True, False, False, False]
    shown = [json.loads(line) for line in shell("show --json --limit 2").splitlines()]
    assert [row["text_id"] for row in shown] == [text_id(TEXT).hex(), "0" * 32]
    assert "4 entries hold" not in shell("show --limit 0")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1 is not JSON"),
        ("[]", "expected an object"),
        ("{}", "exactly one of"),
        ('{"text": "a", "url": "https://a.example"}', "exactly one of"),
        ('{"text": 1}', "exactly one of"),
        ('{"text_id": "00"}', "32 hex digits"),
        ('{"url": "nowhere"}', "expected a URL"),
        ('{"domain": "com"}', "expected a domain"),
        ('{"domain": "a.example", "raeson": "x"}', "did you mean 'reason'"),
        ('{"domain": "a.example", "score": "high"}', "wrong type"),
        ('{"domain": "a.example", "evidence": 99999999999}', "wrong type"),
        ('{"domain": "a.example", "expires": "soon"}', "line 1: expected a date"),
        ('{"text": "\\ud800"}', "not Unicode"),
    ],
)
def test_a_row_that_cannot_be_is_told_with_its_line(shell: Shell, line: str, message: str) -> None:
    """And nothing is added."""
    (shell.folder / "bad.jsonl").write_text(line + "\n")
    code = 2 if "date" in message else 1
    shell("add --from bad.jsonl --reason x", code=code)
    assert message in shell.err
    assert not (shell.folder / "list").exists()


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("add --reason x", 2, "name what to add"),
        ("add --domain a.example --from x.jsonl --reason x", 2, "name what to add"),
        ("add --domain a.example", 2, "give --reason"),
        ("add --from x.csv --reason x", 2, "ends in .jsonl"),
        ("add --from none.jsonl --reason x", 1, "cannot be read"),
        ("add --domain a.example --reason x --expires never", 2, "--expires: expected a date"),
        ("remove --why x", 2, "name what to take back"),
        ("remove --domain a.example --why x", 2, "no blacklist at"),
        ("show", 2, "no blacklist at"),
        ("export -o out.csv", 2, "ends in .jsonl"),
        ("show --root r --path p", 2, "not both"),
    ],
)
def test_a_wrong_use_is_told(shell: Shell, line: str, code: int, message: str) -> None:
    """In one message, and no folder is made."""
    shell(line, code=code)
    assert message in shell.err
    assert not (shell.folder / "list").exists()


def test_what_does_not_hold_cannot_be_taken_back(shell: Shell) -> None:
    """A typing mistake must not look like a removal; nor can a domain be taken back by one above it."""
    shell("add --domain a.example --reason x")
    for domain in ("www.a.example", "b.example"):
        shell(f"remove --domain {domain} --why x", code=1)
        assert "nothing to take back" in shell.err
    assert Blacklist.open(shell.folder / "list").version == 1


def test_damage_is_told_for_all_files(shell: Shell) -> None:
    """By `list --verify`, with exit code 1."""
    for number in range(3):
        shell(f"add --domain a{number}.example --reason x")
    for number in (1, 3):
        path = shell.folder / "list" / f"{number:06d}.arrow"
        path.write_bytes(path.read_bytes()[:-20])
    shell("list --verify", code=1)
    assert "000001.arrow is damaged" in shell.err
    assert "000003.arrow is damaged" in shell.err
    shell("list")


def test_a_snapshot_is_written(shell: Shell) -> None:
    """Its path is printed, and the list is the same."""
    shell("add --domain a.example --reason x")
    before = shell("show")
    assert shell("compact").strip().endswith("index-000001.arrow")
    assert shell("show") == before


def test_the_default_is_the_folder_of_the_root(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """As runs are."""
    monkeypatch.setenv("CORPUSMILL_ROOT", "here")
    assert main(["blacklist", "add", "--domain", "a.example", "--reason", "x"]) == 0
    assert main(["blacklist", "show", "--root", "here"]) == 0
    assert Blacklist.open(shell.folder / "here" / "blacklist").version == 1


def test_nothing_of_the_list_commands_the_terminal(shell: Shell) -> None:
    """Notes and reasons may come from anywhere."""
    shell("add --domain a.example --reason x --note", "\x1b]0;title\x07\nforged", "--who", "\x1b[31m")
    for line in ("show", "why a.example", "list", "diff 0", "show --json"):
        told = shell(line)
        assert "\x1b" not in told
        assert "\nforged" not in told


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"when": "\x1b]0;owned\x07"}, 1),
        ({"counts": {"\x1b[31mtext": 1}}, 0),
        ({"counts": {"text": "\x1b[31m1"}}, 1),
        ({"facts": {"who": "\ud800\x1b[31m", "why": ["\x1b"]}}, 0),
        ({"version": "\x1b[31m"}, 1),
        ({"format": "\x1b[31m"}, 1),
    ],
    ids=str,
)
def test_a_foreign_json_does_not_command_the_terminal(shell: Shell, change: dict[str, object], code: int) -> None:
    """A list may come from anywhere; what is of the wrong type is told as damage."""
    shell("add --domain a.example --reason x")
    path = shell.folder / "list" / "000001.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    told = shell("list", code=code) + shell.err
    assert "\x1b" not in told
    assert "\x07" not in told
    assert "Traceback" not in told


def test_bytes_that_are_no_text_block_nobody(shell: Shell) -> None:
    """As a shell with another encoding gives them: refused with a message, and the next one adds."""
    for line in ("--why", "--who"):
        shell("add --domain a.example --reason x", line, "caf\udce9", code=2)
        assert "facts must be Unicode" in shell.err
    for name in ("--note", "--reason", "--source"):
        shell("add --domain a.example --reason x", name, "caf\udce9", code=1)
    assert shell("add --domain a.example --reason x") == "1\n"
    shell("list --verify")


def test_compact_says_that_it_makes_the_near_index(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    """It takes 700 bytes a text, so nobody should find it by surprise."""
    with pytest.raises(SystemExit):
        main(["blacklist", "compact", "--help"])
    assert "near copies" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("word", ["page.txt", "./page", "crawl/page", "~/page.TXT"])
def test_a_mistyped_file_is_not_taken_for_a_text(shell: Shell, word: str) -> None:
    """What looks like a file and is none is refused, and nothing is added: its name would be blacklisted, and the page stay."""
    shell(f"add --text {word} --reason manual.noise", code=2)
    assert "looks like a file's name, and there is no such file" in shell.err
    assert not (shell.folder / "list").exists()


@pytest.mark.parametrize("word", ["出售/出租房屋.", "one two/three.txt", "https://example.org/a", "end."])
def test_a_short_text_is_a_text(shell: Shell, word: str) -> None:
    """A slash or a full stop alone makes no file's name: text in a script without blanks has them too."""
    assert shell("add --reason manual.noise --text", word) == "1\n"


def test_a_wrong_value_is_named_with_its_entry(shell: Shell) -> None:
    """Of many lines the one that will not do."""
    lines = [{"text": f"text number {n}", "score": 0.5 if n != 3 else "high"} for n in range(5)]
    (shell.folder / "new.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    shell("add --from new.jsonl --reason manual.noise", code=1)
    assert "score of entry 4, 'high'" in shell.err

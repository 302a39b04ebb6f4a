"""Files of terms: what they hold is read, what is wrong in them is named with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.errors import ConfigError
from curation.filters.safety_terms.tables import SHIPPED
from curation.filters.safety_terms.terms import ContextWord, read_terms
from tests.safety_terms_list import write_list


def test_a_file(tmp_path: Path) -> None:
    """Header, rows, spellings, groups and words of context; blank lines, a BOM, carriage returns and comments are skipped."""
    rows = (
        "\ufeff# language: zh\r\n# licence: CC0-1.0\r\n\r\n   \nspam\t1\tsub\t上车 | 上車\t@talk, 群\t公交\r"
        "# a remark: not a key\n@talk\t0\tsub\t加 | 私聊\nfraud\t8\tregex\tvx | 加 =~ (vx|加)[a-z]{3}\n\ufeff\n"
    )
    found = read_terms(write_list(tmp_path, rows))
    first, second = found.terms
    assert dict(found.header) == {"language": "zh", "licence": "CC0-1.0"}
    assert (first.category, first.weight, first.mode, first.spellings) == ("spam", 1, "sub", ("上车", "上車"))
    assert first.near == (ContextWord("加", "sub"), ContextWord("私聊", "sub"), ContextWord("群", "word"))
    assert first.unless == (ContextWord("公交", "word"),)
    assert first.rule == "list.tsv:5"
    assert (second.spellings, second.regex, second.near) == (("vx", "加"), "(vx|加)[a-z]{3}", ())


def test_shared_groups(tmp_path: Path) -> None:
    """A list may name the groups of groups.tsv; one of the same name of its own counts instead."""
    shared = read_terms(write_list(tmp_path, "spam\t1\tsub\t上车\t@contact\n")).terms[0].near
    assert len(shared) > 20
    own = read_terms(write_list(tmp_path, "@contact\t0\tsub\t加\nspam\t1\tsub\t上车\t@contact\n")).terms[0].near
    assert own == (ContextWord("加", "sub"),)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("gamling\t4\tsub\t赌博", "a category of"),
        ("gambling\t0\tsub\t赌博", "a weight from 1 to 8"),
        ("gambling\t9\tsub\t赌博", "a weight from 1 to 8"),
        ("gambling\t2.5\tsub\t赌博", "a weight from 1 to 8"),
        ("gambling\t4\tfuzzy\t赌博", "a mode of"),
        ("gambling\t4\tsub", "tabs between"),
        ("gambling 4 sub 赌博", "tabs between"),
        ("gambling\t4\tsub\t赌博\t\t\t\t", "tabs between"),
        ("gambling\t4\tsub\t", "a letter or digit"),
        ("gambling\t4\tsub\t赌博 | ", "a letter or digit"),
        ("gambling\t4\tsub\t---", "a letter or digit"),
        ("gambling\t4\tsub\t赌", "two characters"),
        ("gambling\t4\tsub\tx\t加", "two characters"),
        ("gambling\t4\tsub\t" + "赌" * 41, "at most 40"),
        ("gambling\t4\tsub\t赌博\t@none", "a group that this file or groups.tsv has"),
        ("gambling\t4\tsub\t赌博\t@talc", "did you mean '@talk'"),
        ("gambling\t4\tsub\t赌博\t+,加", "a letter or digit"),
        ("gambling\t4\tregex\t赌博", "literals, =~ and an expression"),
        ("gambling\t4\tregex\t赌 =~ (赌", "RE2 takes"),
        ("gambling\t4\tregex\t赌 =~ (?=赌)", "RE2 takes"),
        ("gambling\t4\tregex\t赌 =~ 赌*", "no empty text"),
        ("@talk\t0\tsub\t群", "once in a file"),
        ("@more\t1\tsub\t群", "@name, 0, word or sub"),
        ("@more\t0\tregex\t群", "@name, 0, word or sub"),
        ("spam\t1\tsub\t上车\t@talk", "each term once"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, row: str, expected: str) -> None:
    """File, line, what was expected and what was found."""
    path = write_list(tmp_path, f"# a list\n@talk\t0\tsub\t加\nspam\t1\tsub\t上车\t@talk\n{row}\n")
    with pytest.raises(ConfigError) as raised:
        read_terms(path)
    message = str(raised.value)
    assert message.startswith(f"{path}:4: expected ")
    assert expected in message.replace(",  =~", ", =~").replace("  ", " ")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder and another encoding are named."""
    (tmp_path / "latin.tsv").write_bytes(b"gambling\t4\tsub\tcaf\xe9\n")
    for name, expected in (("none.tsv", "found none"), ("", "found: "), ("latin.tsv", "expected UTF-8")):
        with pytest.raises(ConfigError, match=expected):
            read_terms(tmp_path / name)


def test_the_shipped_lists() -> None:
    """Each can be read and says its language, licence, source and version; names differ from file to file."""
    paths = sorted(SHIPPED.glob("*.tsv"))
    assert paths
    for path in paths:
        found = read_terms(path)
        assert {"language", "licence", "source", "version"} <= set(found.header), path.name
        assert found.terms

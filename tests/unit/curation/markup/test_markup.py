"""What is markup and what is not, place by place: each row is one decision of the rules.

In the second column the text is written again, with a letter below each character: `.` text, `C` code, `L` link,
`b` bare tag, `P` tag of a page, `S` script, `e` entity, `c` style sheet, `t` template mark.
"""

from __future__ import annotations

import pytest

from curation.markup import Kind, kinds_of

LETTERS = ".CLbPSect"


def drawn(text: str) -> str:
    """One letter a character."""
    kinds = kinds_of(text)
    places = [len(text[:i].encode()) for i in range(len(text))]
    return "".join(LETTERS[kinds[place]] for place in places)


TAGS = [
    ("a <b>x</b>", "..bbb.bbbb"),
    ("<B >x</B >", "bbbb.bbbbb"),
    ("<br/>", "bbbbb"),
    ('<p id="a">', "PPPPPPPPPP"),
    ("<p id=a>", "PPPPPPPP"),
    ("<p hidden>", "bbbbbbbbbb"),
    ('<p data-x="1">', "PPPPPPPPPPPPPP"),
    ('<p aria-label="">', "PPPPPPPPPPPPPPPPP"),
    ('<p onclick="f()">', "PPPPPPPPPPPPPPPPP"),
    ("<a title='>'>", "PPPPPPPPPPPPP"),
    ('<a title="<b>">', "PPPPPPPPPPPPPPP"),
    ('<p v-if="a" id="b">', "CCCCCCCCCCCCCCCCCCC"),
    ("<p @click=f>", "CCCCCCCCCCCC"),
    ("<p :id=x>", "CCCCCCCCC"),
    ("<P id={x}>", "CCCCCCCCCC"),
    ("<li *ngFor=x>", "CCCCCCCCCCCCC"),
    ("<foo>", "....."),
    ("</foo>", "......"),
    ("</foo-bar>", "bbbbbbbbbb"),
    ("<foo-bar>", "........."),
    ('<foo class="x">', "PPPPPPPPPPPPPPP"),
    ("<stdio.h>", "........."),
    ("<String, List>", ".............."),
    ("<a@b.cd>", "........"),
    ("a < b > c", "........."),
    ("<3 <1>", "......"),
    ("<p", ".."),
    ("<p <b>", "...bbb"),
    ("</ b>", "....."),
    ("<!-- a -->b", "PPPPPPPPPP."),
    ("<!-- a", "......"),
    ("<!DOCTYPE html>", "PPPPPPPPPPPPPPP"),
    ("<![endif]", "........."),
    ("<![if IE]>x", "PPPPPPPPPP."),
]

ENTITIES = [
    ("a&nbsp;b", ".eeeeee."),
    ("&amp;&lt;", "eeeeeeeee"),
    ("&#39;&#x1F600;", "eeeeeeeeeeeeee"),
    ("&#12345678;", "..........."),
    ("&nbsp", "....."),
    ("&foo;", "....."),
    ("a && b;", "......."),
    ("?a=1&copy=2", "..........."),
    ("&Eacute;t&eacute;", "eeeeeeee.eeeeeeee"),
]

CODE = [
    ("a `<b>` c", "..CCCCC.."),
    ("``a`b``", "CCCCCCC"),
    ("a ` b", "....."),
    ("`a\nb`", "....."),
    ("```\n<b>\n```\nx", "CCCCCCCCCCC.."),
    ("~~~ html\n<b>\n~~~", "C" * 16),
    ("> ```\n> <b>\n> ```", "C" * 17),
    ("````\n```\n````", "C" * 13),
    ("```\n<b>", "....bbb"),
    ("```a``` b", "CCCCCCC.."),
]

OTHERS = [
    ("{{ a }} {% b %}", "ttttttt.ttttttt"),
    ("{{{ a }}}", ".ttttttt."),
    ("{{ a\n}}", "......."),
    ("{ a }", "....."),
    ("<?php a ?>b", "tttttttttt."),
    ("<?php a\n?>", ".........."),
    ("<%= a %>", "tttttttt"),
    ('[caption id="1"]x[/caption]', "tttttttttttttttt.tttttttttt"),
    ("[1] [note]", ".........."),
    ("[url](a)", "........"),
    ("see https://a.b/c?d=e, f", "....LLLLLLLLLLLLLLLLLL.."),
    ("[a](https://a.b) c", "..LLLLLLLLLLLLLL.."),
    ("(http://a.b)", ".LLLLLLLLLLL"),
    ("color: red;", "ccccccccccc"),
    ("a{margin:0}", "ccccccccccc"),
    ("colour: red;", "............"),
    ("color: red", ".........."),
    ("-webkit-box-flex:1;", "ccccccccccccccccccc"),
    ("h1 { color: red; }", "cccc.ccccccccccc.c"),
]

SCRIPTS = [
    ("<script>f(1);</script>.", "S" * 22 + "."),
    ("<SCRIPT>f(1);</SCRIPT>", "S" * 22),
    ('<script src="a"></script>', "S" * 25),
    ('<script src="a">prose</script>', "S" * 30),
    ("<script>plain words here</script>", "bbbbbbbb" + "." * 16 + "b" * 9),
    ("<script>f();", "bbbbbbbb...."),
    ('<script type="x">{"a"', "S" * 21),
    ("<script setup>\nimport a\n</script>", "C" * 33),
    ("<script>\nexport default {}\n</script>", "C" * 36),
    ("<style>a{b:c}</style>", "c" * 21),
    ("<style scoped>.</style>", "bbbbbbbbbbbbbb.bbbbbbbb"),
    ("var a = window.b;", "S" * 17),
    ("var a = bees;", "............."),
    ('{"@context": "x"}', "S" * 17),
    ("The window. The document.", "." * 25),
]


@pytest.mark.parametrize(("text", "expected"), [*TAGS, *ENTITIES, *CODE, *OTHERS, *SCRIPTS])
def test_rules(text: str, expected: str) -> None:
    """Each place is what the rules say it is."""
    assert drawn(text).replace("\n", "|") == expected, text


def test_three_lines_of_a_program_are_a_listing() -> None:
    """Program lines that never call the page are code; one call in ten lines makes them a page's script."""
    listing = "int main() {\n  return f(1);\n}\n"

    assert set(drawn(listing.rstrip())) == {"C"}
    assert set(drawn((listing + "document.write(f);\n").rstrip())) == {"S"}
    assert "S" not in drawn("return f(1);\n" * 30 + "document.write(f);\n")
    assert set(drawn("| a = 1; | {b} |\n| c = 2; | d() |\n| e | f(); |")) == {"."}
    assert set(drawn("November (113)\nOctober (217)\nMay (192)")) == {"."}


def test_prose_ends_a_listing() -> None:
    """A line of prose between program lines is prose, and what stands on both sides is judged apart."""
    text = "a = f(1);\nb = f(2);\nc = f(3);\nThen call it.\nwindow.a = b;\n"

    found = drawn(text)

    assert found[:30].strip("C") == ""
    assert found[30:43] == "." * 13
    assert "S" in found[44:]


@pytest.mark.parametrize(
    "line",
    ["a=[1,2,3];b={c:4,d:5};" * 20, '{"a":"b","c":[1,2]},' * 20, "x" * 400, "M12.1 3-4.5l2.7 8c.8.2 1.6.4 2.5.4" * 12],
)
def test_machine_made_lines(line: str) -> None:
    """Long lines that no person wrote are script: minified code, data, drawings."""
    assert drawn(line).count("S") >= 0.6 * len(line)


@pytest.mark.parametrize(
    "line",
    [
        "word and word, " * 40,
        "漢字と仮名の長い行。" * 40,
        "ไทย" * 200,
        "12.5 13.25 14.0 99.75 " * 30,
        'He said: "No, it\'s (quite) late!" ' * 20,
        "https://example.org/" + "path/" * 80,
        "| " + "_ga_3J7PP9VX3Q, ^_gat_UA-106855065_21$, " * 12 + "|",
        "Anna Bruni <anna@example.org> (2004-2008), " * 12,
    ],
)
def test_long_lines_of_people(line: str) -> None:
    """Long lines of prose, numbers, quotations, links and names are not script."""
    assert "S" not in drawn(line)


def test_kinds_are_the_letters_of_this_test() -> None:
    """A new kind needs its letter here."""
    assert len(LETTERS) == len(Kind)

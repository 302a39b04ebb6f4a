"""Documents of the shipped impact sample as sites make them: digests, framed pages, threads, tables, tag soup.

Every maker yields documents without end, each drawn with the generator it is given; the caller takes as many as it wants.
A label is given where any reader would give it: `good` if at least 85 % of the characters are prose, `junk` if at most 40 %
are; what lies between is nobody's mistake and has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tools.impact_pool import Made, Pool, sentences

__all__ = ["JUNK", "briefs", "digests", "framed", "label", "residues", "tables", "threads"]

GOOD, JUNK = 0.85, 0.4
CLEAN = 0.95
"""Least share of prose in a good document with tag soup, and of posts that say something in a good thread."""
WHOLE = 3
"""Sentences that say something by themselves."""


def label(prose: int, whole: int, good: float = GOOD) -> str | None:
    """Of a document of so many characters, of which so many are prose; `good`: the least share of it in a good one."""
    share = prose / whole
    return "good" if share >= good else "junk" if share <= JUNK else None


# -- prose ------------------------------------------------------------------------------------------


def briefs(pool: Pool, rng: Random) -> Iterator[Made]:
    """The first sentences of an article, as news tickers and teasers have them; a sentence or two have no label."""
    while True:
        lang = pool.any_language(rng)
        found = sentences(pool.article(lang, rng))
        count = rng.randint(1, max(1, len(found) // 2))
        yield Made("".join(found[:count]).strip(), lang, "brief", "good" if count >= WHOLE else None)


def digests(pool: Pool, rng: Random, lang: str, smallest: int, largest: int) -> Iterator[Made]:
    """Whole articles of a language under headings, as magazines and collections have them.

    Args:
        smallest, largest: number of articles; at most half of those that there are, or two digests may be near copies.
    """
    rows = [row.text for row in pool.articles[lang]]
    most = len(rows) // 2
    made: list[set[int]] = []
    while True:
        count = min(rng.randint(smallest, largest), most)
        chosen = rng.sample(range(len(rows)), count)
        if any(len(earlier & {*chosen}) > 0.7 * count for earlier in made if len(earlier) >= count):
            continue
        made.append(set(chosen))
        marks = rng.choice((("", "\n"), ("# ", "\n\n"), ("\n", "\n")))
        parts = [_titled(rows[number], marks) for number in chosen]
        yield Made("\n\n".join(parts).strip(), lang, "digest", "good")


def _titled(text: str, marks: tuple[str, str]) -> str:
    """A text under a heading; one that begins with a line of its own has a heading already."""
    title = heading(text)
    return text if text.startswith(f"{title}\n") else f"{marks[0]}{title}{marks[1]}{text}"


def heading(text: str) -> str:
    """What stands before the first comma, end of sentence or line of a text, at most 60 characters of it, words whole."""
    first = sentences(text)[0].strip().partition("\n")[0]
    for mark in "，、,：:。．.؛،।":
        first = first.partition(mark)[0]
    return first if len(first) <= 60 else (first[:60].rpartition(" ")[0] or first[:60])


# -- pages with furniture ---------------------------------------------------------------------------


def framed(pool: Pool, rng: Random) -> Iterator[Made]:
    """An article in menus, bylines, lists of other pages, footers; from a line of it to nearly nothing else."""
    while True:
        lang = pool.any_language(rng, framed=True)
        prose = "\n\n".join(pool.passage(lang, rng) for _ in range(rng.choice((1, 1, 2))))
        prose = f"{heading(prose)}\n{prose}"
        wanted = len(prose) * rng.choice((0.02, 0.04, 0.07, 0.1, 0.15, 0.3, 0.6, 1.2, 4))
        before, after = _furniture(pool, lang, rng, int(wanted))
        text = "\n".join([*before, prose, *after])
        yield Made(text, lang, "framed", label(len(prose), len(text)))


def _furniture(pool: Pool, lang: str, rng: Random, wanted: int) -> tuple[list[str], list[str]]:
    """Lines before and after the article, together about `wanted` characters."""
    frame = pool.frames[lang]
    joint = rng.choice(("  ", " | ", "\n", " / "))
    menu = joint.join(frame["menu"])
    teasers = [heading(pool.article(lang, rng)) for _ in range(4)]
    bricks = [
        rng.choice(frame["byline"]),
        frame["crumbs"],
        frame["share"],
        joint.join(rng.sample(frame["related"], 4)),
        " | ".join(frame["footer"]),
        menu,
        frame["cookie"],
        "\n".join(teasers),
        *(f"{name} ({rng.randint(1, 99)})" for name in frame["menu"]),
        *frame["related"],
    ]
    before: list[str] = []
    after: list[str] = []
    size = 0
    while size < wanted:
        brick = (
            bricks.pop(0)
            if bricks
            else rng.choice((menu, "\n".join(frame["footer"]), heading(pool.article(lang, rng))))
        )
        (before if brick in (menu, frame["crumbs"]) or rng.random() < 0.4 else after).append(brick)
        size += len(brick)
    return before, after


def residues(pool: Pool, rng: Random) -> Iterator[Made]:
    """An article with what a poor extraction leaves in it: tags, scripts, styles, entities, marks of templates."""
    while True:
        lang = pool.any_language(rng, framed=True)
        prose = pool.passage(lang, rng)
        kind = rng.choice(("tags", "script", "css", "entities", "template"))
        paragraphs = prose.split("\n\n")
        wanted = len(prose) * rng.choice((0.01, 0.03, 0.06, 0.1, 0.15, 0.3, 0.8, 3))
        pieces: list[str] = []
        while sum(map(len, pieces)) < wanted:
            pieces.append(_soup(kind, pool.frames[lang]["menu"], rng))
        for piece in pieces:
            paragraphs.insert(rng.randint(0, len(paragraphs)), piece)
        text = "\n".join(paragraphs)
        yield Made(text, lang, f"residue_{kind}", label(len(prose), len(text), CLEAN))


def _soup(kind: str, words: list[str], rng: Random) -> str:
    number, word = rng.randint(1, 9999), rng.choice(words)
    name = rng.choice(("share", "nav", "box", "item", "side", "ads"))
    made = {
        "tags": (
            f'<div class="{name}-{number}"><a href="/{name}/{number}.html" target="_blank">{word}</a></div>',
            f'<li class="{name}"><a href="javascript:void(0)" onclick="go({number})">{word}</a></li>',
            f'<td width="{number % 300}" valign="top" bgcolor="#EEEEEE"><img src="/img/{number}.gif" alt="" /></td>',
        ),
        "script": (
            f'<script type="text/javascript">var {name}_{number} = document.getElementById("{name}{number}");</script>',
            f"window.dataLayer=window.dataLayer||[];dataLayer.push({{'event':'{name}','id':{number}}});",
            f'<script>(function(d){{var s=d.createElement("script");s.src="/{name}.js";d.body.appendChild(s)}})(document)</script>',
        ),
        "css": (
            f".{name}-{number}{{margin:0 0 {number % 40}px;padding:{number % 9}px;font-size:14px;color:#{number:06x}}}",
            f"#{name}{number} li a:hover{{text-decoration:underline;background:url(/img/{number}.png) no-repeat}}",
            f"@media (max-width:{number % 900 + 300}px){{.{name}{{display:none}}}}",
        ),
        "entities": (
            "&nbsp;&nbsp;&nbsp;&nbsp;",
            f"&nbsp;|&nbsp;&ldquo;{word}&rdquo;&nbsp;&raquo;",
            "&amp;nbsp;&amp;mdash;&amp;hellip;&#160;",
        ),
        "template": (
            f"{{{{ {name}.title }}}} {{{{ {name}.date | date:'yyyy-MM-dd' }}}}",
            f"{{% if user.{name}{number} %}}{word}{{% endif %}}",
            f"${{{name}.summary{number}}} <%= {name}_{number} %> [{name} id=\"{number}\"][/{name}]",
        ),
    }  # fmt: skip
    return rng.choice(made[kind])


# -- threads and tables -----------------------------------------------------------------------------


def threads(pool: Pool, rng: Random) -> Iterator[Made]:
    """A post with a whole text and replies of forum filler, from none to many; some threads are filler alone."""
    while True:
        lang = rng.choice(sorted(pool.fillers))
        start = pool.passage(lang, rng) if rng.random() < 0.75 else ""
        fillers = rng.choices(
            pool.fillers[lang], k=rng.choice((0, 0, 1, 2, 4, 8, 14, 22)) if start else rng.randint(6, 24)
        )
        style = rng.choice(("{reply}", "{n}# {reply}", "user{n}: {reply}", "> {reply}", "{n}\n{reply}"))
        replies = [style.format(n=n + 2, reply=reply) for n, reply in enumerate(fillers)]
        text = "\n".join([*([start] if start else []), *replies])
        yield Made(text, lang, "thread", label(len(start), len(text), CLEAN))


def tables(pool: Pool, rng: Random) -> Iterator[Made]:
    """Prices, timetables, results and logs: numbers in rows, now and then with a sentence or two before them."""
    while True:
        lang = pool.any_language(rng, framed=True)
        intro = "".join(sentences(pool.article(lang, rng))[: rng.choice((0, 0, 0, 1, 2))]).strip()
        words = pool.frames[lang]["menu"]
        rows = [_table_row(rng.choice(words), rng) for _ in range(rng.randint(5, 40))]
        text = "\n".join([*([intro] if intro else []), *rows])
        yield Made(text, lang, "table", label(len(intro), len(text)))


def _table_row(word: str, rng: Random) -> str:
    numbers = [rng.randint(0, 99_999) / rng.choice((1, 10, 100)) for _ in range(4)]
    day, hour = (
        f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",
    )
    return rng.choice(
        (
            f"{word} {numbers[0]:.2f} {numbers[1]:.2f} {numbers[2] - numbers[3]:+.2f}",
            f"{day} {hour} {numbers[0]:g} {numbers[1]:g}",
            "\t".join([word, *(f"{number:g}" for number in numbers)]),
            " ".join(f"{rng.randint(5, 23):02}{rng.choice((5, 15, 25, 45)):02}" for _ in range(6)),
        )
    )

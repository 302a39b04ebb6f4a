"""Names that tell markup from prose: tags, attributes, entities, style properties, page scripts, shortcodes.

Each table is uint64[n], sorted: a name's first seven bytes and its length as one big-endian number, so
that a kernel looks a name up by one binary search.
Sources: the HTML living standard's element and attribute indices with the obsolete ones, the named
references of HTML 4.01 that browsers and editors write most, the CSS property index (first part of each
hyphenated name), WordPress core and its common page builders for shortcodes, and for page scripts what
the leaked scripts among the 620 HTML rows of the labelled crawl text call.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["ATTRIBUTES", "ENTITIES", "PAGE_SCRIPT", "SHORTCODES", "STYLE", "TAGS", "Table", "packed"]

Table = npt.NDArray[np.uint64]


def packed(name: str) -> int:
    """A name as the tables hold it."""
    return int.from_bytes(name.encode()[:7].rjust(7, b"\0"), "big") << 8 | min(len(name), 255)


def _table(names: str) -> Table:
    """uint64[n] of blank-separated names."""
    return np.array(sorted({packed(name) for name in names.split()}), np.uint64)


TAGS = _table(
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo big blockquote body br button "
    "canvas caption center circle cite code col colgroup data datalist dd defs del details dfn dialog dir div dl dt "
    "ellipse em embed fieldset figcaption figure font footer form frame frameset g h1 h2 h3 h4 h5 h6 head header "
    "hgroup hr html i iframe img input ins kbd label legend li line link main map mark marquee menu meta meter nav "
    "nobr noframes noscript object ol optgroup option output p param path picture polygon polyline pre progress q "
    "rb rect rp rt rtc ruby s samp script section select small source span strike strong style sub summary sup svg "
    "symbol table tbody td template textarea tfoot th thead time title tr track tt u ul use var video wbr o:p st1"
)
"""Elements of HTML and SVG, lower case."""

ATTRIBUTES = _table(
    "action align alt async autoplay bgcolor border cellpadding cellspacing charset class color colspan content "
    "coords datetime defer dir enctype face fill for frameborder height href hreflang http-equiv id integrity "
    "itemid itemprop itemscope itemtype loading media method name nowrap placeholder poster property rel role "
    "rowspan sandbox scrolling size sizes src srcset stroke style tabindex target title type usemap valign value "
    "viewbox width xmlns xml:lang"
)
"""Attributes that a server writes for a browser, lower case. `data-`, `aria-` and `on...` are known by their form."""

ENTITIES = _table(
    "nbsp amp lt gt quot apos copy reg trade raquo laquo rsaquo lsaquo hellip mdash ndash rsquo lsquo sbquo ldquo "
    "rdquo bdquo bull middot times euro pound yen cent sect para deg plusmn frac12 frac14 frac34 sup1 sup2 sup3 ordm "
    "ordf iexcl iquest shy zwnj zwj ensp emsp thinsp larr rarr uarr darr infin ne le ge minus divide micro szlig eth "
    "thorn oslash aring aelig oelig ccedil ntilde aacute eacute iacute oacute uacute yacute agrave egrave igrave "
    "ograve ugrave acirc ecirc icirc ocirc ucirc auml euml iuml ouml uuml yuml atilde otilde scaron Aacute Eacute "
    "Iacute Oacute Uacute Agrave Egrave Acirc Ecirc Auml Ouml Uuml Oslash Aring AElig Ccedil Ntilde Atilde Otilde "
    "Scaron alpha beta gamma delta pi sigma omega lambda check hearts star curren uml acute cedil not macr brvbar"
)
"""Named character references, as written between `&` and `;`."""

STYLE = _table(
    "align animation appearance backface background behavior border bottom box clear clip color column columns "
    "content counter cursor direction display fill filter flex float font gap grid height hyphens inset isolation "
    "justify left letter line list margin mask max min mix object opacity order outline overflow padding page "
    "perspective pointer position quotes resize right scroll speak src stroke tab table text top touch transform "
    "transition unicode user vertical visibility white width will word z zoom"
)
"""First part of CSS property names, without vendor prefix."""

PAGE_SCRIPT = _table(
    "document window jQuery googletag getElementById createElement addEventListener _gaq _gat _paq fbq gtag ga "
    "dataLayer pbjs CDATA adsbygoogle localStorage navigator _wpemojiSettings XMLHttpRequest DOMContentLoaded "
    "prototype innerHTML parentNode appendChild setTimeout encodeURIComponent @type @context"
)
"""What inline scripts of pages call and programs in general do not: the browser's objects, trackers, JSON-LD."""

SHORTCODES = _table(
    "caption gallery embed audio video playlist wp_caption contact-form contact-form-7 vc_row vc_column vc_column_text "
    "vc_custom_heading et_pb_section et_pb_row et_pb_column et_pb_text et_pb_code et_pb_blurb fusion_builder su_note su_button "
    "su_row su_column fusion_text wpforms ninja_form gravityform url img quote size color list spoiler youtube attach"
)
"""Shortcodes of WordPress and its page builders, and BBCode: `[caption ...]`, `[/url]`."""

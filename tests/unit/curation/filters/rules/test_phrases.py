"""Phrases of filler, furniture, sales talk and placeholders: what counts, what does not, in which languages."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from curation.errors import ConfigError
from curation.filters.rules import phrases
from curation.filters.rules.automaton import ANYWHERE, LINE, NUMBER, Phrase, automaton_of
from curation.filters.rules.parts import hashes_of, parts_of

PROSE = (
    "The committee met again on the second day to hear what the engineers had found under the old bridge, "
    "and nobody left before the last of them had answered every question that the mayor could think of."
)


def measured(*texts: str) -> dict[str, list[float]]:
    found = phrases.measure(parts_of(pa.array(texts, pa.large_string())))
    return {name: values.tolist() for name, values in found.items()}


def one(column: str, text: str) -> float:
    return measured(text)[column][0]


@pytest.mark.parametrize(
    "text",
    [
        "First!\nThanks for sharing!\n+1\nbump\nI totally agree :)",
        "沙发！\n楼主好人一生平安~\n顶顶顶[表情]\n666",
        "沙發\n感謝樓主分享\n推推推",
        "乙です\nありがとうございます！\n参考になりました",
        "1등\n좋은 글 감사합니다~\n잘 보고 갑니다^^\nㅋㅋㅋㅋㅋ",
        "Спасибо за помощь!\nАп\nПолностью согласен\nахахаха",
        "Danke für die Info\nDitto\nhochschieb",
        "Merci pour le partage !\nTout à fait d’accord\nje plussoie",
        "¡Gracias por el aporte!\nMuy buen post\njajajajaja",
        "Muito obrigado pela ajuda\nValeu!\nkkkkkkk",
        "Grazie mille!\nQuoto\nComplimenti",
        "Bedankt voor het delen\nHelemaal mee eens\nkickje",
        "Dzięki za info\nZgadzam się\npodbijam temat",
        "Teşekkürler\nEline sağlık\nİlginç",
        "cảm ơn bạn đã chia sẻ\nhóng\nbài viết rất hay",
        "makasih infonya gan\nsundul gan\nwkwkwkwk",
        "بارك الله فيك\nشكرا على الموضوع\nجزاك الله خيرا",
        "ขอบคุณครับ\nดันกระทู้\n5555",
    ],
)
def test_filler_of_many_languages_is_filler_from_first_to_last_line(text: str) -> None:
    """Posts that say nothing are filler, whatever their case, punctuation and laughter."""
    assert one("filler_lines", text) == 1


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("用户829 发表于 2013-01-19\n每日一顶。\n引用 2 楼：楼上正解\n7楼 666...", 1),
        ("Posted by admin on 3 March 2012\nThanks for sharing\n#4\nbump", 1),
        ("Thanks for sharing Mike", 1),
        (PROSE + "\nThanks for sharing", 0.5 / 1.0),
        ("January 2013\n" + PROSE, 0),
        ("2012\n2013\n2014", 0),
        ("yes\nno\nyes", 0),
        ("12 DM\n15 DM", 0),
        ("Chapter III\nxxx\nXXX", 0),
        ("all\ntoo\nbee", 0),
        ("banana bread", 0),
        ("!!!\n\n???", 0),
        ("", 0),
    ],
)
def test_heads_numbers_and_text_beside_filler(text: str, share: float) -> None:
    """Heads go with the line after them, numbers and answers are no filler, long lines weigh more."""
    found = one("filler_lines", text)
    assert found == pytest.approx(1 / 3 if share == 0.5 else share)


def test_one_reply_does_not_make_a_thread_filler() -> None:
    """Ten thanks below a question of three paragraphs are less than half of its lines."""
    thread = "\n".join([*[PROSE * 3] * 3, *["Thanks for sharing!"] * 10])
    assert 0.3 < one("filler_lines", thread) < 0.5


@pytest.mark.parametrize(
    "text",
    [
        "Home\nAbout us\nContact us\nPrivacy policy\n© 2019 All rights reserved\nShare on Facebook",
        "Home | News | Sport | Log in | Register",
        "首页\n关于我们\n联系我们\n版权所有 保留所有权利\n上一页 下一页",
        "首頁\n關於我們\n隱私權政策\n會員登入",
        "ホーム\nお問い合わせ\nプライバシーポリシー\n無断転載を禁じます",
        "로그인\n회원가입\n이용약관\n무단전재 및 재배포 금지",
        "Главная\nКонтакты\nВсе права защищены\nЧитайте также",
        "Startseite\nImpressum\nDatenschutz\nAlle Rechte vorbehalten",
        "Accueil\nMentions légales\nTous droits réservés\nLire la suite",
        "Inicio\nAviso legal\nTodos los derechos reservados\nLeer más",
        "Início\nFale conosco\nTodos os direitos reservados",
        "Home\nChi siamo\nTutti i diritti riservati\nLeggi tutto",
        "Strona główna\nKontakt\nWszelkie prawa zastrzeżone",
        "Ana sayfa\nİletişim\nTüm hakları saklıdır",
        "Trang chủ\nLiên hệ\nChính sách bảo mật\nĐăng nhập",
        "Beranda\nHubungi kami\nKebijakan privasi\nBaca juga",
        "الرئيسية\nاتصل بنا\nجميع الحقوق محفوظة\nسياسة الخصوصية",
    ],
)
def test_furniture_of_many_languages(text: str) -> None:
    """Most words of menus and footers are furniture."""
    assert one("furniture_words", text) > 0.5


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        "She will share her home with us, search for help, follow the news and contact the press about sports.",
        "Read more about it. " + PROSE,
        "政府联系我们的首页新闻，搜索更多的产品和服务，这是公司简介里写的一段话。",
    ],
)
def test_words_of_menus_in_sentences_are_no_furniture(text: str) -> None:
    """Items count where a line is nothing else, and fewer than three phrases say nothing."""
    assert one("furniture_words", text) == 0


def test_phrases_go_on_over_line_breaks() -> None:
    """A menu whose every word has a line of its own is furniture as well."""
    words = "Home About Us Contact All rights reserved Privacy Policy Terms of Use Sitemap Log in"
    assert one("furniture_words", "\n".join(words.split())) > 0.6


@pytest.mark.parametrize(
    "text",
    [
        "Best roof in town? Call today for a free quote! Affordable prices, satisfaction guaranteed. Buy now, add to cart.",
        "厂家直销，价格优惠，欢迎来电咨询，免费上门，加微信领取优惠",
        "廠家直銷，限時優惠，立即購買，加入購物車",
        "今すぐお電話ください。送料無料、期間限定！カートに入れる",
        "무료 상담 지금 전화하세요! 최저가 보장, 무료 배송",
        "Звоните прямо сейчас! Лучшие цены, бесплатная доставка, оставьте заявку",
        "Jetzt bestellen! Kostenloser Versand, beste Preise, jetzt anrufen",
        "Commandez maintenant ! Livraison gratuite, meilleur prix garanti, devis gratuit",
        "¡Compra ahora! Envío gratis, los mejores precios, llámanos hoy",
        "Compre agora! Frete grátis, melhor preço, clique aqui",
        "Acquista ora! Spedizione gratuita, miglior prezzo, preventivo gratuito",
        "Kup teraz! Darmowa dostawa, najlepsze ceny, dodaj do koszyka",
        "Hemen satın al! Ücretsiz kargo, en uygun fiyat, sepete ekle",
        "Mua ngay! Miễn phí vận chuyển, giá tốt nhất, liên hệ ngay",
        "Beli sekarang! Gratis ongkir, harga termurah, hubungi kami sekarang",
        "اطلب الآن! شحن مجاني، أفضل الأسعار، اتصل بنا الآن",
        "अभी खरीदें! फ्री डिलीवरी, सबसे कम कीमत, अभी कॉल करें",
    ],
)
def test_sales_talk_of_many_languages(text: str) -> None:
    """A third of an advertisement and more is phrases of sales talk."""
    assert one("call_words", text) > 0.3


def test_one_phrase_of_sales_talk_says_nothing() -> None:
    """A text may speak of a special offer."""
    assert one("call_words", PROSE + " It was a special offer.") == 0


@pytest.mark.parametrize(
    "text",
    [
        "Your text here. Lorem ipsum dolor sit amet.",
        "Consectetur dolor elit aliqua nostrud fugiat velit ipsum sed magna",
        "Vivamus pellentesque ut nec tortor. Curabitur vestibulum, nullam a ligula sed",
        "Лорем ипсум долор сит амет цу меи",
        "请在此输入 点击添加标题 点击添加文字",
        "ここにテキストが入ります。この文章はダミーです。",
        "여기에 내용을 입력하세요",
        "Hier steht ein Text. Dies ist ein Blindtext",
        "Votre texte ici. Page en construction",
        "Tu texto aquí. Texto de ejemplo",
        "Insira seu texto aqui",
        "Inserisci qui il tuo testo",
        "Здесь будет ваш текст",
        "Tutaj wpisz tekst",
        "هذا النص هو مثال لنص يمكن أن يستبدل في نفس المساحة",
        "لورم ایپسوم متن ساختگی",
    ],
)
def test_placeholders_of_many_languages(text: str) -> None:
    """More than half of a text that holds a place is placeholders."""
    assert one("placeholder_words", text) > 0.5


@pytest.mark.parametrize(
    "text",
    [
        "Gallia est omnis divisa in partes tres, quarum unam incolunt Belgae, aliam Aquitani, tertiam qui lingua Celtae",
        "Quo usque tandem abutere, Catilina, patientia nostra? quam diu etiam furor iste tuus nos eludet?",
        "In principio creavit Deus caelum et terram. Terra autem erat inanis et vacua, et tenebrae erant super faciem",
        "Il do ut des est in sed non",
        PROSE,
    ],
)
def test_real_latin_is_no_placeholder(text: str) -> None:
    """Words of lorem ipsum count in runs of six with enough long ones among them."""
    assert one("placeholder_words", text) == 0


def test_a_lesson_that_names_lorem_ipsum_has_a_share_above_nothing() -> None:
    """C4 drops every text that names it, so the share must not be 0; it is small."""
    assert 0 < one("placeholder_words", PROSE + " Designers call it lorem ipsum.") < 0.1


def test_documents_do_not_leak_into_each_other() -> None:
    """A phrase that begins in one document and ends in the next is none; slices of an array are as the whole."""
    texts = [
        "all rights",
        "reserved privacy",
        "policy",
        "Thanks for",
        "sharing",
        "",
        "lorem ipsum dolor",
        "sit amet elit sed",
    ]
    assert measured(*texts) == {name: [one(name, text) for text in texts] for name in measured("")}
    whole = pa.array([PROSE, *texts], pa.large_string())
    found = phrases.measure(parts_of(whole[1:]))
    assert {name: values.tolist() for name, values in found.items()} == measured(*texts)


def test_no_documents() -> None:
    """An empty batch has empty columns of the declared type."""
    found = phrases.measure(parts_of(pa.array([], pa.large_string())))
    assert list(found) == [column.name for column in phrases.COLUMNS]
    assert all(len(values) == 0 and values.dtype == "float32" for values in found.values())


def test_the_list_has_ten_languages_of_every_class_and_nothing_twice() -> None:
    """Every class but heads and Latin speaks at least ten languages; no row lists a phrase twice."""
    rows = [line.split("\t") for line in phrases.shipped_table().splitlines() if not line.startswith("#")]
    for name in ("filler", "menu", "furniture", "call", "placeholder"):
        assert len({language for kind, language, _ in rows if kind == name}) >= 10, name
    listed = Counter((kind, language, phrase) for kind, language, cell in rows for phrase in cell.split(" | "))
    assert [item for item, n in listed.items() if n > 1] == []


@pytest.mark.parametrize(
    "table",
    [
        "filler\ten",
        "nonsense\ten\thello",
        "filler en hello",
        "lorem\tla\tlorem ipsum",
        "call\ten\tcall",
        "menu\ten\t...",
    ],
)
def test_a_damaged_list_says_what_is_wrong(table: str) -> None:
    """A row without a known class, a phrase without words or too short for its class are errors of configuration."""
    with pytest.raises(ConfigError, match="phrase"):
        phrases.tables_of(table)


def test_a_number_in_a_phrase_is_any_number() -> None:
    """0 stands for every number, also for one that other phrases list as itself."""
    trie = automaton_of(
        [
            Phrase((int(NUMBER), *hashes_of(["comments"]).tolist()), 1, LINE),
            Phrase(tuple(hashes_of(["24", "hours"]).tolist()), 2, LINE),
        ]
    )
    assert trie.classes.tolist().count(1) == 1
    assert one("furniture_words", "Home\n24 comments\n1,000 views\nLog in") == 1


@pytest.mark.parametrize("words", [(), (5,), (5, int(NUMBER), 6), (int(NUMBER), 5)])
def test_phrases_that_cannot_be_looked_for_everywhere(words: tuple[int, ...]) -> None:
    """The first two words choose where to look, so both must be words."""
    with pytest.raises(ConfigError, match="two words"):
        automaton_of([Phrase(words, 1, ANYWHERE)])


def test_a_long_run_of_one_phrase_is_no_trap() -> None:
    """Repeated beginnings of phrases take no longer than other words: 2 MB go through at once."""
    text = "thank you very " * 60_000 + "terms and " * 60_000 + "谢" * 100_000
    assert one("furniture_words", text) == 0


@pytest.mark.parametrize("text", ["این کتاب به زودی منتشر می شود", "họ đang xây dựng một ngôi nhà mới"])
def test_ordinary_words_hold_no_place(text: str) -> None:
    """ "Soon" and "is building" are words of any text, not signs of an empty page: fineweb drops what has one."""
    assert phrases.measure(parts_of(pa.array([text], pa.large_string())))["placeholder_words"].tolist() == [0]

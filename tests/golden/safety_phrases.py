"""Sentences for the tests of `safety_terms`, written for them: adverts that no list has as a phrase, and honest near-words.

`ADVERTS`: language and trade -> patterns with slots; every filling must be dropped, most of them at least. `BENIGN`: texts that hold
the words of the trades, or words that look like them, and say nothing of the sort. All handles are made up.
"""

from __future__ import annotations

from itertools import product

__all__ = ["ADVERTS", "BENIGN", "adverts"]

Slots = tuple[tuple[str, ...], ...]

ADVERTS: dict[str, tuple[str, Slots]] = {
    "zh gambling": (
        "{}{}，{}，{}",
        (
            ("金龙", "新版", "老牌", "好运来"),
            ("捕鱼", "棋牌", "真人视讯", "电子游艺", "菠菜盘", "老虎机"),
            ("首存100送58", "今日开户即领彩金", "满百返水不封顶", "提款三分钟秒到"),
            ("大额无忧", "客服在线等你，稳赚不赔", "信誉担保，代理返佣"),
        ),
    ),
    "zh-Hant gambling": (
        "{}{}，{}",
        (
            ("全台最夯", "老字號"),
            ("娛樂城", "百家樂現金網", "運彩帶單群組"),
            ("註冊送體驗金，加賴拿優惠", "儲值送紅包，保證出金", "首儲返利，穩賺不賠"),
        ),
    ),
    "zh recruiting": (
        "{}，{}，{}",
        (
            ("今晚新车出发", "最后五个名额", "老板们抓紧", "老司机在等"),
            ("上车的说暗号小苹果", "想上车的扣1", "没上车的懂的都懂"),
            ("加薇拿地址", "进裙详谈", "私我发你", "看我头像"),
        ),
    ),
    "zh sexual": (
        "{}{}，{}",
        (
            ("本地", "全市", "酒店"),
            ("嫩妹上门按摩", "空姐学生兼职可约", "御姐技师全套服务", "裸聊主播", "无码影片资源"),
            ("先看照片再付款", "加薇私聊", "老司机速来，高清无删减"),
        ),
    ),
    "zh loans": (
        "{}，{}，{}",
        (
            ("急用钱找我", "手头紧的看过来"),
            ("不看征信也能下款", "黑户可贷", "无抵押凭身份证秒批"),
            ("当天放款到账", "加微详谈", "额度高利息低"),
        ),
    ),
    "zh accounts": (
        "{}{}，{}",
        (
            ("长期高价", "大量"),
            ("收购银行卡四件套", "收公户和对公账户u盾", "收购实名微信号"),
            ("日结稳定", "可担保上押", "飞机联系"),
        ),
    ),
    "en gambling": (
        "{} {} {}",
        (
            ("New crypto casino,", "Lucky slots are live,", "Best sportsbook in town,", "Spin the roulette with us,"),
            ("first deposit doubled", "claim your free spins", "real money jackpots"),
            ("and instant payouts, play now!", "join now and win big.", "sign up today, bonus code inside."),
        ),
    ),
    "en drugs": (
        "{} {} {}",
        (
            ("Top quality", "Fresh batch,"),
            ("xanax and adderall", "cocaine and mdma", "oxycodone pills"),
            (
                "no prescription, overnight delivery, order now",
                "discreet shipping worldwide, message on wickr",
                "for sale, legit plug on telegram",
            ),
        ),
    ),
    "en sexual": (
        "{} {} {}",
        (
            ("Hot babes", "Horny singles", "Naked girls"),
            ("on live webcam tonight,", "in your area,"),
            ("uncensored xxx videos free, join now", "sexy hookups, click here 18+"),
        ),
    ),
    "en fraud": (
        "{} {} {}",
        (
            ("Fullz and cvv dumps", "Cloned cards and fake ids", "Counterfeit bills"),
            ("ship worldwide,", "fresh every day,"),
            ("message me on telegram", "guaranteed, bitcoin only"),
        ),
    ),
    "ja gambling": (
        "{}で{}、{}",
        (
            ("新しいオンラインカジノ", "人気のネットカジノ", "このスロットとバカラのサイト"),
            ("登録ボーナスがもらえる", "入金不要ですぐプレイ"),
            ("出金も早い、今すぐ登録", "勝率アップ、LINEで友だち追加", "キャッシュバックとフリースピンあり"),
        ),
    ),
    "ja sexual": (
        "{}{}、{}",
        (
            ("素人の", "人妻の"),
            ("無修正動画", "ハメ撮り動画", "エロ動画"),
            ("見放題、無料サンプルあり", "今すぐ登録して再生"),
        ),
    ),
    "ja fraud": (
        "{}、{}",
        (
            (
                "闇バイト募集、身分証だけで即日",
                "口座買取します",
                "審査なしで即日融資、ブラックOK",
                "スマホだけで日給5万の副業",
            ),
            ("詳しくはDMまで", "公式LINEを追加", "テレグラムで連絡ください"),
        ),
    ),
    "ru gambling": (
        "{} {} {}",
        (
            ("Новое онлайн казино,", "Игровые автоматы онлайн,"),
            ("фриспины за регистрацию,", "бонус на депозит,"),
            ("вывод средств сразу", "играй и выиграй"),
        ),
    ),
    "ko gambling": (
        "{} {} {}",
        (
            ("신규 카지노사이트", "안전한 토토사이트"),
            ("첫충 보너스 지급,", "꽁머니 지급,"),
            ("카톡 문의 주세요", "가입코드 받으세요"),
        ),
    ),
}


def adverts(trade: str) -> list[str]:
    """All fillings of a pattern."""
    pattern, slots = ADVERTS[trade]
    return [pattern.format(*filling) for filling in product(*slots)]


BENIGN: tuple[str, ...] = (
    # places, names and words that hold a short word of the lists
    "The class visited Scunthorpe, Penistone, Essex, Sussex and Middlesex by coach, and passed through Lightwater.",
    "Dickinson wrote about the analysis of grapes; the therapist drank a cocktail with Hancock in Cockburn Street.",
    "The assassin in the classic opera assumes that the bass passage of the sextet is a mass.",
    "A peacock walked on the grass while the cook peeled shiitake mushrooms and the cockpit crew waited for clearance.",
    "Arsenal beat Scunthorpe in the cup; the assistant coach assessed the passes and the cumulative score.",
    "The document summarises cumulative circumstances, titles and constitutional titration of the therapists' analysis.",
    "He cleaned the chink in the wall, bought a maine coon kitten and set the fire retardant aside.",
    "Buttermilk, Cumberland sausage, grapefruit and shuttlecock are on the shopping list for Saturday.",
    "Our cat's name is Pussy Willow, after the tree by the pond where the great tits nest each spring.",
    "The raccoon climbed the maple, and the cocker spaniel barked until the moon went down.",
    # news, law, medicine, recovery and education
    "Police seized four kilograms of cocaine and arrested two suspects, who will appear in court on Monday.",
    "The court heard that the online casino had laundered money for a criminal gang; three men were convicted.",
    "Gamblers Anonymous meets on Tuesdays; members talk about how they stopped betting on slots and poker.",
    "Doctors warn that Viagra must not be taken with nitrates; side effects include headache.",
    "If you think about suicide, call the crisis line at once; you are not alone, and treatment helps.",
    "The senate passed a bill on gun safety after months of debate about background checks.",
    "Researchers studied how pornography addiction is treated in clinics and what helps patients to recover.",
    "The museum shows nineteenth-century rifles and pistols from its collection until the end of May.",
    "The novel follows a gambler through the casinos of the Riviera until he loses everything at roulette.",
    "Students learn in sex education about consent, boundaries and where to find help.",
    "Naloxone reverses an opioid overdose; give it early, call an ambulance and stay with the patient.",
    "The regulator fined the bookmaker for adverts that were aimed at young people.",
    "A slot in the time table is free on Thursday; the memory slots of the board take two modules each.",
    "The algorithm is called the multi-armed bandit, after the slot machines of old casinos.",
    "Kill the process with the signal 9, then abort the child and detach the orphan thread.",
    "The master branch was renamed; the slave replica now follows the primary and the daemon spawns workers.",
    "He shot three photographs, hung the pictures and murdered a song at the karaoke bar.",
    "The bank offers mortgages and personal loans; read the terms and compare the annual rate before you sign.",
    "She earns her living as a trader in antiques and invests what is left in the roof of her house.",
    "Please contact our office by e-mail or phone if you have questions about your order; delivery takes three days.",
    "Sign up for the newsletter of the library and get news about readings, free for members.",
    "The escort vessel left the harbour at dawn with two destroyers and a tanker.",
    "This paint comes in nude and beige; a nude study by the same artist hangs in the museum.",
    "Cannabis was legalised by a law of that year; the tax goes to schools and to prevention.",
    "The scammers promised guaranteed profits; police warned of fake trading platforms on Telegram.",
    # zh
    "地铁到站后请先下后上车，买票的乘客请在窗口排队，上车买票的旅客请准备零钱。",
    "战时电报员用暗号传递消息，这些本子现在保存在博物馆里。",
    "小说里的侦探听懂了接头的暗号，从书店后门离开。",
    "选购沙发时要看框架和坐垫，布面沙发容易清洗，皮面沙发需要保养，客厅小的可以选单人沙发。",
    "酒后不能开车，老司机也要系好安全带，开车前先检查轮胎。",
    "工人用千斤顶把车身顶起来换轮胎，顶楼的住户在屋顶种菜。",
    "警方破获一起网络赌博案，抓获犯罪嫌疑人十二名，查封银行卡三百余张。",
    "法院对一起毒品犯罪案件作出判决，被告人因贩卖冰毒被判处有期徒刑十五年。",
    "澳门的赌场建筑很有名，游客可以参观威尼斯人的喷泉，再步行到大三巴吃蛋挞。",
    "彩票公益金今年资助了三百名山区学生，体育彩票中心公布了资金的用途。",
    "戒赌互助会每周二晚上活动，成员分享自己怎样远离赌博、还清欠款。",
    "菠菜焯水后拌上蒜泥，营养丰富，是春天餐桌上常见的蔬菜。",
    "渔民在禁渔期结束后出海捕鱼，码头上一早就很热闹。",
    "这枚戒指是18K彩金的，和项链是一套，生日时妈妈送给我的首饰。",
    "这款手机的处理器跑分比上一代高，电池也更耐用，屏幕亮度有提升。",
    "银行提醒：不要出租、出借自己的银行卡和收款码，谨防卷入洗钱。",
    "医生说安眠药必须凭处方购买，按医嘱服用，不能和酒同服。",
    "性教育课程包括身体界限和如何求助，家长可以和孩子一起看。",
    "如果你正在考虑自杀，请拨打心理援助热线，或者马上去最近的医院。",
    "民用爆炸物品的生产、销售、购买和运输应当取得许可证。",
    "绿茶和普洱都是好茶，周末约朋友喝茶聊天，下午茶配点心很舒服。",
    "公司周五发工资，财务说奖金下个月到账，大家都很高兴。",
    "他在银行办理了住房贷款，利率比去年低，手续办了三天。",
    "这家店的衣服免费包邮，七天内可以退换，客服回复很快。",
    "群里通知明天下午两点开家长会，有事的家长请跟老师私信说明。",
    "请加老师微信领取作业答案，同学们不要忘记带实验报告。",
    "我们的公众号每周更新，欢迎关注，也可以打电话预约参观图书馆。",
    "楼主说的方法我试过，把缓存目录删掉重启服务就好了，原因是权限不对。",
    "股市大盘低开高走，盘口显示主力资金流入，个股跌多涨少，收盘时成交量放大。",
    "比赛结束后，主教练说球队下半场的进球来自快速反击，赔率榜上他们原本不被看好。",
    "乘客上车后请往里走，给老人和孩子让座，司机师傅会等大家坐稳再开车。",
    "企鹅生活在南极，动物园里的企鹅每天吃两公斤鱼。",
    "卫星发射成功，飞机准点降落，机场大巴每二十分钟一班。",
    "裙子的面料是棉的，秋天穿正好，妹妹说这条裙子好看。",
    "她把头像换成了女儿的照片，主页里写着喜欢看书和跑步。",
    "项目组每天早上开会，兄弟部门也派人参加，名额有限，请提前报名。",
    "这部电影讲述了一名卧底警察潜入贩毒集团的故事，主演凭此片获奖。",
    "明朝的火枪和弓弩陈列在军事博物馆二楼，讲解每小时一次。",
    "杂种优势是水稻育种的基础，袁先生的试验田在三亚。",
    "四件套是纯棉的，含床单、被套和两个枕套，洗后不褪色。",
    "高考替考属于违法行为，一经查实取消成绩并追究刑事责任。",
    "代理商大会在上海召开，加盟店负责人交流了经营经验。",
    "图书馆电话：１２３４５６７８，开放时间９：００至１７：３０，周一闭馆。",
    "全村人口一万二千，户均三口人，去年出口茶叶八十吨。",
    # zh-Hant
    "捷運到站後請先下後上車，車廂內請勿飲食，老人和孕婦優先入座。",
    "警方查獲詐騙集團，呼籲民眾不要提供帳戶，接到投資群組邀請請撥打165。",
    "台灣彩券公布銷售額，公益盈餘用於社會福利，中獎者須在三個月內領獎。",
    "外送平台的外送員在雨中送餐，店家請他喝了一杯熱茶。",
    "新北市立圖書館的沙發區重新開放，讀者可以坐在窗邊看書。",
    # ja
    "電車が到着しましたら、降りる方を先にお通しください。切符は車内でもお求めになれます。",
    "警察は違法な賭博場を摘発し、店長の男を逮捕した。容疑者は黙秘している。",
    "ギャンブル依存症の相談窓口では、本人だけでなく家族の支援も行っている。",
    "冷蔵庫の野菜と氷でアイスを作り、庭の草を抜いた後にみんなで食べた。",
    "闇バイトに応募してはいけません。警視庁は若者に注意を呼びかけ、相談窓口を案内している。",
    "映画の主人公はカジノで全財産を失い、故郷に帰って父の店を継ぐ。",
    "畑の野菜を手押し車で運び、井戸の手押しポンプで水をくんだ。",
    "競馬の歴史を展示する博物館では、名馬の写真や古い馬券を見ることができる。",
    "副業の所得が二十万円を超える場合は確定申告が必要です。税務署にご相談ください。",
    "線路の工事のため、明日は始発から運休します。ご不便をおかけします。",
    "一人で悩まず、いのちの電話に相談してください。死にたい気持ちを話しても大丈夫です。",
    "この薬は医師の処方が必要です。副作用が出たら病院に連絡してください。",
    "大麻取締法の改正案が国会で審議され、使用の禁止が議論された。",
    "図書館の無料講座は会員登録が必要です。お問い合わせは窓口まで。",
    # what a trade's words have beside them in news, terms of use and quotations
    "A bookmaker paid a penalty after its online casino mailed bonus offers to customers who had asked to be excluded.",
    "Quem pensa em acabar com a vida pode ligar para o CVV no número 188; o apoio é gratuito.",
    "本公司从未经营线上博彩，凡冒用本公司名义的网站均属侵权，请用户注意辨别。",
    "He says it is not okay to be called a faggot, and the moderators blocked whoever wrote the slur.",
    # letters of a term that meet by chance
    "国务院近日批准了这个规划，所需材料主要由当地供应，今日B股小幅收高。",
    "火锅店新到的蟹肉棒和鱼丸很受欢迎，客人购买黄金酱蘸着吃，也有人爱吃黄瓜。",
    "老年活动中心推出棋牌室和体育粉丝见面会，申博成功的学长回来分享经验。",
    "气象台提供实时数据，雨停后天空放晴，赏花户外活动照常举行。",
    "门把手和拉手批发，材质有锌合金和不锈钢，价格从两元到二十元。",
    "先洗米再煮饭，水开后转小火，饭店的饲料商和材料商都来结账。",
    "拆下回油管清洗滤芯，对接料斗，检查身份证复印件是否齐全。",
    "硬盘的盘片高速旋转，磁头悬浮在上方，读写实时数据时不能震动。",
    "这个时期的建筑集中特色街区，中特别保护的院落有三十处，适合同城约上朋友参观。",
    "快递员签收卡片后，机场通过人脸识别放行，通过实名认证的旅客不用排队。",
    "店里卖饰品和发卡，妹妹买了两个，说价格比网上便宜三元。",
    "市场供需平衡，办公群里发了通知，推广计划下周开始，联系电话见附件。",
    "彩色网格纸和绿色网兜在二楼，特色网点周末营业，硫黄网上有售。",
    "生日姐姐送我一本书，她说今日姐妹们都在，晚饭后喝鱼汤。",
    "系咪真系咁好食？我哋一楼一户搬屋，凤姐做嘅糕点最香。",
    "一手数据来自问卷调查，老人数据显示独居比例上升，贷款数据显示增速放缓。",
    "小微企业用承兑汇票付款，银行核对承兑人的信用，手续费按天计算。",
    "复印店可以刻章，公司需要带营业执照原件，公章备案后三天取。",
    "快排和归并排序的平均复杂度相同，协议号17表示UDP，接口返回的引流字段可以忽略。",
    "The wool goes through carding and spinning, and 1488 bales were shipped in the year 1488.",
    "Press the white power button, connect the white power cord and wait until the LED turns green.",
    "Saw cutting tips: keep the blade sharp and slow; volunteers need no background check for this workshop.",
    "We order bukkake udon and cream pie, then split the bill; the first deposit on the bike is due on Monday.",
    "Our daily profits at the bakery rose, and the returns of jackets fell; the trader next door sells tea.",
    "初がつおのタタキは八百円、シャブシャブは二名様から、予約はお電話で。",
    "路地を通り抜けると、抜けるような青空の画像が撮れる展望台に着く。",
    "トンネルを抜ける風と手押しの台車の音が聞こえ、草の匂いがした。",
    # other languages
    "Die Polizei nahm zwei Verdächtige fest; das Gericht verurteilte sie wegen illegalen Glücksspiels zu Geldstrafen.",
    "Der Arzt erklärte, dass Viagra nur auf Rezept erhältlich ist und Nebenwirkungen haben kann.",
    "Wetten, dass die Abfahrt pünktlich ist? Fahrkarten kaufen Sie bitte am Automaten vor dem Einsteigen.",
    "La police a arrêté trois hommes soupçonnés de trafic de cocaïne; le tribunal les jugera en juin.",
    "Le chat dort sur le canapé, et une bitte d'amarrage rouille sur le quai du port.",
    "La policía detuvo a dos personas por vender billetes falsos; el juez ordenó prisión preventiva.",
    "El bono del tren cuesta diez euros y se puede comprar en la estación con tarjeta.",
    "La polizia ha arrestato due uomini; secondo la procura gestivano scommesse illegali.",
    "O tribunal condenou o grupo por tráfico; a polícia apreendeu armas e dinheiro falso.",
    "Полиция задержала организаторов подпольного казино; суд назначил им штраф.",
    "Врач рассказал о лечении игровой зависимости и о том, куда обратиться за помощью.",
    "Прогноз погоды на завтра: дождь, ветер, днём до десяти градусов. Возьмите зонт.",
    "경찰은 불법 도박사이트 운영자를 체포했고 법원은 징역형을 선고했다.",
    "지하철이 도착하면 내리는 승객이 먼저 내린 뒤에 타십시오. 자지 않고 기다렸다.",
    "Công an bắt giữ nhóm đối tượng tổ chức đánh bạc; tòa án sẽ xét xử vào tháng sau.",
    "Polisi menangkap bandar judi online dan menyita uang; tersangka terancam pidana.",
    "Polis yasa dışı bahis operasyonunda on kişiyi gözaltına aldı; mahkeme ikisini tutukladı.",
    "ตำรวจจับกุมเว็บพนันออนไลน์ ศาลสั่งจำคุกผู้ต้องหาสองคน",
    "ألقت الشرطة القبض على رجلين بتهمة ترويج القمار، وتنظر المحكمة في القضية غدا.",
)

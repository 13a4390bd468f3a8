"""Rewrites what a person asks to have watched into the English that watches.py reads.

begin("Sag mir, wenn die Platte über 90 % voll ist") -> "die Platte über 90 % voll ist"
in_english("die Platte über 90 % voll ist", "de") -> "disk above 90 %"

Each language has the words of the ROLES; the order of a sentence's parts does not matter. What is quoted, an address
or a path stays as it is.
"""

import re
from functools import cache

# Words that order a watch; that ask to be told; and that begin what is to be told.
BEGIN = {
    "en": ("(?:watch|keep an eye on)", "(?:(?:can|could|will|would) you |please )*(?:(?:tell|warn|notify|alert|inform|ping) me|let me know)(?: please)?", "when|if|as soon as|once"),
    "de": ("(?:überwach|beobacht|behalt)\\w*(?: bitte)?", "(?:(?:kannst|könntest) du )?(?:mir |mich |bitte )*(?:sag|meld|gib|warn|schreib|schick|benachrichtig|informier)\\w*(?: (?:du|mir|mich|dich|bitte|bescheid|eine nachricht|\\w+en))*", "wenn|falls|sobald|ob"),
    "es": ("(?:vigil|observ)\\w*", "(?:puedes )?(?:av[ií]sa|d[ií]|alerta|notif[ií]ca)(?:r?me)?", "cuando|si|en cuanto"),
    "fr": ("surveille[zr]?", "(?:peux-tu )?(?:préviens|prévenez|dis|dites|avertis|avertissez|alerte)[- ]moi", "quand|lorsque|dès que|si|s'il"),
    "ru": ("(?:следи(?:те)? за|отслеживай(?:те)?|наблюдай(?:те)? за)", "(?:сообщи|скажи|предупреди|уведоми|напиши)(?:те)?(?: мне| меня)?", "когда|если|как только"),
    "zh": ("(?:监视|监控|关注)", "(?:告诉|通知|提醒|警告)我(?:一下|一声)?", "当|如果|要是|一旦"),
}  # fmt: skip
PLEASE = r"(?:(?:please|bitte|por favor|s'il te pla[iî]t|пожалуйста|请),? ?)?"
ROLES = "mail folder file page feed url port commits command exit value disk load memory temperature above below older minute hour day one silent changes mentions for in filler".split()  # fmt: skip
MEANT = {"exit": "exit code of", "value": "value of", "older": "older than", "one": "1"}
WORDS = {
    "de": "(?:(?:eine_)?neue_)?(?:(?:e-?)?mails?|post)(?:_(?:kommt|kommen|eintrifft|ankommt))? ordner|verzeichnis datei|dokument (?:web)?seite feed url|adresse port (?:neue_)?commits?|änderungen_im_repository befehl|kommando (?:exit-?code|rückgabewert)(?:_von|_des_befehls)? wert(?:_von)? (?:fest)?platte|speicherplatz (?:system)?last (?:arbeits)?speicher|ram temperatur über(?:steigt|schreitet)?|(?:mehr|höher|größer|voller)_als unter(?:schreitet)?|(?:weniger|niedriger|kleiner)_als älter_als minuten? stunden? tag(?:en|e)? ein(?:en?|er)? (?:nicht(?:_mehr)?|noch)_(?:antwortet|reagiert|erreichbar(?:_ist)?)|ausfällt (?:sich_)?(?:ändert|verändert)|neue_einträge|(?:nicht_)?(?:geändert|verändert)(?:_hat|_wurde|_wird)? enthält|erwähnt|vorkommt|auftaucht|steht auf|für|nach in|im(?!_auge) sich|es|der|die|das|dem|den|des|von|ist|sind|wird|hat|gibt|steigt|fällt|sinkt|voll|belegt|grad|prozent|repo(?:sitory)?|seit|im_auge|wort",
    "es": "(?:(?:llegue|llega|haya|hay)_)?(?:un_)?(?:nuevos?_)?(?:correos?(?:_electrónicos?)?|e-?mails?)(?:_nuevos?)? carpeta|directorio archivo|fichero página feed|canal url|dirección puerto (?:nuevos_)?commits?(?:_nuevos)? (?:comando|orden) código_de_salida(?:_del?_comando)? valor(?:_de)? disco carga memoria temperatura supera|por_encima_de|más_(?:de|del|que)|mayor_que por_debajo_de|menos_(?:de|que)|menor_que|baja_de más_(?:vieja?|antigu[ao])_(?:de|que) minutos? horas? días? una? (?:no|deje_de|deja_de|ya_no)_(?:respond|contest)\\w+ cambi[ae]|nuevas_entradas|(?:no_)?(?:modific|actualiz)\\w+ menciona|menciones|contiene|contenga por|para en el|la|los|las|al|de|del|se|está|esté|es|tenga|tiene|hay|haya|sube|suba|baja|baje|lleno|grados|por_ciento|repositorio",
    "fr": "(?:un_)?(?:nouveaux?_)?(?:e-?mails?|courriels?|courrier)(?:_(?:arrive|arrivent))? dossier|répertoire fichier page flux url|adresse port (?:nouveaux_)?commits? commande code_de_(?:sortie|retour)(?:_de_la_commande)? valeur(?:_de)? disque charge mémoire température dépasse|au-dessus_de|plus_(?:de|que|d')|supérieure?_à au-dessous_de|en-dessous_de|moins_(?:de|que)|inférieure?_à|sous plus_(?:vieux|ancien)_(?:que|de) minutes? heures? jours? une? ne_(?:répond|marche)\\w*_(?:plus|pas) change|nouvelles_entrées|(?:n')?(?:a|est)_(?:pas_)?(?:changé|modifié)e? mentionne|contient pour dans le|la|les|l'|de|du|des|d'|se|est|a|(?:il_)?y_a|monte|descend|baisse|passe|plein|degrés|pour_cent|dépôt",
    "ru": "(?:(?:прид[её]т|приходит)_)?(?:нов\\w+_)?(?:письм\\w+|почт\\w+)(?:_(?:прид[её]т|приходит))? папк\\w+|каталог\\w* файл\\w* страниц\\w+ лент\\w+|фид\\w* адрес\\w*|url порт\\w* (?:новы[ехй]+_)?коммит\\w* команд\\w+ код\\w*_(?:возврата|выхода)(?:_команды)? значени\\w+ диск\\w* нагрузк\\w+ памят\\w+ температур\\w+ выше|больше(?:_чем)?|более(?:_чем)?|превы\\w+ ниже|меньше(?:_чем)?|менее(?:_чем)? старше минут\\w* час\\w* д(?:ень|ня|ней) один|одного|одной (?:не|переста\\w+)_(?:отвеча\\w+|доступ\\w+)|недоступ\\w+ новые_записи|(?:не_)?(?:измени|меня|обнови)\\w+ содержит|упомина\\w+|на по_слову во? станет|стала?|поднимется|поднялась|опустится|упад[её]т|появятся|появились|есть|будет|заполнен\\w*|градус\\w*|процент\\w*|репозитори\\w+|чем",
    "zh": "(?:收到)?新?(?:邮件|电邮)(?:到达|到来)? 文件夹|目录 文件 页面|网页 订阅源|订阅 网址|地址 端口 (?:新的?)?提交 命令 (?:命令的?)?退出码 的?值 磁盘 负载 内存 温度 超过|高于|大于|多于|升到 低于|小于|少于|降到 早于 分钟 小时 天 一 (?:没有|不再|停止|不|无)(?:响应|回应|应答)|(?:无法|不能)访问 (?:没有|未)?(?:变化|更改|改变|更新|修改)|新(?:的)?(?:内容|条目) 出现|包含|提到|的(?=_?['\"]) 关于 在|里 有|了|的|会|被|已|使用率|占用|度|满|仓库|任何|任意|发生",
}  # fmt: skip
KEPT = r"(?<![^\s一-鿿，])(?:\"[^\"]*\"|'[^']*'|[^\s一-鿿，]*[./~:][^\s一-鿿，]*)"
ORDERED = [  # what stands in another order in some languages, or is said by two roles
    (r"changes (file|folder|page|feed) (\S+)", r"\1 \2 changes"),
    (r"(?:in )?(\S+) commits|commits (?:in )?(\S+)", r"commits in \1\2"),
    (r"((?:file|folder) \S+) (?:above|older than) (\d* ?)(minute|hour|day)(?: changes)?", r"\1 older than \2\3"),
    (r"(.+?) (-?[\d.,]+) ?(?:%|°C)? (above|below)", r"\1 \3 \2"),
    (r"(.+ (?:above|below)) (?:for|mentions|in) (.+)", r"\1 \2"),
    (r"(?:url |port )?(\S+) silent|silent (?:url |port )?(\S+)", r"\1\2 stops answering"),
    (r"(?:mentions|for|in) (.+) (?:mentions|for|in) (page|file) (\S+)", r"\2 \3 for \1"),
    (r"(?:in |for )?(?:(page|file) )?(\S+) (?:for )?(.+) mentions", r"\1 \2 for \3"),
]  # fmt: skip


@cache
def begin_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a text that begins with an order to watch or to tell, and of one that ends with the latter."""
    orders, asks, whens = ("|".join(words) for words in zip(*BEGIN.values(), strict=True))
    first = rf"{PLEASE}(?:(?P<order>{orders})(?![a-z])|(?:{asks}),? ?(?:{whens})(?![a-z]))\s*(?:there are )?(?P<rest>\S.*)"
    last = rf"(?:(?:{whens})(?![a-z])\s*)?(?P<rest>\S.*?)(?:,\s*|(?:的?时候?)?，?\s*就?){PLEASE}(?:{asks})[.!。]?"
    flags = re.IGNORECASE | re.DOTALL
    return re.compile(first, flags), re.compile(last, flags)


@cache
def roles(language: str) -> re.Pattern[str]:
    """A pattern with a group for what is kept and one for each of the ROLES."""
    edges = ("", "") if language == "zh" else (r"(?<!\w)", r"(?:(?<=')|(?!\w))")
    words = (words.replace("_", " ") for words in WORDS[language].split())
    groups = (
        f"(?P<{role}>{edges[0]}(?:{word}){edges[1]})"
        for role, word in zip(ROLES, words, strict=True)
    )
    return re.compile("|".join((f"(?P<kept>{KEPT})", *groups)), re.IGNORECASE)


def in_english(text: str, language: str) -> str:
    """What a text in a language says, in the words of watches.py's forms; a command in it stays as it is."""
    inside = ""

    def meant(found: re.Match[str]) -> str:
        nonlocal inside
        role = found.lastgroup or ""
        if role == "kept" or (inside and not (inside == "value" and role in ("above", "below"))):
            return found[0]
        inside = role if role in ("command", "exit", "value") else ""
        return "" if role == "filler" else f" {MEANT.get(role, role)} "

    words = " ".join(roles(language).sub(meant, text).split())
    for pattern, ordered in ORDERED:
        words = re.sub(f"^(?:{pattern})$", ordered, words)
    return words.strip(" ,")

"""Messages as they come: in wrong charsets, in parts of parts, with what Outlook packs, with forged dates."""

import base64
import random
import struct
from collections.abc import Iterator

PDF = b"%PDF-1.4 an offer"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1"
HEAD = "From: {sender}\r\nTo: anna@example.org\r\nSubject: {subject}\r\nDate: {date}\r\nMessage-ID: <{id}@example.com>\r\n"
DATE = "Fri, 27 Nov 2026 10:00:00 +0100"


def head(
    subject: str, id: str, sender: str = "Bob <bob@example.com>", date: str = DATE, more: str = ""
) -> bytes:
    return (HEAD.format(sender=sender, subject=subject, date=date, id=id) + more).encode()


def plain(subject: str, text: str, id: str = "1", **fields: str) -> bytes:
    body = b"Content-Type: text/plain; charset=utf-8\r\n\r\n" + text.encode() + b"\r\n"
    return head(subject, id, **fields) + body


def multipart(kind: str, *parts: bytes, mark: str = "=_b") -> bytes:
    """Content-Type and body of a multipart."""
    inner = b"".join(b"--" + mark.encode() + b"\r\n" + part + b"\r\n" for part in parts)
    begin = f'Content-Type: multipart/{kind}; boundary="{mark}"\r\n\r\n'
    return begin.encode() + inner + b"--" + mark.encode() + b"--\r\n"


def attachment(name: str, kind: str, content: bytes, how: str = "attachment") -> bytes:
    begin = f'Content-Type: {kind}; name="{name}"\r\nContent-Disposition: {how}; filename="{name}"\r\nContent-Transfer-Encoding: base64\r\n\r\n'
    return begin.encode() + base64.encodebytes(content)


def typed(kind: str, raw: bytes, encoding: str = "8bit") -> bytes:
    return f"Content-Type: {kind}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n".encode() + raw


def tnef(*files: tuple[str, bytes]) -> bytes:
    """A winmail.dat."""

    def attribute(level: int, number: int, data: bytes) -> bytes:
        return (
            bytes([level])
            + struct.pack("<II", number, len(data))
            + data
            + struct.pack("<H", sum(data) & 0xFFFF)
        )

    raw = b"\x78\x9f\x3e\x22\x01\x00" + attribute(1, 0x00089006, struct.pack("<I", 0x10000))
    for name, content in files:
        raw += attribute(2, 0x00069002, bytes(14))
        raw += attribute(2, 0x00018010, name.encode("cp1252") + b"\0")
        raw += attribute(2, 0x0006800F, content)
    return raw


# Of each: what its subject and text have, and the names of its attachments.
Ugly = dict[str, tuple[bytes, tuple[str, ...], list[str]]]


def ugly() -> Ugly:
    cyrillic, german = "Счёт за ноябрь", "Übergabe der Schlüssel für Büro 12"
    html = "<html><body><h1>Rechnung</h1><p>Der Betrag ist <b>17,50 €</b>. <a href='https://shop.example/pay'>Bezahlen</a></p></body></html>"
    big = (
        "<html><body>"
        + "<table><tr><td style='color:#123456'>row of tea</td></tr></table>" * 125_000
        + "<p>the last line</p></body></html>"
    )
    deep = b"Content-Type: text/plain\r\n\r\nfound at the bottom\r\n"
    for n in range(12):
        deep = multipart("mixed", deep, mark=f"b{n}")
    endless = b"Content-Type: text/plain\r\n\r\nfar down\r\n"
    for n in range(3000):
        endless = (
            f'Content-Type: multipart/mixed; boundary="b{n}"\r\n\r\n--b{n}\r\n'.encode() + endless
        )
    word = "=?utf-8?b?" + base64.b64encode("Grüße aus Köln ".encode()).decode() + "?="
    halves = (
        base64.b64encode("日本".encode()[:4]).decode(),
        base64.b64encode("日本".encode()[4:]).decode(),
    )
    return {
        "utf-8 that says it is latin-1": (head(german, "u1") + typed("text/plain; charset=iso-8859-1", german.encode()), ("Schlüssel für Büro",), []),
        "windows-1252 that says it is ascii": (head("Key", "u2") + typed("text/plain; charset=us-ascii", german.encode("cp1252")), (german,), []),
        "koi8 that says it is utf-8": (head("Bill", "u3") + typed("text/plain; charset=utf-8", (cyrillic + ". Оплатите, пожалуйста, до конца месяца").encode("koi8-r")), (cyrillic,), []),
        "no charset at all": (head("Bill", "u4") + b"\r\n" + (cyrillic + ". Оплатите, пожалуйста, до конца месяца").encode("cp1251"), (cyrillic,), []),
        "a charset that nobody knows": (head("x", "u5") + typed("text/plain; charset=x-unknown-42", german.encode()), (german,), []),
        "iso-2022-jp": (head("x", "u6") + typed("text/plain; charset=iso-2022-jp", "会議は三時です".encode("iso2022_jp")), ("会議は三時です",), []),
        "gb2312 with letters of gbk": (head("x", "u7") + typed("text/plain; charset=gb2312", "朱镕基的信".encode("gbk")), ("朱镕基的信",), []),
        "encoded words": (head(f"{word} =?iso-8859-1?q?f=FCr?=\r\n =?iso-8859-1?q?_dich?=", "u8") + b"\r\nhello\r\n", ("Grüße aus Köln für dich",), []),
        "a character in two words": (head(f"=?utf-8?b?{halves[0]}?= =?utf-8?b?{halves[1]}?=", "u9") + b"\r\nhello\r\n", ("日本",), []),
        "raw bytes in a header": (head("Bob", "u10").replace(b"Subject: Bob", b"Subject: " + german.encode("cp1252")) + b"\r\nhello\r\n", (german,), []),
        "a broken encoded word": (head("=?utf-8?b?!!!?= and more", "u11") + b"\r\nhello\r\n", ("and more", "hello"), []),
        "html alone": (head("x", "u12") + typed("text/html; charset=utf-8", html.encode()), ("# Rechnung", "17,50 €", "https://shop.example/pay"), []),
        "html whose plain version is a hint": (head("x", "u13") + multipart("alternative", typed("text/plain", b"Use a client that shows HTML."), typed("text/html", html.encode().replace(b"</p>", b" and thanks for all of this</p>"))), ("17,50",), []),
        "html that says it is text": (head("x", "u14") + typed("text/plain; charset=utf-8", html.encode()), ("# Rechnung",), []),
        "8 MB of html": (head("x", "u15") + typed("text/html; charset=utf-8", big.encode()), ("row of tea", "There is more"), []),
        "parts in parts": (head("x", "u16") + deep, ("found at the bottom",), []),
        "3,000 parts in each other": (head("x", "u17") + endless, ("far down",), []),
        "no end of its parts": (head("x", "u18") + multipart("mixed", typed("text/plain", b"the beginning"), attachment("a.pdf", "application/pdf", PDF))[:-8], ("the beginning",), ["a.pdf"]),
        "parts without a boundary": (head("x", "u19") + b"Content-Type: multipart/mixed\r\n\r\njust words\r\n", ("just words",), []),
        "broken base64": (head("x", "u20") + typed("text/plain", base64.b64encode(b"words in it, and more of them").rstrip(b"=") + b"*\x00", "base64"), ("words in it",), []),
        "winmail.dat": (head("x", "u21") + multipart("mixed", typed("text/plain", b"See the plan."), attachment("winmail.dat", "application/ms-tnef", tnef(("plan ö.pdf", PDF), ("b.txt", b"tea")))), ("See the plan.",), ["plan ö.pdf", "b.txt"]),
        "inline pictures": (head("x", "u22") + multipart("related", typed("text/html", b"<p>Look: <img src='cid:1'></p>"), attachment("photo.png", "image/png", PNG, "inline")), ("Look:",), ["photo.png"]),
        "a message within": (head("x", "u23") + multipart("mixed", typed("text/plain", b"fyi"), b"Content-Type: message/rfc822\r\n\r\n" + plain("the old one", "what was said", "old")), ("fyi", "the old one", "what was said"), []),
        "a date of 1970": (plain("from the past", "old news", "u24", date="Thu, 01 Jan 1970 00:00:00 +0000"), ("old news",), []),
        "a date of 2099": (plain("from the future", "new news", "u25", date="Mon, 31 Feb 2099 99:00:00 +0000"), ("new news",), []),
        "no date, no sender, no subject": (b"\r\nnothing but words\r\n", ("nothing but words",), []),
        "names of files in other encodings": (head("x", "u27") + multipart("mixed", typed("text/plain", b"fyi"), b"Content-Type: application/pdf\r\nContent-Disposition: attachment; filename*=utf-8''%C3%84nderung.pdf\r\n\r\nx", attachment("=?utf-8?b?w6QucGRm?=", "application/pdf", PDF), attachment("../../etc/passwd", "text/plain", b"root")), ("fyi",), ["Änderung.pdf", "ä.pdf", "../../etc/passwd"]),
        "an empty one": (head("empty", "u28") + b"\r\n", (), []),
        "an invitation": (head("x", "u29") + multipart("alternative", typed("text/plain", b"Come at three."), typed("text/calendar; method=REQUEST", b"BEGIN:VCALENDAR\r\nSUMMARY:Tea\r\nEND:VCALENDAR")), ("SUMMARY:Tea",), []),
    }  # fmt: skip


WORDS = "invoice meeting garden engine harbour Übergabe lettre fiesta summer winter contract train coffee river mountain budget report holiday ticket window kitchen music doctor school bridge paper camera market forest planet".split()


def many(count: int, seed: int = 7) -> Iterator[bytes]:
    """So many messages: every fiftieth is one of the ugly ones, but for that of 8 MB, which comes once."""
    dice = random.Random(seed)
    zoo = [raw for name, (raw, _, _) in ugly().items() if not name.startswith(("8 MB", "3,000"))]
    for n in range(count):
        if n == count // 2:
            yield ugly()["8 MB of html"][0]
        elif n % 50 == 0:
            yield zoo[n // 50 % len(zoo)]
        else:
            words = dice.choices(WORDS, k=dice.randint(20, 400))
            sender = f"{dice.choice(WORDS)} <p{dice.randrange(400)}@example.com>"
            reply = f"In-Reply-To: <m{n - 1}@example.com>\r\n" if n % 3 else ""
            yield plain(
                " ".join(words[:5]),
                f"number{n} " + " ".join(words),
                f"m{n}",
                sender=sender,
                more=reply,
            )

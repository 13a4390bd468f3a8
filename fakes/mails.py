"""Messages as they come: in wrong charsets, in parts of parts, with what Outlook packs, with forged dates."""

import base64
import codecs
import quopri
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


def nested(depth: int, text: bytes) -> bytes:
    """Parts within each other that nobody ends."""
    begin = 'Content-Type: multipart/mixed; boundary="b{0}"\r\n\r\n--b{0}\r\n'
    outer = "".join(map(begin.format, range(depth)))
    return outer.encode() + b"Content-Type: text/plain\r\n\r\n" + text + b"\r\n"


def tnef(*files: tuple[str, bytes], body: bytes = b"", properties: bytes = b"") -> bytes:
    """A winmail.dat."""

    def attribute(level: int, number: int, data: bytes) -> bytes:
        return (
            bytes([level])
            + struct.pack("<II", number, len(data))
            + data
            + struct.pack("<H", sum(data) & 0xFFFF)
        )

    raw = b"\x78\x9f\x3e\x22\x01\x00" + attribute(1, 0x00089006, struct.pack("<I", 0x10000))
    if body:
        raw += attribute(1, 0x0002800C, body + b"\0")
    if properties:
        raw += attribute(1, 0x00069003, properties)
    for name, content in files:
        raw += attribute(2, 0x00069002, bytes(14))
        raw += attribute(2, 0x00018010, name.encode("cp1252") + b"\0")
        raw += attribute(2, 0x0006800F, content)
    return raw


def prop(tag: int, value: bytes) -> bytes:
    """A property of a winmail.dat, of a variable length."""
    return struct.pack("<III", tag, 1, len(value)) + value


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
        "3,000 parts in each other": (head("x", "u17") + nested(3000, b"far down"), ("far down",), []),
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


def uglier() -> Ugly:
    """More kinds: charsets, encodings and structures that are not what they are said to be, or that few programs know."""
    cyrillic, german = "Счёт за ноябрь", "Übergabe der Schlüssel für Büro 12"
    bill = "<p>Der Betrag ist <b>17,50 €</b>.</p>"
    return {
        "utf-16 with a mark": (head("x", "v1")+typed("text/plain; charset=utf-16", base64.encodebytes(german.encode("utf-16")),"base64"),(german,),[]),
        "utf-7": (head("x", "v2")+typed("text/plain; charset=utf-7", german.encode("utf-7"),"7bit"),(german,),[]),
        "utf-8 with a byte order mark": (head("x", "v3")+typed("text/plain; charset=utf-8", b"\xef\xbb\xbf"+german.encode()),(german,),[]),
        "big5": (head("x", "v4")+typed("text/plain; charset=big5", "會議三點開始".encode("big5")),("會議三點開始",),[]),
        "euc-kr labelled ks_c_5601-1987": (head("x", "v5")+typed("text/plain; charset=ks_c_5601-1987", "회의는 세 시입니다 똠".encode("cp949")),("회의는 세 시입니다 똠",),[]),
        "windows-1255 hebrew": (head("x", "v6")+typed("text/plain; charset=windows-1255", "שלום לכולם".encode("cp1255")),("שלום לכולם",),[]),
        "iso-8859-8-i": (head("x", "v7")+typed("text/plain; charset=iso-8859-8-i", "שלום לכולם".encode("iso-8859-8")),("שלום לכולם",),[]),
        "quoted-printable with broken escapes": (head("x", "v8")+typed("text/plain; charset=utf-8", b"Gr=C3=BC=C3=9Fe aus K=C3=B6ln =ZZ 50 = 50\r\nlong =\r\nline","quoted-printable"),("Grüße aus Köln","long line"),[]),
        "quoted-printable that says it is 8bit": (head("x", "v9")+typed("text/plain; charset=utf-8", quopri.encodestring((german+"\n").encode()*3),"8bit"),(german,),[]),
        "base64 that says it is 7bit": (head("x", "v10")+typed("text/plain; charset=utf-8", base64.encodebytes((german+" und noch viel mehr Worte davon, damit es lang wird. ").encode()*4),"7bit"),(german,),[]),
        "uuencoded in the text": (head("x", "v11")+b"\r\nSee below.\r\n\r\nbegin 644 plan.txt\r\n"+codecs.encode(b"the plan of tea","uu").split(b"\n",1)[1].replace(b"\n",b"\r\n")+b"\r\n",("See below.",),["plan.txt"]),
        "x-uuencode": (head("x", "v12")+typed("text/plain", codecs.encode(b"hello there tea","uu"),"x-uuencode"),("hello there tea",),[]),
        "yEnc/unknown encoding": (head("x", "v13")+typed("text/plain; charset=utf-8", german.encode(),"x-nobody-knows"),(german,),[]),
        "lines ended by CR alone": ((head("Bob", "v14")+typed("text/plain; charset=utf-8", b"one\r\ntwo")).replace(b"\r\n",b"\r"),("one","two","Bob"),[]),
        "headers with LF and body with CRLF": (head("Bob", "v15").replace(b"\r\n",b"\n")+b"\n"+b"one\r\ntwo\r\n",("one","two","Bob"),[]),
        "mbox From line first": (b"From bob@example.com Fri Nov 27 10:00:00 2026\r\n"+plain("Bob","tea","16"),("tea","Bob"),[]),
        "blank line first": (b"\r\n"+plain("Bob","tea","17"),("tea","Subject: Bob"),[]),
        "a header without a colon": (head("Bob", "v18")+b"this is no header\r\n"+typed("text/plain; charset=utf-8", german.encode()),(german,),[]),
        "two Content-Types": (head("x", "v19")+b"Content-Type: text/html\r\n"+typed("text/plain; charset=utf-8", bill.encode()),("17,50",),[]),
        "rfc2231 continuation names": (head("x", "v20")+multipart("mixed",typed("text/plain",b"fyi"),b"Content-Type: application/pdf\r\nContent-Disposition: attachment; filename*0*=utf-8''%C3%84nde; filename*1*=rung%20; filename*2=\"plan.pdf\"\r\n\r\nx"),("fyi",),["Änderung plan.pdf"]),
        "raw utf-8 in a name": (head("x", "v21")+multipart("mixed",typed("text/plain",b"fyi"),'Content-Type: application/pdf; name="Änderung.pdf"\r\nContent-Disposition: attachment; filename="Änderung.pdf"\r\n\r\nx'.encode()),("fyi",),["Änderung.pdf"]),
        "raw latin-1 in a name": (head("x", "v22")+multipart("mixed",typed("text/plain",b"fyi"),'Content-Type: application/pdf\r\nContent-Disposition: attachment; filename="Übersicht für Büro.pdf"\r\n\r\nx'.encode("latin-1")),("fyi",),["Übersicht für Büro.pdf"]),
        "boundary with quotes and spaces": (head("x", "v23")+b'Content-Type: multipart/mixed; boundary="=_a b\'(c)?"\r\n\r\n--=_a b\'(c)?\r\nContent-Type: text/plain\r\n\r\nfound\r\n--=_a b\'(c)?--\r\n',("found",),[]),
        "signed": (head("x", "v25")+b'Content-Type: multipart/signed; protocol="application/pgp-signature"; micalg=pgp-sha256; boundary="s"\r\n\r\n--s\r\n'+typed("text/plain; charset=utf-8",german.encode())+b'\r\n--s\r\nContent-Type: application/pgp-signature; name="signature.asc"\r\n\r\n-----BEGIN PGP SIGNATURE-----\r\n--s--\r\n',(german,),["signature.asc"]),
        "encrypted": (head("x", "v26")+b'Content-Type: multipart/encrypted; protocol="application/pgp-encrypted"; boundary="s"\r\n\r\n--s\r\nContent-Type: application/pgp-encrypted\r\n\r\nVersion: 1\r\n--s\r\nContent-Type: application/octet-stream; name="encrypted.asc"\r\n\r\n-----BEGIN PGP MESSAGE-----\r\n--s--\r\n',(),["part-1.pgp","encrypted.asc"]),
        "a bounce": (head("x", "v27")+b'Content-Type: multipart/report; report-type=delivery-status; boundary="s"\r\n\r\n--s\r\nContent-Type: text/plain\r\n\r\nIt was not delivered.\r\n--s\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mail.example.org\r\n\r\nFinal-Recipient: rfc822; nobody@example.org\r\nStatus: 5.1.1\r\n--s\r\nContent-Type: text/rfc822-headers\r\n\r\nSubject: the old one\r\n--s--\r\n',("It was not delivered.","nobody@example.org","5.1.1","the old one"),[]),
        "a message within in base64": (head("x", "v28")+multipart("mixed",typed("text/plain",b"fyi"),b"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: base64\r\n\r\n"+base64.encodebytes(plain("the old one","what was said","old"))),("fyi","the old one","what was said"),[]),
        "format=flowed, delsp": (head("x", "v29")+typed("text/plain; charset=utf-8; format=flowed",b"Ein langer Satz der \r\nweiter geht."),("Ein langer Satz",),[]),
        "encoded words inside quotes": (head("x", "v30",sender='"=?utf-8?q?M=C3=BCller?=, Anna" <anna@example.net>')+b"\r\nhello",("Müller",),[]),
        "encoded words without spaces between": (head("=?utf-8?q?Gr=C3=BC=C3=9Fe?==?utf-8?q?_aus_K=C3=B6ln?=", "v31")+b"\r\nhello",("Grüße aus Köln",),[]),
        "encoded words with spaces in them": (head("=?utf-8?q?Gr=C3=BC=C3=9Fe aus K=C3=B6ln?=", "v32")+b"\r\nhello",("Grüße aus Köln",),[]),
        "html in utf-16": (head("x", "v33")+typed("text/html; charset=utf-16", base64.encodebytes(f"<html><body>{bill}</body></html>".encode("utf-16")),"base64"),("17,50 €",),[]),
        "html whose meta says another charset": (head("x", "v34")+typed("text/html", ("<html><head><meta charset=windows-1251></head><body>"+cyrillic+"</body></html>").encode("cp1251")),(cyrillic,),[]),
        "rtf body": (head("x", "v35")+typed("text/rtf", b"{\\rtf1 hello}"),("hello",),[]),
        "tnef with a text alone": (head("x", "v36")+multipart("mixed",typed("text/plain",b"See."),attachment("winmail.dat","application/ms-tnef",tnef())),("See.",),["winmail.dat"]),
        "a body in a winmail.dat alone": (head("x", "v63")+attachment("winmail.dat","application/ms-tnef",tnef(("b.txt",b"tea"),body=german.encode("cp1252"))),(german,),["b.txt"]),
        "a body in UTF-16 in a winmail.dat": (head("x", "v64")+attachment("winmail.dat","application/ms-tnef",tnef(properties=prop(0x1000001F,(cyrillic+"\0").encode("utf-16-le")))),(cyrillic,),[]),
        "a body of HTML in a winmail.dat": (head("x", "v65")+attachment("winmail.dat","application/ms-tnef",tnef(properties=prop(0x10130102,bill.encode()))),("Der Betrag ist 17,50 €.",),[]),
        "the same body in a winmail.dat again": (head("x", "v66")+multipart("mixed",typed("text/plain",b"See."),attachment("winmail.dat","application/ms-tnef",tnef(body=b"See.")),typed("text/plain",b"End.")),("See.\n\nEnd.",),[]),
        "lines that a program has broken": (head("x", "v67")+typed("text/plain; charset=utf-8; format=flowed", b"one \r\ntwo \r\nthree\r\n\r\n> four \r\n> five\r\n>> six \r\n> seven\r\n-- \r\nBob \r\n From\r\n"),("one two three\n\n> four five\n>> six \n> seven\n-- \nBob From",),[]),
        "broken lines without a space": (head("x", "v68")+typed("text/plain; charset=utf-8; Format=Flowed; DelSp=Yes", "会議は三時 \r\nです\r\n".encode()),("会議は三時です",),[]),
        "a charset that is read for minutes": (head("x", "v69")+typed("text/plain; charset=Punycode", b"tea-"+b"a"*900),("tea-aaaa",),[]),
        "a message within in quoted-printable, half of it": (head("x", "v70")+multipart("mixed",typed("text/plain",b"fyi"),b"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nSubject: the old one\r\nContent-Type: text/plain; charset=3Dutf-8\r\n\r\n"+"Grüße".encode()),("fyi","the old one","Grüße"),[]),
        "a tnef cut in the middle": (head("x", "v37")+multipart("mixed",typed("text/plain",b"See."),attachment("winmail.dat","application/ms-tnef",tnef(("plan.pdf",PDF))[:-8])),("See.",),["plan.pdf"]),
        "10,000 headers": (head("Bob", "v38")+b"".join(b"X-A%d: b\r\n"%n for n in range(10000))+b"\r\ntea",("tea","Bob"),[]),
        "a NUL in the charset": (head("x", "v60")+typed("text/plain; charset=\"utf-8\0\"", german.encode()),(german,),[]),
        "a name in numbered pieces and in one": (head("x", "v61")+multipart("mixed",typed("text/plain",b"fyi"),b"Content-Type: application/pdf\r\nContent-Disposition: attachment; filename*=utf-8''a.pdf; filename*1=b.pdf\r\n\r\nx"),("fyi",),["part-1.pdf"]),
        "a boundary in numbered pieces and in one": (head("x", "v62")+b"Content-Type: multipart/mixed; boundary*=b; boundary*1=c\r\n\r\njust words\r\n",("just words",),[]),
        "a subject of a megabyte": (head("tea "*250000, "v39")+b"\r\nhello",("tea","hello"),[]),
        "only an attachment": (head("x", "v40")+attachment("a.pdf","application/pdf",PDF),(),["a.pdf"]),
        "an empty name": (head("x", "v41")+multipart("mixed",typed("text/plain",b"fyi"),attachment("","application/pdf",PDF)),("fyi",),["part-1.pdf"]),
        "NUL bytes": (head("x", "v42")+typed("text/plain; charset=utf-8", b"be\0fore and af\0ter"),("fore and af",),[]),
        "text/plain attached without name, inline": (head("x", "v43")+multipart("mixed",typed("text/plain",b"first"),b"Content-Type: text/plain\r\nContent-Disposition: inline\r\n\r\nsecond"),("first","second"),[]),
        "amp alternative": (head("x", "v44")+multipart("alternative",typed("text/plain",b"Plain words "*30),typed("text/x-amp-html",b"<html amp4email>amp</html>"),typed("text/html",b"<p>html</p>")),("Plain words",),[]),
        "x-mac-roman": (head("x", "v45")+typed("text/plain; charset=macintosh", german.encode("mac_roman")),(german,),[]),
        "x-sjis": (head("x", "v46")+typed("text/plain; charset=x-sjis", "会議は三時です①".encode("cp932")),("会議は三時です①",),[]),
        "iso-2022-jp with cp932 letters": (head("x", "v47")+typed("text/plain; charset=iso-2022-jp", b"\x1b$B2q5D\x2d\x21$O;0;~$G$9\x1b(B"),("会議",),[]),
        "gb18030": (head("x", "v48")+typed("text/plain; charset=gb18030", "㐀朱镕基的信".encode("gb18030")),("朱镕基的信",),[]),
        "charset with quotes and a comment": (head("x", "v49")+typed("text/plain; charset=\"'koi8-r'\"", cyrillic.encode("koi8-r")),(cyrillic,),[]),
        "charset utf8mb4": (head("x", "v50")+typed("text/plain; charset=utf8mb4", german.encode()),(german,),[]),
        "cp-850": (head("x", "v51")+typed("text/plain; charset=cp-850", german.encode("cp850")),(german,),[]),
        "unicode-1-1-utf-7": (head("x", "v52")+typed("text/plain; charset=unicode-1-1-utf-7", german.encode("utf-7"),"7bit"),(german,),[]),
        "latin1 as iso8859-1 label with cp1252 euro": (head("x", "v53")+typed("text/plain; charset=iso-8859-1", "Preis 17 € „gut“".encode("cp1252")),("17 € „gut“",),[]),
        "html comment conditional outlook": (head("x", "v54")+typed("text/html",b"<!--[if mso]><p>only outlook</p><![endif]--><p>for all</p>"),("for all",),[]),
        "html with a table layout deep": (head("x", "v55")+typed("text/html",b"<table><tr><td>"*300+b"found deep"+b"</td></tr></table>"*300),("found deep",),[]),
        "multipart/digest": (head("x", "v57")+b'Content-Type: multipart/digest; boundary="s"\r\n\r\n--s\r\n\r\nSubject: first one\r\n\r\nwords of one\r\n--s\r\n\r\nSubject: second one\r\n\r\nwords of two\r\n--s--\r\n',("first one","words of two"),[]),
        "an invitation with many words": (head("x", "v63")+multipart("alternative",typed("text/plain",b"Please come to the meeting of which we spoke. "*6),typed("text/html",b"<p>Please come to the meeting.</p>"),typed("text/calendar; method=REQUEST",b"BEGIN:VCALENDAR\r\nDTSTART:20261201T150000Z\r\nEND:VCALENDAR")),("Please come","DTSTART:20261201T150000Z"),[]),
        "a receipt that it was read": (head("x", "v64")+b'Content-Type: multipart/report; report-type=disposition-notification; boundary="s"\r\n\r\n--s\r\nContent-Type: text/plain\r\n\r\nIt was read.\r\n--s\r\nContent-Type: message/disposition-notification\r\n\r\nFinal-Recipient: rfc822; nobody@example.org\r\nDisposition: manual-action/MDN-sent-manually; displayed\r\n--s--\r\n',("It was read.","nobody@example.org","displayed"),[]),
        "a complaint": (head("x", "v65")+b'Content-Type: multipart/report; report-type=feedback-report; boundary="s"\r\n\r\n--s\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n--s\r\nContent-Type: message/rfc822\r\n\r\n'+plain("the old one","what was said","old")+b'--s--\r\n',("Feedback-Type: abuse","the old one","what was said"),[]),
        "a bounce with addresses beyond ascii": (head("x", "v66")+'Content-Type: multipart/report; report-type=delivery-status; boundary="s"\r\n\r\n--s\r\nContent-Type: message/global-delivery-status\r\n\r\nReporting-MTA: dns; mail.example.org\r\n\r\nFinal-Recipient: utf-8; jörg@example.org\r\n--s\r\nContent-Type: message/global\r\n\r\nSubject: Grüße\r\n\r\nwas gesagt wurde\r\n--s--\r\n'.encode(),("mail.example.org","jörg@example.org","Subject: Grüße","was gesagt wurde"),[]),
        "a message within in quoted-printable": (head("x", "v67")+multipart("mixed",typed("text/plain",b"fyi"),b"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"+quopri.encodestring(plain("the old one","Grüße","old"))),("fyi","the old one","Grüße"),[]),
        "an encoding with a space behind it": (head("x", "v68")+typed("text/plain; charset=utf-8", base64.encodebytes(german.encode()),"BASE64 "),(german,),[]),
        "400 parts in each other": (head("x", "v69")+nested(400,b"far down"),("far down",),[]),
        "400 messages in each other": ((head("x", "v70")+b"Content-Type: message/rfc822\r\n\r\n")*400+b"\r\nfar down\r\n",("far down",),[]),
        "an encoded word that says its language": (head("=?iso-8859-1*de?q?Gr=FC=DFe?=", "v71")+b"\r\nhello",("Grüße",),[]),
        "a name in latin-1 that says its language": (head("x", "v72")+multipart("mixed",typed("text/plain",b"fyi"),b"Content-Type: application/pdf; name*=iso-8859-1'de'%DCbersicht.pdf\r\n\r\nx"),("fyi",),["Übersicht.pdf"]),
        "a signature of S/MIME": (head("x", "v73")+multipart("signed",typed("text/plain; charset=utf-8",german.encode()),attachment("smime.p7s","application/pkcs7-signature",b"0\x80")),(german,),["smime.p7s"]),
        "message/partial": (head("x", "v58")+b'Content-Type: message/partial; id="a"; number=1; total=2\r\n\r\nSubject: inner\r\n\r\nhalf of it\r\n',("half of it",),[]),
    }  # fmt: skip


WORDS = "invoice meeting garden engine harbour Übergabe lettre fiesta summer winter contract train coffee river mountain budget report holiday ticket window kitchen music doctor school bridge paper camera market forest planet".split()


def many(count: int, seed: int = 7) -> Iterator[bytes]:
    """So many messages: every fiftieth is one of the ugly ones, but for that of 8 MB, which comes once."""
    dice = random.Random(seed)
    kinds = (ugly() | uglier()).items()
    zoo = [raw for name, (raw, _, _) in kinds if not name.startswith(("8 MB", "3,000"))]
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

"""Unusual addresses: some that can be called, some that cannot, and a strategy for more."""

from typing import Final

from hypothesis import strategies as st

from sandbox_sim.http_addresses import MAX_CHARACTERS

CALLABLE: Final = [
    "http://shop.example",
    "http://shop.example/",
    "http://shop.example:8080/callback?order=1&x=%20#top",
    "http://shop.example?order=1",
    "http://shop.example#top",
    "http://shop.example:80#top",
    "HTTPS://SHOP.EXAMPLE/Callback",
    "http://shop.example.:8080/",
    "http://shop.example:/",
    "http://shop.example:00080/",
    "http://shop.example:65535/",
    "http://my_shop/",
    "http://-a.example-/",
    "http://bücher.example/rückruf?name=Ɛ",
    "http://😀.example/",
    "http://xn--bcher-kva.example/",
    "http://xn--a.example/",
    "http://１２７.0.0.1/",
    "http://0x0/",
    "http://0x7f.1/",
    "http://127.0.0.1/",
    "http://[::1]:9/",
    "http://[::ffff:127.0.0.1]/",
    "https://user:secret@shop.example:8443/",
    "http://user@shop.example/",
    "http://@shop.example/",
    "http://u%40x:p%3A%2F@shop.example/",
    "http://ü:ö@shop.example/",
    "http://shop.example/%zz?%",
    'http://shop.example/a\\b|c^d"<>{}`',
    "http://shop.example/../a/./b//c",
    "http://shop.example/" + "x" * (MAX_CHARACTERS - 20),
    f"http://{'a' * 63}.example/",
    f"http://{'.'.join(['a' * 61] * 4)}.abcd/",
]
NOT_CALLABLE: Final = [
    "",
    "shop",
    "shop.example/callback",
    "//shop.example/",
    "ftp://shop.example/",
    "javascript:alert(1)",
    "http:",
    "http:shop.example",
    "http:/shop.example/",
    "http://",
    "http:///callback",
    "http://?order=1",
    "http://#top",
    "http://:80/",
    "http://user@",
    "http://user@:80/",
    "httpſ://shop.example/",
    # hosts
    "http://[1:2:3]:9/",
    "http://[:::]:9/",
    "http://[::1.]:8590/",
    "http://[::ffff:1.2.3.256]/",
    "http://[1.2.3.4]/",
    "http://[v1.a]/",
    "http://[::1/",
    "http://::1/",
    "http://[::1]x/",
    "http://[::1][::1]/",
    "http://[]/",
    "http://[::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://127.1/",
    "http://2130706433/",
    "http://0/",
    "http://0177.0.0.1/",
    "http://127.0.0.01/",
    "http://256.1.1.1/",
    "http://1.2.3.4.5/",
    "http://127.0.0.1./",
    "http://１２７.1/",
    "http://a..b/",
    "http://.example/",
    "http://./",
    "http://shop.example../",
    f"http://{'a' * 64}.example/",
    f"http://{'.'.join(['a' * 63] * 4)}/",
    f"http://{'ü' * 60}.example/",
    "http://loc%61lhost/",
    "http://a%zz/",
    "http://a%00b/",
    "http://a,b/",
    "http://*/",
    "http://<a>/",
    "http://a\u00adb.example/",
    "http://a\u200bb.example/",
    "http://a／b/",
    "http://a℀b/",
    # ports
    "http://shop.example:0/",
    "http://shop.example:00/",
    "http://shop.example:65536/",
    "http://shop.example:99999999999999999999/",
    "http://shop.example:http/",
    "http://shop.example:+80/",
    "http://shop.example:١/",
    "http://shop.example:80:80/",
    "http://shop.example:80;x/",
    # names and passwords
    "http://a@b@shop.example/",
    "http://a\\b@shop.example/",
    "http://shop.example\\@evil.example/",
    "http://a[b]@shop.example/",
    "http://a%3Ab:p@shop.example/",
    "http://Ɛ:p@shop.example/",
    # white space and control characters
    " http://shop.example/",
    "http://shop.example/ ",
    "http://shop example/",
    "http://shop.example/a b",
    "http://shop.example/\t",
    "http://shop\n.example/",
    "http://shop.example/\r\nX: 1",
    "http://shop.example/\x00",
    "http://shop.example/\x7f",
    "http://shop.example/\u2028",
    "http://shop.example/\u00a0",
    # length
    "http://shop.example/" + "x" * (MAX_CHARACTERS - 19),
]
# JSON text cannot have these, but a command line can.
NOT_TEXT: Final = ["http://shop.example/\ud800", "http://\udcff/", "http://\ud800@shop.example/"]

_VISIBLE_PARTS: Final = """
    a b example localhost xn-- x 0 1 127 255 256 0x7f ff [::1] [::] [1:2:3] [:::] [::1.] 127.0.0.1
    : :: [ ] @ / // ? # \\ % %2 %25 %2F %00 %zz :80 :0 :65536 :8080
    . .. - _ ~ ! * , ; = + $ & ' ( ) " < > { } | ^ ` ü ß 😀 。 １ ① \u00ad \u200d \u0301 Ɛ ſ İ א ٣ ℀
"""
_PARTS: Final = st.sampled_from(
    [*_VISIBLE_PARTS.split(), *(" ", "\t", "\n", "\x00", "\x7f", "\u00a0", "a" * 63)]
)
_HOSTS: Final = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    st.lists(_PARTS, min_size=1, max_size=6).map("".join),
    st.from_regex(r"[a-z0-9_-]{1,10}(\.[a-z0-9_-]{1,10}){0,3}\.?", fullmatch=True),
    st.text(min_size=1, max_size=12),
)
_REST: Final = st.one_of(
    st.just(""),
    st.lists(_PARTS, max_size=6).map("".join).map("/".__add__),
    st.text(max_size=20).map("/".__add__),
    st.text(max_size=20).map("?".__add__),
)
# Most are nearly well-formed.
ODD_ADDRESSES: Final = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["http://"] * 8 + ["https://", "HTTP://", "http:/", "http:", "//"]),
    st.one_of(
        st.just(""), st.just(""), st.lists(_PARTS, max_size=3).map("".join).map("{}@".format)
    ),
    _HOSTS,
    st.one_of(st.just(""), st.integers(0, 70000).map(":{}".format)),
    _REST,
)

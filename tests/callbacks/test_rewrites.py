"""Where callbacks really go: the beginning of an address is replaced, and the rest is kept."""

import pytest
from hypothesis import assume, given, strategies as st

from sandbox_sim.callbacks.destinations import CallbackRoutes, parse_url_prefix, receiver_of

LOCAL = "http://localhost:5000"

SHOP = CallbackRoutes.parse({"https://shop.example": LOCAL}, {})


class TestRewrites:
    @pytest.mark.parametrize("rest", ["", "/", "/hook", "/a/b?c=d&e=/f", "?c=d", "#f", "/%41//x/"])
    def test_path_and_query_are_kept(self, rest: str) -> None:
        assert SHOP.target(f"https://shop.example{rest}") == LOCAL + rest

    @given(st.text())
    def test_whatever_follows_is_kept(self, rest: str) -> None:
        assert SHOP.target(f"https://shop.example/{rest}") == f"{LOCAL}/{rest}"

    @given(st.text())
    def test_what_begins_otherwise_is_left_alone(self, text: str) -> None:
        assume(not text.lower().startswith("https://shop.example"))
        assert SHOP.target(text) == text

    @pytest.mark.parametrize(
        "url",
        [
            "https://shop.example.evil.com/hook",
            "https://shop.example:8443/hook",
            "https://shop.example@evil.com/hook",
            "https://evil.com/https://shop.example/hook",
            "https://evil.com?https://shop.example",
            "http://shop.example/hook",
            "https://www.shop.example/hook",
            "ftp://shop.example/hook",
        ],
    )
    def test_another_host_is_another_host(self, url: str) -> None:
        assert SHOP.target(url) == url

    @pytest.mark.parametrize("url", ["HTTPS://Shop.Example/Hook", "https://shop.example:443/Hook"])
    def test_scheme_and_host_may_be_written_otherwise(self, url: str) -> None:
        assert SHOP.target(url) == f"{LOCAL}/Hook"

    def test_so_they_may_in_the_setting(self) -> None:
        routes = CallbackRoutes.parse({"HTTPS://Shop.Example:443/": "HTTP://localhost:80/"}, {})

        assert routes.target("https://shop.example/hook") == "http://localhost/hook"

    @pytest.mark.parametrize(
        "other", ["http://shop.example", "https://shop.example:80", "https://shop.example/A"]
    )
    def test_what_is_another_address_has_its_own(self, other: str) -> None:
        routes = CallbackRoutes.parse({"https://shop.example/a": LOCAL, other: "http://b.test"}, {})

        assert routes.target("https://shop.example/a") == LOCAL
        assert routes.target(other) == "http://b.test"

    @pytest.mark.parametrize(
        ("path", "found"),
        [
            *(
                ("/api", "/v2"),
                ("/api/", "/v2/"),
                ("/api/hook", "/v2/hook"),
                ("/api?a=b", "/v2?a=b"),
            ),
            *(("/apis", None), ("/API", None), ("", None), ("/x/api", None)),
        ],
    )
    def test_a_path_ends_where_a_segment_does(self, path: str, found: str | None) -> None:
        routes = CallbackRoutes.parse({"https://shop.example/api": f"{LOCAL}/v2"}, {})
        url = f"https://shop.example{path}"

        assert routes.target(url) == (url if found is None else LOCAL + found)

    def test_the_longest_beginning_counts(self) -> None:
        routes = CallbackRoutes.parse(
            {
                "https://shop.example": "http://127.0.0.1:1",
                "https://shop.example/api/v2": "http://127.0.0.1:3",
                "https://shop.example/api": "http://127.0.0.1:2",
            },
            {},
        )
        paths = ["/hook", "/api/hook", "/api/v2/hook", "/api/v22"]

        targets = [routes.target(f"https://shop.example{path}") for path in paths]

        assert targets == [
            *("http://127.0.0.1:1/hook", "http://127.0.0.1:2/hook", "http://127.0.0.1:3/hook"),
            "http://127.0.0.1:2/v22",
        ]

    def test_a_name_and_password_go_along(self) -> None:
        assert SHOP.target("https://me:pw@shop.example/hook") == "http://me:pw@localhost:5000/hook"

    def test_what_is_rewritten_is_not_rewritten_again(self) -> None:
        routes = CallbackRoutes.parse(
            {"http://a.test": "http://b.test", "http://b.test": LOCAL}, {}
        )

        assert routes.target("http://a.test/x") == "http://b.test/x"

    @pytest.mark.parametrize(
        "text",
        [
            *(
                "",
                "shop.example",
                "https://",
                "https:///x",
                "ftp://shop.example",
                "https://*.example",
            ),
            *("https://me@shop.example", "https://shop.example?a", "https://shop.example/#a"),
            *(
                "https://shop.example:x",
                "https://shop example",
                "https://shop.example/a b",
                "https://[::g]",
            ),
        ],
    )
    def test_what_begins_no_address_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"such as https://shop\.example"):
            parse_url_prefix(text)


class TestHeaders:
    def test_they_go_everywhere(self) -> None:
        routes = CallbackRoutes.parse({}, {"X-Staging": "1"})

        assert routes.headers_to("http://me@localhost/x") == {"X-Staging": "1"}

    def test_a_name_and_password_in_the_address_go_first(self) -> None:
        routes = CallbackRoutes.parse({}, {"authorization": "Bearer 5", "X-Staging": "1"})

        assert dict(routes.headers_to("http://me:pw@localhost/x")) == {"X-Staging": "1"}
        assert len(routes.headers_to("http://localhost/a@b")) == 2


@pytest.mark.parametrize(
    ("url", "receiver"),
    [
        ("HTTP://me:pw@Shop.example:8080/a?b", "http://shop.example:8080"),
        ("https://shop.example", "https://shop.example"),
    ],
)
def test_a_receiver_is_scheme_host_and_port(url: str, receiver: str) -> None:
    assert receiver_of(url) == receiver

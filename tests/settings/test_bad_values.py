"""A bad value of any setting stops the start with a message that names the setting."""

import json
from pathlib import Path

import pytest

from sandbox_sim.settings.loading import load
from sandbox_sim.settings.schema import Settings, defaults
from tests.settings.config_errors import config_error

# For every setting: a bad value as TOML, and words of the error message.
BAD: dict[str, tuple[str, str]] = {
    "host": ("5", "must be a valid string"),
    "port": ("65536", "must be less than or equal to 65535"),
    "base_path": ('"/a b"', "must be a path such as /gateway/v1"),
    "public_url": ('"gateway.example"', "must be an address such as https://gateway.example"),
    "store": ('"mongodb:"', "must be memory:, sqlite:PATH or postgresql://USER@HOST/DATABASE"),
    "workers": ("0", "must be greater than or equal to 1"),
    "production": ('"perhaps"', "must be a valid boolean"),
    "allow_memory": ('"perhaps"', "must be a valid boolean"),
    "keep_notifications_days": ("0", "must be greater than or equal to 1"),
    "networks": ("5", 'must be a table, such as { "staging" = { "adapter" = "simulated" } }'),
    "routes": ("5", 'must be a list, such as [{ "network" = "staging", "nw" = ["MTN"] }]'),
    "durability": ('"none"', "must be 'process' or 'power'"),
    "lenient": ('"very"', "must be a valid boolean"),
    "keep_transactions": ("0", "must be greater than or equal to 1"),
    "fast_path": ('"slow"', "must be a valid boolean"),
    "quiet": ('"a little"', "must be a valid boolean"),
    "log_level": ('"loud"', "must be 'debug', 'info', 'warning' or 'error'"),
    "log_format": ('"xml"', "must be 'text' or 'json'"),
    "cert": ('"/nowhere"', "needs key too"),
    "key": ('"/nowhere"', "needs cert too"),
    "tls": ('"perhaps"', "must be a valid boolean"),
    "control_token_file": ('"/nowhere"', "the file cannot be read"),
    "tls_terminated": ('"perhaps"', "must be a valid boolean"),
    "control_token": ("5", "must be a valid string"),
    "allowed_hosts": ('["https://gateway.example"]', "must be a host such as gateway.example"),
    "max_body_bytes": ("0", "must be greater than or equal to 1"),
    "sandbox_reject_status": ("199", "must be greater than or equal to 200"),
    "rate_limit": ("5", "must be 'field'; for another limit, set rate_limit_per_minute"),
    "rate_limit_per_minute": ("0", "must be greater than 0"),
    "rate_limit_burst": ("0", "must be greater than or equal to 1"),
    "allowed_prefixes": ('["0244", "244"]', "must be the first digits of a local number"),
    "allowed_numbers": ('["233244000001"]', "must be a local number of ten digits"),
    "match_network": ('"maybe"', "must be a valid boolean"),
    "accept_international": ("[]", "must be a valid boolean"),
    "duplicates": ('"ignore"', "must be 'accept' or 'reject'"),
    "magic_outcomes": ('{ "0244000003" = "000" }', "must be one of 001, 003, 002, or a response"),
    "settle_delay_ms": ("-1", "must be greater than or equal to 0"),
    "merchant_names": ('{ shop = "Adwoa" }', "must be a service_id, such as 55"),
    "test_cards": ('{ "4111111111111111" = "AMX" }', "must be 'VIS' or 'MAS'"),
    "sandbox_card_entry": ('"x"', "must be a valid boolean"),
    "card_auto_complete_ms": ("0.5", "must be a valid integer"),
    "balances": ('"real"', "must be 'fixed' or 'live'"),
    "approval": ('"phone"', "must be 'auto' or 'handset'"),
    "approval_timeout_s": ("0", "must be greater than 0"),
    "sms_initial_units": ("-1", "must be greater than or equal to 0"),
    "sms_transition_ms": ('"soon"', "must be a valid integer"),
    "approved_senders": ('"Shop"', 'must be a list, such as ["Shop"]'),
    "callback_profile": ('"xml"', "must be 'trans', 'trans_bare', 'flat', 'event' or 'superset'"),
    "callback_profiles": ('{ "*" = "xml" }', "must be 'trans'"),
    "sign_callbacks": ("2", "must be a valid boolean"),
    "callback_attempts": ("0", "must be greater than or equal to 1"),
    "callback_retry_interval_s": ("-0.1", "must be greater than or equal to 0"),
    "callback_timeout_s": ("0", "must be greater than 0"),
    "callback_hosts": ('{ "deny" = ["10.*"] }', "an address or a range such as 10.0.0.0/8"),
    "callback_rewrites": (
        '{ "shop.example" = "http://localhost" }',
        "such as https://shop.example",
    ),
    "callback_headers": ('{ "X-A b" = "1" }', "must be a valid header name"),
    "credentials": ("[]", "must have at least 1 item"),
}


STORES = "must be memory:, sqlite:PATH or postgresql://USER@HOST/DATABASE; did you mean"

# Settings of text or number, and for each error message the values that lead to it.
REFUSED: list[tuple[str, str, tuple[str, ...]]] = [
    ("store", f"{STORES} sqlite:./x.db?", ("./x.db",)),
    ("store", f"{STORES} sqlite:/var/lib/x.db?", ("/var/lib/x.db",)),
    ("store", f"{STORES} sqlite:x.sqlite3?", ("x.sqlite3",)),
    ("store", f"{STORES} memory:?", ("mem",)),
    ("store", "must be a path whose home folder (~) exists", ("sqlite:~unknown-user/x",)),
    ("store", "must not contain a NUL character", ("sqlite:a\x00b",)),
    (
        "public_url",
        "must be an address such as https://gateway.example",
        (
            *("https://", "https:///x", "https://a..b", "https://[::1", "https://[x]"),
            *("https://a b", f"https://{'a' * 64}.example", "ftp://gateway.example"),
            *("https://[fe80::1%25eth0]", "https://gateway.example/?a=1", "https://127.1"),
            *("https://gateway.example/#pay", "https://gateway.example:0", "https://[:::]"),
        ),
    ),
    ("public_url", "must have at most 2,048 characters", ("https://a.example/" + "x" * 2048,)),
    ("base_path", "must be a path such as /gateway/v1", ("/a%20b", "/{x}", "/a?b", "http://a/b")),
    (
        "base_path",
        "must not begin with /_sandbox, the path of the control API",
        ("_sandbox", "/_sandbox/v1/"),
    ),
    *(
        (name, "must be less than or equal to 86400", ("inf", "nan", "1e300"))
        for name in ("callback_retry_interval_s", "callback_timeout_s")
    ),
    *(
        (name, "must be less than or equal to 86400000", (str(10**18),))
        for name in ("settle_delay_ms", "card_auto_complete_ms", "sms_transition_ms")
    ),
]

# The same for an entry of a table: its setting, its name and the values.
REFUSED_ENTRIES: list[tuple[str, str, str, tuple[str, ...]]] = [
    *(
        (
            "callback_headers",
            name,
            "is a header that the gateway writes itself; choose another",
            ("1",),
        )
        for name in ("content-type", "X-Service-Signature", "Host")
    ),
    *(
        ("callback_headers", name, "must be a valid header name, such as X-Staging", ("1",))
        for name in ("X-Ä", "", "X:A")
    ),
    (
        *("callback_headers", "X-A", "must be one line of ASCII, with no space at either end"),
        ("a\nb", "a\r", " a", "ä", "\0"),
    ),
    (
        *("callback_rewrites", "https://shop.example"),
        "must have a host name of letters, digits, - and _, at most 63 in each part and 253 in all",
        ("http://a..b",),
    ),
    (
        *("callback_rewrites", "https://shop.example", "must have a port from 1 to 65535"),
        ("http://localhost:0",),
    ),
    (
        *("callback_rewrites", "https://shop.example", "must have at most 2,048 characters"),
        ("http://localhost/" + "x" * 2048,),
    ),
]


def test_the_table_has_every_setting() -> None:
    assert set(BAD) == set(Settings.model_fields)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_in_the_file_is_refused_with_its_origin(file: Path, name: str) -> None:
    text, words = BAD[name]
    file.write_text(f"{name} = {text}\n", "utf-8")

    sentence = config_error(file)

    assert sentence.startswith(name)
    assert f"(from {file}): " in sentence
    assert words in sentence


@pytest.mark.parametrize("name", [n for n in BAD if n not in {"host", "control_token"}])
def test_a_bad_value_in_the_environment_or_a_flag_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = BAD[name][0].strip('"').replace(" = ", ": ")

    assert config_error(**{name: text}).startswith(name)
    assert "(from flag): " in config_error(**{name: text})
    monkeypatch.setenv(f"SANDBOX_SIM_{name.upper()}", text)
    assert config_error().startswith(name)
    assert "(from environment): " in config_error()


@pytest.mark.parametrize(
    ("toml", "start"),
    [
        (2 * '[[credentials]]\nclient_key = "a"\nsecret_key = "b"\n', "credentials (from "),
        ('allowed_numbers = ["0244000001", "1"]', "allowed_numbers[1] (from "),
        ('test_cards = { "41" = "VIS" }', "test_cards"),
        ('allowed_hosts = ["a.example", "a b"]', "allowed_hosts[1] (from "),
        ('callback_hosts = { allow = ["a.example", "10/8"] }', "callback_hosts.allow[1] (from "),
        (
            'callback_rewrites = { "https://shop.example" = "localhost:5000" }',
            "callback_rewrites.https://shop.example (from ",
        ),
        ('callback_headers = { "X-Staging" = 1 }', "callback_headers.X-Staging (from "),
        ('callback_hosts = { block = ["a.example"] }', "callback_hosts.block (from "),
    ],
)
@pytest.mark.decision("D2")
def test_an_error_names_the_place_in_a_list_or_table(file: Path, toml: str, start: str) -> None:
    file.write_text(toml, "utf-8")

    assert config_error(file).startswith(start)


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        ({"secret_key": None}, "secret_key", "is required"),
        ({"secret_key": ""}, "secret_key", "must have at least 1 item"),
        ({"client_key": "a:b"}, "client_key", "must be text without a colon"),
        ({"client_key": ""}, "client_key", "must be text without a colon"),
        ({"mode": "X"}, "mode", "must be 'S' or 'P'"),
        ({"service_ids": [0]}, "service_ids[0]", "must be greater than or equal to 1"),
        ({"secret": "c"}, "secret", "is unknown; did you mean secret_key?"),
        ({"x": "c"}, "x", "is unknown; there are client_key, secret_key, secret_key_file"),
    ],
)
@pytest.mark.decision("D2")
def test_an_error_in_credentials_names_the_field_and_the_problem(
    given: dict[str, object], field: str, problem: str
) -> None:
    table = {"client_key": "a", "secret_key": "b"} | given
    text = json.dumps([{name: value for name, value in table.items() if value is not None}])

    assert config_error(credentials=text).startswith(
        f"credentials[0].{field} (from flag): {problem}"
    )


def test_bad_settings_are_listed_together_with_their_origins(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('prot = 1\nport = -1\napproved_senders = "Shop"\n', "utf-8")
    monkeypatch.setenv("SANDBOX_SIM_ALLOWED_PREFIXES", "0244")

    assert config_error(file, callback_hosts="10.0.0.0/8", zzz="1").splitlines() == [
        f"prot (from {file}): there is no such setting; did you mean port?",
        'allowed_prefixes (from environment): must be a list, such as ["0244", "0200", "0270"]',
        "zzz (from flag): there is no such setting",
        'callback_hosts (from flag): must be a table, such as {"deny": ["10.0.0.0/8"]}',
        f"port (from {file}): must be greater than or equal to 0",
        f'approved_senders (from {file}): must be a list, such as ["Shop"]',
    ]


def test_conflicting_settings_are_listed_together() -> None:
    assert config_error(host="0.0.0.0", workers="2", store="memory:").splitlines() == [
        (
            "control_token (from default): must be set because host 0.0.0.0 is not loopback, "
            "so others could control the sandbox; "
            "use --set control_token=SECRET or SANDBOX_SIM_CONTROL_TOKEN"
        ),
        (
            "workers (from flag): 2 processes need a store that they can share, "
            "postgresql://USER@HOST/DATABASE; store is memory:"
        ),
    ]


@pytest.mark.parametrize(
    "name", [n for n, value in defaults().items() if isinstance(value, list | dict)]
)
def test_the_example_in_an_error_is_a_valid_value(file: Path, name: str) -> None:
    file.write_text(f"{name} = 5\n", "utf-8")
    _, example = config_error(file).split(", such as ")
    file.write_text(f"{name} = {example}\n", "utf-8")
    assert load(file).origins == {name: str(file)}

    _, example = config_error(**{name: "x y"}).split(", such as ")
    assert load(None, {name: example}).origins == {name: "flag"}


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_the_colon_of_a_store_may_be_left_out(store: str) -> None:
    assert load(flags={"store": store}).settings.store == f"{store}:"


def test_an_error_does_not_show_a_secret(file: Path) -> None:
    file.write_text('[[credentials]]\nclient_key = 5\nsecret_key = "s3same"\n', "utf-8")

    assert "s3same" not in config_error(file)
    assert "s3same" not in config_error(credentials='[{"secret_key": "s3same"')


@pytest.mark.decision("D37")
@pytest.mark.parametrize(("name", "words", "values"), REFUSED)
def test_a_value_that_cannot_be_used_later_is_refused(
    name: str, words: str, values: tuple[str, ...]
) -> None:
    for value in values:
        assert config_error(**{name: value}) == f"{name} (from flag): {words}", value


@pytest.mark.decision("D37")
@pytest.mark.parametrize(("name", "entry", "words", "values"), REFUSED_ENTRIES)
def test_a_table_entry_that_cannot_be_used_later_is_refused(
    name: str, entry: str, words: str, values: tuple[str, ...]
) -> None:
    for value in values:
        message = config_error(**{name: json.dumps({entry: value})})
        assert message == f"{name}.{entry} (from flag): {words}", value


@pytest.mark.parametrize(
    "other",
    [
        *("HTTPS://Shop.Example/api", "https://shop.example:443/api"),
        *("https://shop.example/api/", "HTTPS://shop.example:443/api//"),
    ],
)
def test_a_header_or_an_address_that_is_given_twice_is_refused(other: str) -> None:
    headers = {"X-Staging": "1", "X-Shop": "2", "x-staging": "3"}
    rewrites = dict.fromkeys(
        ("https://shop.example", "https://shop.example/api", other), "http://localhost:1"
    )

    assert config_error(callback_headers=json.dumps(headers)) == (
        "callback_headers (from flag): "
        "X-Staging and x-staging are the same header; keep one of them"
    )
    assert config_error(callback_rewrites=json.dumps(rewrites)) == (
        f"callback_rewrites (from flag): https://shop.example/api and {other} "
        "are the same address; keep one of them"
    )

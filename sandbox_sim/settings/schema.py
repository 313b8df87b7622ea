"""The settings: names, types, bounds, defaults, descriptions, and rules between settings."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_serializer,
    model_validator,
)

from sandbox_sim.adapters.clock_and_ids import RandomIds, SystemClock
from sandbox_sim.adapters.tls import TlsError, authority_file, from_files
from sandbox_sim.callbacks.destinations import CallbackHosts, CallbackRoutes
from sandbox_sim.operations import NETWORK_OPERATIONS
from sandbox_sim.ports import NetworkConfigError
from sandbox_sim.production.routing import missing_networks
from sandbox_sim.records.behaviour import Behaviour
from sandbox_sim.records.callbacks import Profile
from sandbox_sim.records.transactions import KEPT_IN_A_DATABASE, KEPT_IN_MEMORY
from sandbox_sim.settings.networks import NetworkTable, RouteTable, make_networks
from sandbox_sim.settings.values import (
    AllowedHost,
    BasePath,
    CallbackHost,
    CardNumber,
    Credentials,
    Headers,
    LocalNumber,
    MagicKey,
    MagicOutcome,
    MerchantName,
    Prefix,
    PublicUrl,
    RateLimit,
    Rewrites,
    ServiceKey,
    StoreName,
    host_in,
    read_secret,
)
from sandbox_sim.values.cards import TEST_CARDS, Brand
from sandbox_sim.values.clients import SANDBOX_CLIENT, Client, ServiceMode
from sandbox_sim.values.hosts import Host, is_loopback, is_postgres, mask_url, parse_host_pattern
from sandbox_sim.values.redaction import redact_text

DEFAULT_PORT: Final = 8233
# The longest delay: a pending transaction is stored that long, and no timer overflows.
A_DAY_S: Final = 86_400
A_DAY_MS: Final = A_DAY_S * 1000


# The rate_limit_per_minute of `rate_limit = "field"`; its burst is the default (D10).
_FIELD_RATE_PER_MINUTE: Final = 100.0
# What the setting `lenient` turns on (D34).
LENIENT: Final[Mapping[str, Any]] = {
    "accept_international": True,
    "callback_profile": Profile.SUPERSET,
}


_SANDBOX_CREDENTIALS: Final = Credentials(
    client_key=SANDBOX_CLIENT.client_key, secret_key=SecretStr(SANDBOX_CLIENT.secret_key)
)


class Settings(BaseModel):
    """Every setting with its default; the descriptions are the documentation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(
        DEFAULT_PORT, ge=0, le=65535, description="Port to listen on; 0 picks a free one."
    )
    base_path: BasePath = Field(
        "", description="Every path also works under this prefix, such as /gateway/v1."
    )
    public_url: PublicUrl = Field(
        None,
        description="Public address, used in redirect_url; by default that of the request.",
    )
    store: StoreName = Field(
        "sqlite:",
        description="State: sqlite:PATH (sqlite: alone is a file for this port in "
        "your state directory), memory:, which is lost at a stop, or "
        "postgresql://USER@HOST/DATABASE, which several servers may share.",
    )
    workers: int = Field(
        1, ge=1, description="Processes that serve the port; more than one needs Postgres."
    )
    durability: Literal["process", "power"] = Field(
        "process",
        description="What a SQLite store survives: a killed process, or also a power failure.",
    )
    keep_transactions: int | None = Field(
        None,
        ge=1,
        description="How many transactions are kept for the pages and the control API; by default "
        f"{KEPT_IN_MEMORY:,} of each service in memory, {KEPT_IN_A_DATABASE:,} in all on a file or "
        "Postgres. What is open, of mode P or younger than 15 minutes is never dropped.",
    )
    fast_path: bool = Field(
        True, description="Serve plain requests without aiohttp's protocol: faster, same answers."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info",
        description="info has a line for each request and each callback, debug everything.",
    )
    quiet: bool = Field(
        False, description="Log successful requests and callbacks at debug instead of info."
    )
    log_format: Literal["text", "json"] = Field("text", description="text, or JSON lines.")
    cert: str | None = Field(
        None,
        description="PEM file with the certificate of this server and any intermediate "
        "certificates; together with key, the server speaks HTTPS.",
    )
    key: str | None = Field(
        None, description="PEM file with the private key of cert, without a passphrase."
    )
    tls: bool = Field(
        False,
        description="Speak HTTPS with a certificate from a certificate authority on this machine; "
        "for development.",
    )
    tls_terminated: bool = Field(
        False, description="A proxy in front handles HTTPS, so plain HTTP causes no warning."
    )
    control_token: SecretStr | None = Field(
        None, description="Bearer token of the control API; required unless host is loopback."
    )
    control_token_file: str | None = Field(
        None, description="A file that contains the control_token; set one of the two."
    )
    allowed_hosts: list[AllowedHost] = Field(
        [],
        examples=[["gateway.example"]],
        description="More host names of this server, such as that of a tunnel, and hosts whose "
        "pages may use and frame it: gateway.example, *.example or localhost:3000.",
    )
    max_body_bytes: int = Field(
        1024 * 1024, ge=1, description="Larger request bodies get HTTP 413, code 400."
    )
    sandbox_reject_status: int = Field(
        200, ge=200, le=599, description="HTTP status of the codes 015, 016, 019 and 027."
    )
    rate_limit: RateLimit = Field(
        None,
        examples=["field"],
        description="field: the limit of the real gateway, 100 requests a minute after a burst of "
        "20. The next two settings change its parts.",
    )
    rate_limit_per_minute: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Requests a minute for each client key; unset, there is no limit.",
    )
    rate_limit_burst: int = Field(
        20, ge=1, description="Requests that pass at once before rate_limit_per_minute applies."
    )

    lenient: bool = Field(
        False,
        description="Turn on what most real clients need beyond the interface: "
        "accept_international, and superset as the callback_profile. Each can be set by itself.",
    )
    allowed_prefixes: list[Prefix] = Field(
        ["0244", "0200", "0270"], min_length=1, description="Local prefixes of the allowlist."
    )
    allowed_numbers: list[LocalNumber] = Field(
        [],
        examples=[["0244000001"]],
        description="If set, only these local numbers with an allowed prefix are accepted.",
    )
    match_network: bool = Field(
        False, description="nw must be the network of the prefix: 0244 MTN, 0200 VOD, 0270 AIR."
    )
    accept_international: bool = Field(
        False,
        description="Payments accept 233244000001 as well as 0244000001; they and SMS accept "
        "+233244000001.",
    )
    duplicates: Literal["accept", "reject"] = Field(
        "accept", description="A repeated transaction_id replaces the older payment, or gets 219."
    )
    magic_outcomes: dict[MagicKey, MagicOutcome] = Field(
        {},
        examples=[{"0244000003": "003", "13.37": "001"}],
        description="Not in the interface: numbers or amounts with the status (001, 002, 003) or "
        'the code that their payments get, such as "0244000003" = "003" or "13.37" = "001".',
    )
    settle_delay_ms: int = Field(
        1000, ge=0, le=A_DAY_MS, description="Time from the 202 to status 000 and the callback."
    )
    approval: Literal["auto", "handset"] = Field(
        "auto",
        description="handset: a collection or deposit from a wallet waits until the payer approves "
        "or declines it at /_sandbox/handset/NUMBER.",
    )
    approval_timeout_s: float = Field(
        120, gt=0, le=A_DAY_S, description="Seconds to answer; an unanswered payment becomes 003."
    )
    merchant_names: dict[ServiceKey, MerchantName] = Field(
        {},
        examples=[{"55": "Adwoa's Market"}],
        description="The merchant that payers see on the handset and payment page: a service_id "
        "with the name of its merchant. Without it they see the service_id.",
    )
    test_cards: dict[CardNumber, Brand] = Field(
        dict(TEST_CARDS), description="Test card numbers and their brand."
    )
    sandbox_card_entry: bool = Field(
        False, description="Accept nw CRD, and ask for the card on the hosted page."
    )
    card_auto_complete_ms: int = Field(
        3000,
        ge=0,
        le=A_DAY_MS,
        description="Time after which an unopened card page completes by itself; 0: never.",
    )
    balances: Literal["fixed", "live"] = Field(
        "fixed", description="The fixed balances of the interface, or live: payments change them."
    )

    sms_initial_units: int = Field(
        500, ge=0, description="SMS units of a new service; 0 if its id ends in 9."
    )
    sms_transition_ms: int = Field(
        800, ge=0, le=A_DAY_MS, description="Time from ACKNOWLEDGED to SENT or REFUNDED."
    )
    approved_senders: list[str] = Field(
        [],
        examples=[["Shop"]],
        description="If set, only these sender_id are approved; others get 216.",
    )

    callback_profile: Profile = Field(
        Profile.TRANS, description="Body of callbacks: trans, trans_bare, flat, event or superset."
    )
    callback_profiles: dict[str, Profile] = Field(
        {"*/wc-api/*": Profile.EVENT}, description="Globs for callback_url, each with its profile."
    )
    sign_callbacks: bool = Field(True, description="Send X-Service-Signature with every callback.")
    callback_attempts: int = Field(3, ge=1, description="How many times a callback is attempted.")
    callback_retry_interval_s: float = Field(
        300, ge=0, le=A_DAY_S, description="Seconds between attempts."
    )
    callback_timeout_s: float = Field(
        30, gt=0, le=A_DAY_S, description="Seconds that a receiver has to answer."
    )
    callback_hosts: dict[Literal["allow", "deny"], list[CallbackHost]] = Field(
        {"allow": [], "deny": []},
        examples=[{"deny": ["10.0.0.0/8"]}],
        description="Where callbacks may go: host names, globs, addresses and ranges such as "
        "10.0.0.0/8. deny is checked first; an empty allow means anywhere. A refused address "
        "counts as a failed attempt.",
    )
    callback_rewrites: Rewrites = Field(
        {},
        examples=[{"https://shop.example": "http://localhost:5000"}],
        description="Prefixes of callback addresses and what replaces them, such as "
        '"https://shop.example" = "http://localhost:5000". A prefix is a whole host and whole '
        "parts of the path; the longest match applies.",
    )
    callback_headers: Headers = Field(
        {},
        examples=[{"X-Staging": "1"}],
        description="Additional headers of every callback; they cannot replace its own headers.",
    )

    production: bool = Field(
        False, description="Accept credentials of mode P: networks carry out their payments."
    )
    allow_memory: bool = Field(
        False, description="Let production use store memory:, which loses all payments at a stop."
    )
    keep_notifications_days: int = Field(
        30,
        ge=1,
        le=3650,
        description="Days that notifications of networks are kept. Exchanges of an attempt stay.",
    )
    networks: dict[str, NetworkTable] = Field(
        {},
        examples=[{"staging": {"adapter": "simulated"}}],
        description="The networks of production, each under a name of your choice.",
    )
    routes: list[RouteTable] = Field(
        [],
        examples=[[{"network": "staging", "nw": ["MTN"]}]],
        description="Which network carries which operation and nw; the first match applies.",
    )

    credentials: list[Credentials] = Field(
        [_SANDBOX_CREDENTIALS],
        min_length=1,
        examples=[[{"client_key": "shop", "secret_key": "shop-secret"}]],
        description="Credential sets; they replace the built-in one.",
    )

    @field_serializer("store", when_used="json")
    def _shown_store(self, store: str) -> str:
        return mask_url(store)

    @field_serializer("public_url", when_used="json")
    def _shown_public_url(self, url: str | None) -> str | None:
        return url and redact_text(url)

    @model_validator(mode="after")
    def _turn_on_others(self) -> "Settings":
        """Set what `lenient` and `rate_limit` turn on, without counting it as given."""
        self.__dict__.update({name: LENIENT[name] for name in self.turned_on_by_lenient})
        if "rate_limit_per_minute" in self.turned_on:
            self.__dict__["rate_limit_per_minute"] = _FIELD_RATE_PER_MINUTE
        return self

    @model_validator(mode="after")
    def _check_consistency(self) -> "Settings":
        """Raise `ValueError`, with a line `name: problem` for each conflict between settings."""
        problems = []
        try:
            self._read_token()
        except ValueError as error:
            problems.append(str(error))
        problems += _problems(self)
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _read_token(self) -> None:
        """Read `control_token` from its file. Raises `ValueError`."""
        if self.control_token_file is None:
            return
        if self.control_token is not None:
            raise ValueError("control_token_file: control_token is set too; keep one of them")
        token = read_secret("control_token_file", self.control_token_file)
        self.__dict__["control_token"] = SecretStr(token)

    @property
    def turned_on_by_lenient(self) -> tuple[str, ...]:
        """The settings that `lenient` turned on: those that were not set by themselves (D34)."""
        if not self.lenient:
            return ()
        return tuple(name for name in LENIENT if name not in self.model_fields_set)

    @property
    def turned_on(self) -> Mapping[str, str]:
        """The settings that another setting turned on, each with the name of that one."""
        turned_on_by = dict.fromkeys(self.turned_on_by_lenient, "lenient")
        if self.rate_limit and "rate_limit_per_minute" not in self.model_fields_set:
            turned_on_by["rate_limit_per_minute"] = "rate_limit"
        return turned_on_by

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def shown_host(self) -> str:
        """The host for a message; an empty one is named as what it means."""
        return self.host or "'' (all addresses of this machine)"

    @property
    def serves_others(self) -> bool:
        """Whether clients on other machines reach the server, directly or through a proxy."""
        return not self.loopback or self.tls_terminated

    @property
    def scheme(self) -> str:
        """The scheme of the addresses of this server."""
        return "https" if self.tls or self.cert else "http"

    @property
    def is_secured(self) -> bool:
        """Whether what clients send is encrypted, by this server or by a proxy in front."""
        return self.scheme == "https" or self.tls_terminated

    @property
    def trusted(self) -> Path | None:
        """The PEM file that makes clients trust this server; None if it speaks plain HTTP."""
        if self.cert:
            return Path(self.cert).expanduser()
        return authority_file(authority_folder()) if self.tls else None

    @property
    def sqlite_path(self) -> Path:
        """The file of a SQLite store; by default one in the user's state directory.

        Each setting `port` has a default file of its own, so servers on two ports run side by side.
        """
        path = self.store.removeprefix("sqlite:")
        if path:
            return Path(path).expanduser()
        suffix = "" if self.port == DEFAULT_PORT else f"-{self.port}"
        return state_folder() / f"sandbox-sim{suffix}.sqlite3"

    @property
    def shown_store(self) -> str:
        """The place of the state, in words."""
        if self.store == "memory:":
            return "in memory, gone when the server stops"
        return mask_url(self.store) if is_postgres(self.store) else str(self.sqlite_path)

    @property
    def token(self) -> str | None:
        """The setting `control_token`, unmasked; None if it is empty, as `${TOKEN}` may be."""
        return self.control_token.get_secret_value() or None if self.control_token else None

    def listed_hosts(self) -> list[Host]:
        """The hosts of `allowed_hosts` and of `public_url`."""
        public = [host_in(self.public_url)] if self.public_url else []
        return [*map(parse_host_pattern, self.allowed_hosts), *public]

    def receivers(self) -> CallbackHosts:
        """The hosts that callbacks may go to."""
        lists = self.callback_hosts
        parsed = CallbackHosts.parse(lists.get("allow", ()), lists.get("deny", ()))
        return replace(parsed, refuse_private=self.production)

    def callback_routes(self) -> CallbackRoutes:
        """The rewrites and additional headers of callbacks."""
        headers = {name: text.get_secret_value() for name, text in self.callback_headers.items()}
        return CallbackRoutes.parse(self.callback_rewrites, headers)

    def behaviour(self) -> Behaviour:
        """The settings that can change while the server runs, as they are when it starts."""
        return Behaviour.parse({**vars(self), "turned_on_by_lenient": self.turned_on_by_lenient})

    def clients(self) -> dict[str, Client]:
        """The clients by their key."""
        clients = (entry.client() for entry in self.credentials)
        modes = {ServiceMode.SANDBOX, *([ServiceMode.PRODUCTION] if self.production else [])}
        return {each.client_key: replace(each, served=each.mode in modes) for each in clients}


def _problems(settings: Settings) -> Iterator[str]:
    """A line `name: problem` for each setting that conflicts with others."""
    keys = [entry.client_key for entry in settings.credentials]
    if len(set(keys)) < len(keys):
        yield "credentials: each client_key must be unique"
    if not settings.loopback and settings.token is None:
        yield (
            f"control_token: must be set because host {settings.shown_host} is not loopback, "
            "so others could control the sandbox; "
            "use --set control_token=SECRET or SANDBOX_SIM_CONTROL_TOKEN"
        )
    if settings.workers > 1 and not is_postgres(settings.store):
        needed = "processes need a store that they can share, postgresql://USER@HOST/DATABASE"
        yield f"workers: {settings.workers} {needed}; store is {settings.store}"
    yield from _tls_problems(settings)
    yield from _network_problems(settings)


def _tls_problems(settings: Settings) -> Iterator[str]:
    if settings.tls and (settings.cert or settings.key):
        yield "tls: creates its own certificate, so set either tls, or cert and key"
    elif settings.cert and settings.key:
        try:
            from_files(settings.cert, settings.key)
        except TlsError as error:
            yield f"cert: {error}"
    elif settings.cert:
        yield "cert: needs key too, the file with its private key"
    elif settings.key:
        yield "key: needs cert too, the file with its certificate"


def _network_problems(settings: Settings) -> Iterator[str]:
    """A line `name: problem` for each setting of networks that is invalid or unsafe."""
    routes = [table.route for table in settings.routes]
    routed_operations = {each for route in routes for each in route.operations}
    for operation in sorted(routed_operations.difference(NETWORK_OPERATIONS)):
        yield f"routes: no network carries the operation {operation}"
    if settings.production:
        for name in missing_networks(routes, settings.networks):
            yield f"routes: there is no table [networks.{name}]"
        try:
            make_networks(settings.networks, SystemClock(), RandomIds())
        except NetworkConfigError as error:
            yield from str(error).splitlines()
        yield from _unsafe_problems(settings)


def _unsafe_problems(settings: Settings) -> Iterator[str]:
    """A line `name: problem` for each setting that is unsafe in production."""
    builtin = SANDBOX_CLIENT.client_key, SANDBOX_CLIENT.secret_key
    pairs = {
        (each.client_key, each.secret_key.get_secret_value()): each.mode
        for each in settings.credentials
    }
    if ServiceMode.PRODUCTION not in pairs.values():
        yield 'production: needs a table [[credentials]] with mode = "P"'
    if pairs.get(builtin) is ServiceMode.PRODUCTION:
        yield "credentials: the built-in pair is public, so it cannot have mode P"
    if not settings.loopback and builtin in pairs:
        problem = f"the built-in pair is public, and host {settings.shown_host} is not loopback"
        yield f"credentials: {problem}"
    if not settings.loopback and not settings.is_secured:
        yield (
            f"host: {settings.shown_host} is not loopback and this is plain HTTP; give --tls, or "
            "--cert and --key, or set tls_terminated if a proxy in front handles HTTPS"
        )
    if settings.tls_terminated and not settings.public_url:
        yield (
            "public_url: must be set with tls_terminated, because networks and browsers call the "
            'address of the proxy, which this server does not know; write it as "https://YOUR-HOST"'
        )
    if settings.store == "memory:" and not settings.allow_memory:
        yield "store: memory: forgets payments when it stops; set allow_memory = true for tests"


def state_folder() -> Path:
    """The folder in which the state of this user's servers is kept.

    Raises `OSError` if the user has no home folder.
    """
    from platformdirs import user_state_path  # noqa: PLC0415 -- not every command needs it

    try:
        return user_state_path("sandbox-sim", appauthor=False)
    except RuntimeError:
        raise OSError("this user has no home folder: set HOME or XDG_STATE_HOME") from None


def certify_report() -> Path:
    """The report of the last run of certify, which the dashboard shows."""
    return state_folder() / "certify.html"


def authority_folder() -> Path:
    """The folder of the certificate authority of this machine, for the setting `tls`."""
    return state_folder() / "tls"


def defaults() -> dict[str, Any]:
    """The default of every setting."""
    return {name: field.get_default() for name, field in Settings.model_fields.items()}

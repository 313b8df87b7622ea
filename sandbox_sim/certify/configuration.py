"""The file certify.toml: the gateway that the application uses, and how the application is asked.

Placeholders stand in addresses, headers, bodies and commands: `{phone}` such as 0244000001,
`{phone_233}` such as 233244000001, `{network}`, `{amount}` and `{reference}` when an order is
placed, `{order}` when its state is read, `{gateway}` and `{service_id}` in both.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, PrivateAttr, SecretStr, field_validator, model_validator

from sandbox_sim.certify.cases import State
from sandbox_sim.certify.files import Duration, FileError, Table, read

PLACEHOLDERS: Final = (
    *("phone", "phone_233", "network", "amount", "reference", "order", "gateway", "service_id"),
)
TEMPLATE: Final = Path(__file__).parent / "certify.toml"
ISOLATION_NEEDED: Final = (
    "cases that run at once have a gateway each, so order and card_order must tell the application "
    "its base URL, with {gateway}, or its service, with {service_id}"
)
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_]\w*)\}")


class ApplicationRequest(Table):
    """An HTTP request or a shell command, and how to extract a text from its answer.

    field: a path such as `order.id` or `items.0.state` in a JSON answer. pattern: a regular
    expression whose first group is searched in the headers and the body, or in the output.
    """

    url: str | None = None
    method: Literal["GET", "POST", "PUT"] | None = None
    headers: dict[str, SecretStr] = Field({})
    body: dict[str, Any] | None = Field(None, alias="json")
    form: dict[str, str] | None = None
    command: str | None = Field(None, min_length=1)
    field: str | None = None
    pattern: str | None = None

    @field_validator("url")
    @classmethod
    def _check_address(cls, value: str | None) -> str | None:
        if value is not None and not urlsplit(value).hostname:
            raise ValueError("must be an address such as http://127.0.0.1:8000/orders")
        if value is not None and urlsplit(value).scheme not in {"http", "https"}:
            raise ValueError("must begin with http:// or https://")
        return value

    @field_validator("pattern")
    @classmethod
    def _check_pattern(cls, value: str | None) -> str | None:
        try:
            groups = re.compile(value or "()").groups
        except re.error as error:
            raise ValueError(f"is not a regular expression: {error}") from None
        if groups != 1:
            raise ValueError("must have one group in parentheses: the text that is wanted")
        return value

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if (self.url is None) is (self.command is None):
            raise ValueError("must have either url or command")
        if self.command is not None and (self.body or self.form or self.method or self.headers):
            raise ValueError("command goes without method, headers, json and form")
        if self.body is not None and self.form is not None:
            raise ValueError("must have json or form, not both")
        if self.field is not None and self.pattern is not None:
            raise ValueError("must have field or pattern, not both")
        for name in _PLACEHOLDER.findall(self._placeholder_texts):
            is_placeholder = name.islower() or name.lower() in PLACEHOLDERS
            if is_placeholder and name not in PLACEHOLDERS:
                known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
                raise ValueError(f"there is no placeholder {{{name}}}; there are {known}")
        return self

    def has_placeholder(self, placeholder: str) -> bool:
        """Whether it has this placeholder."""
        return placeholder in _PLACEHOLDER.findall(self._placeholder_texts)

    @property
    def extractor(self) -> str:
        """The name of the field that says how to extract the text from the answer."""
        if self.pattern is None:
            return "command" if self.field is None else "field"
        return "pattern"

    @property
    def secrets(self) -> Iterable[str]:
        """The values of its headers, without the placeholders."""
        for value in self.headers.values():
            yield from _PLACEHOLDER.split(value.get_secret_value())[::2]

    @property
    def _placeholder_texts(self) -> str:
        """All texts that may have placeholders."""
        headers = [value.get_secret_value() for value in self.headers.values()]
        return repr((self.url, headers, self.body, self.form, self.command))


class ApplicationTable(Table):
    """The settings of the application.

    polls_every: the longest time between two status queries of a pending order; 0s: it sends none.
    gives_up_after: how long it waits for an answer of the gateway. reacts_within: how long it
    takes to apply a status. restart: a command. receipts: `sms` if the gateway sends them.
    """

    service_id: int = Field(55, ge=1, le=10**12)
    client_key: str = "sandbox_key"
    secret_key: SecretStr = SecretStr("sandbox_secret")
    polls_every: Duration = timedelta(seconds=10)
    gives_up_after: Duration = timedelta(seconds=10)
    reacts_within: Duration = timedelta(seconds=2)
    restart: str | None = Field(None, min_length=1)
    receipts: Literal["sms"] | ApplicationRequest | None = None

    @field_validator("service_id")
    @classmethod
    def _check_balances(cls, value: int) -> int:
        if value % 10 == 9:
            raise ValueError("must not end in 9: the sandbox gives such services low balances")
        return value

    @property
    def order_timeout(self) -> timedelta:
        """The longest time to place an order, in which its payment may be sent twice."""
        return 2 * self.gives_up_after + self.reacts_within + timedelta(seconds=3)


class CertifyTerms(Table):
    """The terms of a run.

    limit: the real time of the whole run. not_applicable: cases by name, each with the reason.
    """

    application: ApplicationTable = ApplicationTable()
    limit: Duration = timedelta(minutes=10)
    not_applicable: dict[str, str] = Field({})


class Configuration(CertifyTerms):
    """certify.toml. at_once: how many cases run at once, if their orders can be told apart."""

    at_once: int = Field(4, ge=1, le=64)
    gateway: dict[str, Any] = Field({})
    order: ApplicationRequest
    card_order: ApplicationRequest | None = None
    refund: ApplicationRequest | None = None
    state: ApplicationRequest
    words: dict[State, list[str]]
    _file: str = PrivateAttr(TEMPLATE.name)

    @property
    def file(self) -> str:
        """The file, as messages name it."""
        return self._file

    @field_validator("words")
    @classmethod
    def _check_words(cls, value: dict[State, list[str]]) -> dict[State, list[str]]:
        seen: dict[str, str] = {}
        for state, words in value.items():
            for word in words:
                if seen.setdefault(word, state) != state:
                    raise ValueError(f"{word!r} stands for {seen[word]} and for {state}")
        if not value.get("paid") or not value.get("pending"):
            raise ValueError("must have the words for paid and for pending")
        return value

    @model_validator(mode="after")
    def _check_requests(self) -> Self:
        if self.at_once > 1 and "at_once" in self.model_fields_set and self.isolated_by is None:
            raise ValueError(f"at_once: {ISOLATION_NEEDED}")
        for name, request in (("order", self.order), ("card_order", self.card_order)):
            if request is None or request.field or request.pattern:
                continue
            if not request.has_placeholder("reference"):
                raise ValueError(
                    f"{name}: must say where its answer has the number of the order, by field or "
                    "pattern, or send a {reference}, which is the number then"
                )
        if self.state.field is None and self.state.pattern is None and self.state.url:
            raise ValueError("state: must say where the answer has the state, by field or pattern")
        return self

    @property
    def isolated_by(self) -> Literal["gateway", "service_id"] | None:
        """The placeholder by which orders of several cases differ; None: cases run one by one."""
        orders = [each for each in (self.order, self.card_order) if each is not None]
        if all(each.has_placeholder("gateway") for each in orders):
            return "gateway"
        return "service_id" if all(each.has_placeholder("service_id") for each in orders) else None

    def services(self, cases: int) -> Sequence[int]:
        """The services of a run: that of the file, and one for each case if each needs its own."""
        first = self.application.service_id
        following = (each for each in count(first + 1) if each % 10 != 9)
        needed = cases if self.at_once > 1 and self.isolated_by == "service_id" else 0
        return [first, *islice(following, needed)]

    def for_service(self, service_id: int) -> Self:
        """The configuration with another service."""
        application = self.application.model_copy(update={"service_id": service_id})
        return self.model_copy(update={"application": application})

    def gateway_settings(self, store: str, cases: int) -> Mapping[str, Any]:
        """The settings of a gateway with this store, for this many cases beside one another."""
        application = self.application
        credentials = {
            "client_key": application.client_key,
            "secret_key": application.secret_key.get_secret_value(),
            "service_ids": self.services(cases),
        }
        return {"port": 8233, **self.gateway, "store": store, "credentials": [credentials]}

    @property
    def secrets(self) -> frozenset[str]:
        """The texts to mask in reports: the secret key, and the values of headers."""
        requests = (
            *(self.order, self.card_order, self.refund, self.state),
            self.application.receipts,
        )
        used = (each for each in requests if isinstance(each, ApplicationRequest))
        values = (part for each in used for part in each.secrets)
        return frozenset({self.application.secret_key.get_secret_value(), *values} - {""})


def load(file: Path) -> Configuration:
    """Read the file. Raises `FileError`."""
    if not file.exists():
        raise FileError(f"{file}: there is no such file; sandbox-sim certify init {file} writes it")
    found = read(file, Configuration)
    found._file = str(file)  # noqa: SLF001 -- the field of a model would be one of the file
    return found

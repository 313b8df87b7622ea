"""A request of `submit` or `status`, made from its templates."""

from collections.abc import Mapping
from typing import NamedTuple

from sandbox_sim.adapters.networks.http_json import templates
from sandbox_sim.adapters.networks.http_json.placeholders import NoValue
from sandbox_sim.adapters.networks.http_json.settings import StatusTable, SubmitTable
from sandbox_sim.adapters.networks.http_json.templates import Values


class Outgoing(NamedTuple):
    """A request as it goes to the HTTP client."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class RequestTemplate:
    """The templates of one request.

    auth: the header that has the secret; empty where it is sent in another way.
    """

    def __init__(
        self, table: SubmitTable | StatusTable, base_url: str, auth: Mapping[str, str]
    ) -> None:
        self._table = table
        self._base_url = base_url
        self._auth = auth
        self._kind: Mapping[str, str] = {}
        if table.json_body is not None:
            self._kind = {"Content-Type": "application/json"}
        elif table.form is not None:
            self._kind = {"Content-Type": "application/x-www-form-urlencoded"}
        if "content-type" in map(str.lower, table.headers):
            self._kind = {}

    def filled_in(self, values: Values) -> Outgoing:
        """The request with these values.

        Raises:
            NoValue: a value does not fit its place.
        """
        table = self._table
        headers = {name: text.text(values) for name, text in table.headers.items()}
        for name, value in headers.items():
            if not all(" " <= character <= "~" for character in value):
                raise NoValue(f"the header {name} would have characters that HTTP does not take")
        url = self._base_url + templates.as_path(table.path, values)
        return Outgoing(
            table.method, url, {**self._kind, **headers, **self._auth}, self._body(values)
        )

    def _body(self, values: Values) -> bytes:
        if self._table.json_body is not None:
            return self._table.json_body.text(values).encode()
        if self._table.form is not None:
            return templates.as_form(self._table.form, values).encode()
        return b""

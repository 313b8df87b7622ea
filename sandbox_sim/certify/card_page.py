"""What a customer does with a browser on the hosted card page, and then at the landing page."""

from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from sandbox_sim.certify.application import ApplicationAnswer, send
from sandbox_sim.settings.schema import Settings
from sandbox_sim.testing import Request

_FORM: Final = "application/x-www-form-urlencoded"


class CardPageVisit:
    """A browser with the page that the gateway gave for a card payment.

    request: the one that began the payment. within: how long the application may take to answer.
    """

    def __init__(self, request: Request, settings: Settings, within: timedelta) -> None:
        """Raises `ValueError` where the gateway gave no page."""
        answer: Any = request.answer
        body: Any = request.body
        if "redirect_url" not in answer:
            raise ValueError(f"card: the gateway gave no card page: {request.why}")
        self._page: str = answer["redirect_url"]
        self._landing: str = body["landing_page"]
        self._settings = settings
        self._within = within

    def do(self, choice: str) -> None:
        """Open the page, and choose there. choice: open, pay, fail, cancel, or return."""
        if choice == "return":
            return
        self._ask("GET", None)
        if choice != "open":
            number = next(iter(self._settings.behaviour().test_cards), "")
            self._ask("POST", urlencode({"choice": choice, "card_number": number}).encode())

    def land(self) -> ApplicationAnswer:
        """Go to the landing page that the application gave. Raises as `send` does."""
        return send("GET", self._landing, None, {"Accept": "text/html"}, self._within)

    def _ask(self, method: str, form: bytes | None) -> None:
        parts = urlsplit(self._page)
        headers = {"Content-Type": _FORM, "Origin": f"{parts.scheme}://{parts.netloc}"}
        tls = None
        if self._settings.trusted is not None:
            # Imported only here, as most gateways of tests speak plain HTTP.
            from sandbox_sim.adapters.tls import client_context  # noqa: PLC0415

            tls = client_context(self._settings.trusted)
        send(method, self._page, form, headers, self._within, tls)

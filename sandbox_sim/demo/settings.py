"""What the shop must know about itself and about its account at the gateway."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShopSettings:
    """The settings of the shop.

    url: where browsers and the gateway reach the shop, without a slash at the end.
    gateway_url: where the shop reaches the gateway, without a slash at the end.
    payment_pages: the origins that the browser may be sent to for a card payment.
    """

    url: str
    gateway_url: str
    client_key: str
    secret_key: str
    service_id: int
    payment_pages: tuple[str, ...]
    # The dashboard of the gateway as browsers reach it, with a slash at the end; empty where there
    # is none, and then there is no screen with shop, phone and timeline either.
    dashboard: str = ""
    # Whether customers approve payments on the handset pages of the gateway.
    asks_on_handset: bool = False
    sender_id: str = "AdwoaShop"
    currency: str = "GHS"
    seed: int = 42
    # Whether the setting `magic_outcomes` of the gateway has the numbers of catalogue.py.
    magic_numbers: bool = False
    # Seconds of one request to the gateway.
    timeout_s: float = 10
    # The first status query comes this long after the payment was sent; each further one waits
    # twice as long as the one before, at most `ask_at_most_s`. All in seconds.
    ask_after_s: float = 10
    ask_at_most_s: float = 300
    # Seconds between two looks whether there is something to ask.
    look_every_s: float = 1
    # A request without an answer may still arrive within this time, in seconds.
    arrives_within_s: float = 30

    @property
    def callback_url(self) -> str:
        """Where the gateway sends callbacks."""
        return self.url + CALLBACK_PATH


CALLBACK_PATH = "/callbacks/payments"

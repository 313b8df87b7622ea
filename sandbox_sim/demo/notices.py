"""Tells the customer by SMS what became of the order. A failing SMS changes nothing about it."""

from sandbox_sim.demo.clock import Clock
from sandbox_sim.demo.gateway_client import GatewayClient, Unanswered
from sandbox_sim.demo.orders import Order, OrderState
from sandbox_sim.demo.settings import ShopSettings
from sandbox_sim.demo.texts import Texts


class Notices:
    """Sends one SMS for each state that an order reaches."""

    def __init__(
        self, settings: ShopSettings, texts: Texts, gateway: GatewayClient, clock: Clock
    ) -> None:
        self._settings = settings
        self._texts = texts
        self._gateway = gateway
        self._clock = clock

    async def send(self, order: Order, state: OrderState) -> None:
        """Send the SMS about a state that an order has reached, and note how it went."""
        text = self._text(order, state)
        phone = order.customer.phone
        try:
            refused = await self._gateway.send_sms(phone, text)
        except Unanswered as error:
            order.note(self._clock.now(), "sms_unanswered", phone=phone, why=error)
            return
        if refused is not None:
            facts = {"phone": phone, "code": refused.code, "why": refused.message}
            order.note(self._clock.now(), "sms_refused", **facts)
            return
        order.messages.append(text)
        order.note(self._clock.now(), "sms_sent", phone=phone, text=text)

    def _text(self, order: Order, state: OrderState) -> str:
        return self._texts.sms[state].format(
            shop=self._texts.shop,
            number=order.number,
            currency=order.currency,
            amount=f"{order.total:.2f}",
            name=order.customer.name.split()[0],
        )

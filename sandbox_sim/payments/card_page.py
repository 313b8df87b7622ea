"""The hosted card page behind `redirect_url`: a person decides, or the payment times out (D20)."""

from dataclasses import dataclass
from typing import NamedTuple

from sandbox_sim.overrides.behaviour import BehaviourHolder
from sandbox_sim.payments.sandbox_rules import card_refusal
from sandbox_sim.payments.settlement import Settlement
from sandbox_sim.ports import Clock, Store, Unit
from sandbox_sim.records.transactions import CardPage, Choice, Status, TransactionRecord


class HostedPage(NamedTuple):
    """What the page shows.

    problem: what is wrong with the card number that was entered; None if nothing is.
    """

    card_page: CardPage
    transaction: TransactionRecord
    problem: str | None = None


@dataclass(eq=False, repr=False)
class CardPages:
    """Shows card pages and decides their payments; None for a missing or expired page."""

    store: Store
    clock: Clock
    settlement: Settlement
    behaviour: BehaviourHolder

    async def view(self, card_page_id: str, *, opening: bool) -> HostedPage | None:
        """The page of this id.

        opening: a browser opens it (GET, not HEAD), so that from now on a person decides.
        """

        async def work(unit: Unit) -> HostedPage | None:
            page = await self._page(unit, card_page_id)
            if page is not None and opening and page.transaction.settles_by_itself:
                await unit.save_transaction(page.transaction._replace(by_hand=True))
            return page

        return await self.store.run(work)

    async def choose(
        self, card_page_id: str, choice: Choice, card_number: str
    ) -> HostedPage | None:
        """Pay, fail or cancel; a payment that was decided before stays as it is."""

        async def work(unit: Unit) -> HostedPage | None:
            page = await self._page(unit, card_page_id)
            if page is None or page.transaction.status is not Status.PENDING:
                return page
            transaction = page.transaction
            if transaction.payment.uses_card_entry and choice is Choice.PAY:
                refusal = card_refusal(card_number, None, self.behaviour.present)
                if refusal is not None:
                    return page._replace(problem="This card is not one of the sandbox test cards")
                paid = transaction.payment.with_masked_card(card_number)
                transaction = transaction._replace(payment=paid)
            status = transaction.final_status if choice is Choice.PAY else choice.status
            if status is Status.PENDING:
                return page  # an override keeps it pending
            # A failed payment sends no callback; a cancelled one does (D31).
            now, notify = self.clock.now(), choice is not Choice.FAIL
            conclude = self.settlement.conclude
            decided = await conclude(unit, transaction, status, now, notify=notify)
            return page._replace(transaction=decided)

        return await self.store.run(work)

    async def _page(self, unit: Unit, card_page_id: str) -> HostedPage | None:
        card_page = await unit.card_page(card_page_id)
        if card_page is None:
            return None
        transaction = await unit.transaction_by_network_id(
            card_page.service_id, card_page.network_transaction_id
        )
        return None if transaction is None else HostedPage(card_page, transaction)

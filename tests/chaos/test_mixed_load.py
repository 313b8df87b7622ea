"""The mixed load of a chaos run: its names."""

from itertools import count
from random import Random

from chaos.mixed_load import Shop
from chaos.request_drafts import PaymentDraft, SendDraft
from sandbox_sim.domain.redaction import redact_text


class TestNames:
    def test_are_never_masked_as_card_numbers(self) -> None:
        # A run of this second once had names that were card numbers, as its service is a prefix.
        shop = Shop(Random(1), "http://127.0.0.1:9/", count(5347609000), "815420-t6b02d499")
        drafts = [shop.next() for _ in range(2_000)]
        names = [draft.transaction_id for draft in drafts if isinstance(draft, PaymentDraft)]
        names += [draft.body["msg_body"] for draft in drafts if isinstance(draft, SendDraft)]
        assert len(names) > 1_000
        assert [name for name in names if redact_text(name) != name] == []

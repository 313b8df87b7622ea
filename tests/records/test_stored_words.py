"""The words that stores keep and the control API shows, which no release may change."""

from enum import StrEnum

import pytest

from sandbox_sim.operations import Operation
from sandbox_sim.overrides.faults import AnswerFault
from sandbox_sim.payments.approval import PromptDecision
from sandbox_sim.production.circuit_breaker import BreakerState
from sandbox_sim.records.attempts import Change
from sandbox_sim.records.callbacks import DeliveryState, Profile
from sandbox_sim.records.exchanges import NotificationState
from sandbox_sim.records.jobs import JobKind
from sandbox_sim.records.ledger import AccountKind, Reason, TransferKind
from sandbox_sim.records.messages import SmsStatus
from sandbox_sim.records.overrides import UserRuleKind
from sandbox_sim.records.reports import Field, Outcome, Source
from sandbox_sim.records.transactions import Choice, Status

WORDS: dict[type[StrEnum], str] = {
    AccountKind: "wallet clearing fees issued suspense",
    AnswerFault: "connection_reset empty_response malformed_json timeout",
    BreakerState: "closed open probing",
    Change: "nothing noted ended reversed mismatch contradiction",
    Choice: "pay fail cancel",
    DeliveryState: "pending retrying delivered failed dropped",
    Field: "reference amount currency operation",
    JobKind: (
        "settle settle-sms deliver let-go deliver-live ask-network recheck-final send-sms "
        "read-notification"
    ),
    NotificationState: "new applied unmatched refused failed",
    Operation: (
        "collect card deposit payout bill airtime status balance sms bulk-sms sms-history "
        "sms-balance"
    ),
    Outcome: "not_sent refused pending succeeded failed reversed unknown",
    Profile: "trans trans_bare flat event superset",
    PromptDecision: "approve decline",
    Reason: (
        "opening charge refund topup collected deposited spent returned reversed suspended "
        "resolved adjusted undone closed"
    ),
    SmsStatus: "ACKNOWLEDGED QUEUED SENT FAILED REFUNDED",
    Source: "submit status notification",
    Status: "000 001 002 003",
    TransferKind: "posted pending post void",
    UserRuleKind: "override fault",
}


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: kind.__name__)
def test_each_kind_has_its_words(kind: type[StrEnum]) -> None:
    assert " ".join(kind) == WORDS[kind]

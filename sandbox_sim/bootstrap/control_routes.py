"""The routes under `/_sandbox/` and what each of them needs."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from sandbox_sim.bootstrap.production import health_groups, live_actions
from sandbox_sim.domain.control.user_rules import UserRuleKind
from sandbox_sim.gateway.control.snapshots import Snapshots
from sandbox_sim.gateway.ledger.ledger_control import Ledger
from sandbox_sim.gateway.ledger.live_ledger import LiveLedger
from sandbox_sim.web.control.callbacks.doctor import DoctorRoutes
from sandbox_sim.web.control.callbacks.retries import CallbackRetryRoutes
from sandbox_sim.web.control.clock import ClockRoutes
from sandbox_sim.web.control.faults import FaultBody, FaultView
from sandbox_sim.web.control.handlers import RouteGroup
from sandbox_sim.web.control.ledger import LedgerRoutes
from sandbox_sim.web.control.manual_actions import ManualActionRoutes
from sandbox_sim.web.control.overrides import OverrideBody, OverrideView
from sandbox_sim.web.control.records import RecordRoutes
from sandbox_sim.web.control.seed import SeedRoutes
from sandbox_sim.web.control.snapshots import SnapshotRoutes
from sandbox_sim.web.control.user_rules import UserRuleRoutes
from sandbox_sim.web.networks.attempts import AttemptRoutes

if TYPE_CHECKING:
    from sandbox_sim.bootstrap.parts import Parts
    from sandbox_sim.gateway.callbacks.receiver_examination import ReceiverExamination


def route_groups(parts: "Parts") -> Sequence[RouteGroup]:
    """The routes, without those of the live feed and of the OpenAPI document."""
    live, production = live_actions(parts.production), parts.production
    live_records = None if production is None else production.records
    rules = parts.user_rules
    snapshots = Snapshots(parts.store, parts.clock, parts.journal, parts.deliveries)
    return [
        *health_groups(production, parts.store, parts.clock, parts.activity, parts.deliveries),
        RecordRoutes(parts.records, parts.record_ids, live_records),
        AttemptRoutes(live_records),
        ManualActionRoutes(parts.records, parts.record_ids, parts.manual_actions, live),
        CallbackRetryRoutes(parts.callback_retries),
        DoctorRoutes(parts.record_ids, partial(_receiver_examination, parts)),
        parts.inbox_routes(),
        ClockRoutes(parts.clock, parts.clock_control),
        UserRuleRoutes(rules, UserRuleKind.OVERRIDE, "overrides", OverrideBody, OverrideView),
        UserRuleRoutes(rules, UserRuleKind.FAULT, "faults", FaultBody, FaultView),
        LedgerRoutes(
            Ledger(parts.store, parts.clock, parts.accounts),
            live,
            None if production is None else LiveLedger(parts.store),
        ),
        SnapshotRoutes(snapshots),
        SeedRoutes(parts.seeding(), parts.public_address),
        *parts.pages.groups,
    ]


def _receiver_examination(parts: "Parts") -> "ReceiverExamination":
    """Examines receivers, by the sender and the settings of callbacks."""
    from sandbox_sim.gateway.callbacks import receiver_examination  # noqa: PLC0415 -- serve starts without it

    return receiver_examination.ReceiverExamination(
        parts.store,
        parts.sender,
        parts.clock,
        parts.ids,
        parts.clients.values(),
        parts.callback_settings,
        parts.settings.callback_routes(),
        timedelta(seconds=parts.settings.callback_timeout_s),
    )

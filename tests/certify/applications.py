"""Cases and configurations to try, and an application that knows nothing of its orders."""

from datetime import timedelta
from typing import Any, Final

from sandbox_sim.certify.application import ApplicationTime, OrderUnreadable, RealTime
from sandbox_sim.certify.cases import CertifyCase, PlacedOrder, State
from sandbox_sim.certify.configuration import Configuration

CASE: Final = {"title": "A case", "good": "Does it right.", "why": "It costs.", "mend": "Mend it."}


def case_of(*steps: Any, **fields: Any) -> CertifyCase:
    return CertifyCase.model_validate({**CASE, "steps": steps or [{"order": {}}], **fields})


def configuration(**tables: Any) -> Configuration:
    document = {
        "order": {"command": "{reference}"},
        "state": {"command": "x"},
        "words": {"paid": ["PAID"], "pending": ["NEW"], "failed": ["GONE"]},
    }
    return Configuration.model_validate({**document, **tables})


class Forgetful:
    """An application that has lost its orders."""

    time: ApplicationTime = RealTime()

    def why_not_applicable(self, case: CertifyCase) -> None:
        return None

    def place(self, order: PlacedOrder, reference: str, within: timedelta) -> str:
        return reference

    def refund(self, order: str, within: timedelta) -> None:
        pass

    def state(self, order: str) -> State:
        raise OrderUnreadable("HTTP 404")

    def receipts(self, order: str) -> int | None:
        return None

    def restart(self) -> None:
        pass

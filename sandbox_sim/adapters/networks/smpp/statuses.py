"""The command statuses of SMPP 3.4: their names, and what each says of a `submit_sm`.

Source: SMPP 3.4, section 5.1.3. A status that is not listed here, such as one of a vendor, says
nothing: the SMSC may have taken the message.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sandbox_sim.domain.response_codes import Code

OK: Final = 0x00
INVALID_COMMAND: Final = 0x03
ALREADY_BOUND: Final = 0x05
# To an SMSC: deliver it again later, or never.
TEMPORARY_ERROR: Final = 0x64
PERMANENT_ERROR: Final = 0x65

_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {
        0x00: "ESME_ROK",
        0x01: "ESME_RINVMSGLEN",
        0x02: "ESME_RINVCMDLEN",
        0x03: "ESME_RINVCMDID",
        0x04: "ESME_RINVBNDSTS",
        0x05: "ESME_RALYBND",
        0x06: "ESME_RINVPRTFLG",
        0x07: "ESME_RINVREGDLVFLG",
        0x08: "ESME_RSYSERR",
        0x0A: "ESME_RINVSRCADR",
        0x0B: "ESME_RINVDSTADR",
        0x0C: "ESME_RINVMSGID",
        0x0D: "ESME_RBINDFAIL",
        0x0E: "ESME_RINVPASWD",
        0x0F: "ESME_RINVSYSID",
        0x11: "ESME_RCANCELFAIL",
        0x13: "ESME_RREPLACEFAIL",
        0x14: "ESME_RMSGQFUL",
        0x15: "ESME_RINVSERTYP",
        0x33: "ESME_RINVNUMDESTS",
        0x34: "ESME_RINVDLNAME",
        0x40: "ESME_RINVDESTFLAG",
        0x42: "ESME_RINVSUBREP",
        0x43: "ESME_RINVESMCLASS",
        0x44: "ESME_RCNTSUBDL",
        0x45: "ESME_RSUBMITFAIL",
        0x48: "ESME_RINVSRCTON",
        0x49: "ESME_RINVSRCNPI",
        0x50: "ESME_RINVDSTTON",
        0x51: "ESME_RINVDSTNPI",
        0x53: "ESME_RINVSYSTYP",
        0x54: "ESME_RINVREPFLAG",
        0x55: "ESME_RINVNUMMSGS",
        0x58: "ESME_RTHROTTLED",
        0x61: "ESME_RINVSCHED",
        0x62: "ESME_RINVEXPIRY",
        0x63: "ESME_RINVDFTMSGID",
        0x64: "ESME_RX_T_APPN",
        0x65: "ESME_RX_P_APPN",
        0x66: "ESME_RX_R_APPN",
        0x67: "ESME_RQUERYFAIL",
        0xC0: "ESME_RINVOPTPARSTREAM",
        0xC1: "ESME_ROPTPARNOTALLWD",
        0xC2: "ESME_RINVPARLEN",
        0xC3: "ESME_RMISSINGOPTPARAM",
        0xC4: "ESME_RINVOPTPARAMVAL",
        0xFE: "ESME_RDELIVERYFAILURE",
        0xFF: "ESME_RUNKNOWNERR",
    }
)
# The SMSC took nothing and will take it later.
THROTTLED: Final = frozenset({"ESME_RTHROTTLED", "ESME_RMSGQFUL"})
# The SMSC took nothing, and the interface's code for it. ESME_RSYSERR, ESME_RX_T_APPN,
# ESME_RDELIVERYFAILURE and ESME_RUNKNOWNERR are left out: they do not say that it took nothing.
REFUSALS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("ESME_RINVDSTADR", "ESME_RINVDSTTON", "ESME_RINVDSTNPI"), Code.NOT_ALLOWED
        ),
        **dict.fromkeys(
            ("ESME_RINVSRCADR", "ESME_RINVSRCTON", "ESME_RINVSRCNPI"), Code.NO_SENDER_ID
        ),
        **dict.fromkeys(
            (
                *("ESME_RINVMSGLEN", "ESME_RINVCMDLEN", "ESME_RINVCMDID", "ESME_RINVBNDSTS"),
                *("ESME_RINVPRTFLG", "ESME_RINVREGDLVFLG", "ESME_RINVSERTYP"),
                *("ESME_RINVNUMDESTS", "ESME_RINVDLNAME", "ESME_RINVDESTFLAG"),
                *("ESME_RINVSUBREP", "ESME_RINVESMCLASS", "ESME_RCNTSUBDL", "ESME_RSUBMITFAIL"),
                *("ESME_RINVSYSTYP", "ESME_RINVREPFLAG", "ESME_RINVNUMMSGS"),
                *("ESME_RINVSCHED", "ESME_RINVEXPIRY", "ESME_RINVDFTMSGID"),
                *("ESME_RX_P_APPN", "ESME_RX_R_APPN", "ESME_RINVOPTPARSTREAM"),
                *("ESME_ROPTPARNOTALLWD", "ESME_RINVPARLEN", "ESME_RMISSINGOPTPARAM"),
                "ESME_RINVOPTPARAMVAL",
            ),
            Code.SMS_NOT_PROCESSED,
        ),
    }
)


def name_of(status: int) -> str:
    """The name of a status; one that SMPP does not list is named by its number."""
    return _NAMES.get(status) or f"status {status:#010x}"

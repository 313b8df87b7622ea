"""The settings of a network with `adapter = "smpp"`."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from sandbox_sim.networks.settings import AdapterSettings


class AddressType(StrEnum):
    """The address type of a sender."""

    AUTO = "auto"  # chosen by its characters
    ALPHANUMERIC = "alphanumeric"
    INTERNATIONAL = "international"
    NATIONAL = "national"
    SHORT_CODE = "short_code"
    UNKNOWN = "unknown"


class ReceiptIds(StrEnum):
    """The number format of the identifier in a receipt, compared with `submit_sm_resp`."""

    SAME = "same"
    DECIMAL_OF_HEX = "decimal_of_hex"  # 1A in submit_sm_resp is 26 in the receipt
    HEX_OF_DECIMAL = "hex_of_decimal"  # 26 in submit_sm_resp is 1A in the receipt


def _is_ascii(text: str) -> str:
    if not all(" " <= character <= "~" for character in text):
        raise ValueError("must be printable ASCII")
    return text


def _secret_is_ascii(secret: SecretStr) -> SecretStr:
    _is_ascii(secret.get_secret_value())
    return secret


_Text = Annotated[str, AfterValidator(_is_ascii)]

_Secret = Annotated[SecretStr, Field(max_length=8), AfterValidator(_secret_is_ascii)]

_Seconds = Annotated[float, Field(gt=0, le=31_536_000)]


class SmppSettings(AdapterSettings):
    """Times are seconds of real time, except `receipt_timeout_s`."""

    host: str = Field(min_length=1, description="Name or address of the SMSC.")
    port: int = Field(2775, ge=1, le=65_535, description="Its port.")
    tls: bool = Field(False, description="Speak TLS and check the certificate of the SMSC.")
    system_id: _Text = Field(min_length=1, max_length=15, description="Our account.")
    password: _Secret = Field(SecretStr(""), description="Password, at most 8 characters.")
    system_type: _Text = Field("", max_length=12, description="Expected by the SMSC.")
    source_address_type: AddressType = Field(
        AddressType.AUTO, description="The address type of each sender_id."
    )
    receipt_ids: ReceiptIds = Field(
        ReceiptIds.SAME, description="The number format of the id in a receipt."
    )
    receipt_timeout_s: _Seconds = Field(
        86_400, description="Gateway time after which a message without a receipt is listed."
    )
    window: int = Field(10, ge=1, le=1000, description="How many parts may wait for an answer.")
    enquire_link_s: _Seconds = Field(30, description="Time between two enquire_link.")
    reconnect_after_s: _Seconds = Field(1, description="The first pause before a reconnect.")
    reconnect_at_most_s: _Seconds = Field(60, description="The longest pause; each is doubled.")
    throttled_for_s: _Seconds = Field(
        60, description="How long a part is repeated if the SMSC refuses it because of its load."
    )

"""The settings of a network with `adapter = "mtn_momo"`."""

from typing import Annotated, Final, NamedTuple, Self

from pydantic import Field, SecretStr, model_validator

from sandbox_sim.networks.settings import (
    BaseUrl,
    HeaderSecret,
    HeaderWord,
    HttpAdapterSettings,
    User,
)
from sandbox_sim.values.clients import basic_credentials
from sandbox_sim.values.vocabulary import DEFAULT_CURRENCY

COLLECTION: Final = "collection"

DISBURSEMENT: Final = "disbursement"

# MTN's own sandbox, and the only currency that it takes (D41).
SANDBOX: Final = "sandbox"

SANDBOX_CURRENCY: Final = "EUR"


class ProductCredentials(NamedTuple):
    """Our credentials for one product of the API."""

    subscription_key: str
    api_user: str
    api_key: str

    @property
    def basic(self) -> str:
        """The credentials of a request for a token."""
        return basic_credentials(self.api_user, self.api_key)


_Word = Annotated[HeaderWord, Field(min_length=1)]


class MtnMomoSettings(HttpAdapterSettings):
    """The table of a network with `adapter = "mtn_momo"`.

    A product without credentials is not used, and its operations are refused.
    """

    base_url: BaseUrl = Field(description="Address of the API, without a product.")
    target_environment: _Word = Field(description="X-Target-Environment, such as mtnghana.")
    currency: str = Field(
        "GHS", pattern=r"^[A-Z]{3}$", description="The only currency of the target environment."
    )
    collection_subscription_key: HeaderSecret = Field(SecretStr(""), description="For collections.")
    collection_api_user: User = Field("", description="Of the same product.")
    collection_api_key: HeaderSecret = Field(SecretStr(""), description="Of the same product.")
    disbursement_subscription_key: HeaderSecret = Field(SecretStr(""), description="For payouts.")
    disbursement_api_user: User = Field("", description="Of the same product.")
    disbursement_api_key: HeaderSecret = Field(SecretStr(""), description="Of the same product.")
    callback: bool = Field(
        True,
        description="Send X-Callback-Url. MTN accepts it only if the API user has the host of "
        "public_url as its callback host. Without it, only status queries bring the outcome.",
    )

    @model_validator(mode="after")
    def _accounts_are_complete(self) -> Self:
        missing = [
            f"{product}_{name}"
            for product in (COLLECTION, DISBURSEMENT)
            for account in [self._account(product)]
            if any(account)
            for name, value in account._asdict().items()
            if not value
        ]
        if missing:
            raise ValueError(f"{', '.join(missing)}: must be set, like the rest of the product")
        if not self.accounts:
            raise ValueError(
                "collection_subscription_key, collection_api_user and collection_api_key, or the "
                "same of disbursement: must be set"
            )
        return self

    @model_validator(mode="after")
    def _sandbox_has_one_currency(self) -> Self:
        if self.is_sandbox and self.currency not in {DEFAULT_CURRENCY, SANDBOX_CURRENCY}:
            raise ValueError(
                f"currency: leave it out; MTN's own sandbox takes only {SANDBOX_CURRENCY}, and the "
                f"gateway sends payments in {DEFAULT_CURRENCY} as {SANDBOX_CURRENCY} there"
            )
        return self

    @property
    def is_sandbox(self) -> bool:
        """Whether this is MTN's own sandbox, where no money moves."""
        return self.target_environment == SANDBOX

    @property
    def accounts(self) -> dict[str, ProductCredentials]:
        """The credentials of each product that has them, by its name."""
        both = {product: self._account(product) for product in (COLLECTION, DISBURSEMENT)}
        return {product: account for product, account in both.items() if all(account)}

    def _account(self, product: str) -> ProductCredentials:
        names = (f"{product}_{name}" for name in ProductCredentials._fields)
        subscription_key, api_user, api_key = (getattr(self, name) for name in names)
        return ProductCredentials(
            subscription_key.get_secret_value(), api_user, api_key.get_secret_value()
        )

"""The settings of credentials, `[[credentials]]`."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from sandbox_sim.config_values import ClientKey, read_secret
from sandbox_sim.domain.callbacks.callback_bodies import Profile
from sandbox_sim.domain.clients import Client, ServiceMode


class Credentials(BaseModel):
    """One `[[credentials]]` table. secret_key_file: a file that has the `secret_key`."""

    model_config = ConfigDict(extra="forbid")

    client_key: ClientKey
    secret_key: SecretStr = Field(min_length=1)
    secret_key_file: str | None = None
    mode: ServiceMode = ServiceMode.SANDBOX
    service_ids: list[Annotated[int, Field(ge=1)]] = []
    callback_profile: Profile | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any) -> Any:
        """Read the `secret_key` from its file."""
        if not isinstance(values, dict) or not isinstance(values.get("secret_key_file"), str):
            return values
        if "secret_key" in values:
            raise ValueError("has secret_key and secret_key_file; keep one of them")
        secret = read_secret("secret_key_file", values["secret_key_file"])
        return {**values, "secret_key": secret}

    def client(self) -> Client:
        """The client that uses these credentials."""
        return Client(
            self.client_key,
            self.secret_key.get_secret_value(),
            self.mode,
            frozenset(self.service_ids),
            self.callback_profile,
        )

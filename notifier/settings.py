"""Everything that is set from the environment, read once at start and never changed.

`load_settings` reports all faults together, each with the variable and what it wants and
never with its value. A variable that is empty or only spaces counts as not set, so that a
blank secret can never stand for "no check" (contract, section 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    model_serializer,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from notifier.domain.policy import EMAIL_PROVIDERS, SMS_PROVIDERS
from notifier.loopback import is_loopback
from notifier.setting_addresses import (
    read_base_url,
    read_bind,
    read_database_url,
    read_guarded_base_url,
    read_guarded_url,
    read_resolver,
    read_secret_url,
    read_smtp,
)
from notifier.setting_readers import (
    entries,
    read_api_tokens,
    read_bare_address,
    read_flag,
    read_key_ring,
    read_names,
    read_rate,
    read_role_order,
    read_seed_ring,
    read_selectors,
    read_signing_secret,
    read_signing_secrets,
    read_twilio_account,
    read_twilio_sender,
)
from notifier.setting_values import (
    ROLE_NAMES,
    ApiToken,
    Bind,
    KeyRing,
    SigningSecret,
    SmtpServer,
    Unusable,
)

PREFIX: Final = "NOTIFIER_"

NEEDED_BY_PROVIDER: Final[dict[str, tuple[str, ...]]] = {
    "smtp": ("SMTP_URL", "EMAIL_FROM"),
    "postmark": ("POSTMARK_TOKEN", "POSTMARK_CALLBACK_PASSWORD", "EMAIL_FROM"),
    "resend": ("RESEND_API_KEY", "RESEND_WEBHOOK_SECRET", "EMAIL_FROM"),
    "twilio": ("TWILIO_ACCOUNT_SID", "TWILIO_AUTH_TOKEN", "TWILIO_FROM"),
}
"""What must be set once a provider is named."""

NEEDED_BY_OIDC: Final = ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_ROLE_CLAIM")


def _existing_file(path: Path) -> Path:
    if not path.is_file():
        message = "there is no such file"
        raise Unusable(message)
    return path


_Secret = Annotated[SecretStr, NoDecode]
_Url = Annotated[str, NoDecode, BeforeValidator(read_guarded_url)]
_BaseUrl = Annotated[str, NoDecode, BeforeValidator(read_guarded_base_url)]
_SignedBy = Annotated[SigningSecret, NoDecode, BeforeValidator(read_signing_secret)]
_Keys = Annotated[KeyRing, NoDecode, BeforeValidator(read_key_ring)]


def _wants(what: str, default: Any = ...) -> Any:
    return Field(default, description=what)


class Settings(BaseSettings):
    """The settings in their parsed forms. No secret shows in its `repr`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="ignore",
        hide_input_in_errors=True,
        validate_default=False,
    )

    database_url: Annotated[SecretStr | None, NoDecode, BeforeValidator(read_database_url)] = (
        _wants("postgresql://user:password@host[,host]/database", None)
    )
    data_dir: Path = _wants("a folder for the embedded database", Path("var"))
    bind: Annotated[Bind, NoDecode, BeforeValidator(read_bind)] = _wants(
        "host:port", Bind("127.0.0.1", 8000)
    )
    public_url: Annotated[str, NoDecode, BeforeValidator(read_base_url)] = _wants(
        "the http(s) address that providers and people use", ""
    )
    proxy_hops: int = Field(0, ge=0, le=10, description="a whole number from 0 to 10")
    ingest_secrets: Annotated[
        tuple[SigningSecret, ...], NoDecode, BeforeValidator(read_signing_secrets)
    ] = _wants("one or more whsec_ secrets, comma-separated, of at least 16 bytes in base64")
    admission_rate_per_s: Annotated[float | None, NoDecode, BeforeValidator(read_rate)] = _wants(
        "events per second, above nought, or off", None
    )
    api_tokens: Annotated[tuple[ApiToken, ...], NoDecode, BeforeValidator(read_api_tokens)] = (
        _wants("name:scope+scope:sha256-hex-of-token entries, comma-separated", ())
    )
    secret_key: _Keys = _wants("a random text of at least 32 characters; old ones after a comma")
    fingerprint_key: _Keys = _wants(
        "a random text of at least 32 characters; old ones after a comma"
    )
    checkpoint_key: Annotated[KeyRing | None, NoDecode, BeforeValidator(read_seed_ring)] = _wants(
        "an Ed25519 seed of 32 bytes in hex or base64; old ones after a comma", None
    )
    link_url: _Url = _wants("the auth service's https address (http on loopback only)")
    link_secret: _SignedBy = _wants("one whsec_ secret of at least 16 bytes in base64")
    email_providers: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(read_names(EMAIL_PROVIDERS))
    ] = _wants(f"ordered names out of {', '.join(EMAIL_PROVIDERS)}")
    sms_providers: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(read_names(SMS_PROVIDERS))
    ] = _wants(f"ordered names out of {', '.join(SMS_PROVIDERS)}", ())
    smtp_url: Annotated[SmtpServer | None, NoDecode, BeforeValidator(read_smtp)] = _wants(
        "smtp://user:password@host:587?starttls=1 or smtps://…; unencrypted on loopback only",
        None,
    )
    email_from: Annotated[str | None, BeforeValidator(read_bare_address)] = _wants(
        "a bare email address", None
    )
    twilio_account_sid: Annotated[str | None, BeforeValidator(read_twilio_account)] = _wants(
        "the account's SID", None
    )
    twilio_auth_token: _Secret | None = _wants(
        "the account's auth token; old ones after a comma still verify callbacks", None
    )
    twilio_from: Annotated[str | None, BeforeValidator(read_twilio_sender)] = _wants(
        "the sending number or messaging service SID", None
    )
    twilio_base_url: _BaseUrl = _wants("an https address", "https://api.twilio.com")
    postmark_token: _Secret | None = _wants("the server's token", None)
    postmark_callback_password: _Secret | None = _wants(
        "the callbacks' password, without a comma; old ones after a comma still verify", None
    )
    postmark_base_url: _BaseUrl = _wants("an https address", "https://api.postmarkapp.com")
    resend_api_key: _Secret | None = _wants("the API key", None)
    resend_webhook_secret: _SignedBy | None = _wants("one whsec_ secret", None)
    resend_base_url: _BaseUrl = _wants("an https address", "https://api.resend.com")
    policy_file: Annotated[Path | None, AfterValidator(lambda p: p and _existing_file(p))] = _wants(
        "an existing TOML file", None
    )
    oidc_issuer: _Url | None = _wants("the issuer's https address (http on loopback only)", None)
    oidc_client_id: str | None = _wants("the client's id", None)
    oidc_client_secret: _Secret | None = _wants("the client's secret", None)
    oidc_role_claim: str | None = _wants("the claim that holds the role", None)
    oidc_roles: Annotated[
        tuple[tuple[str, str], ...], NoDecode, BeforeValidator(read_role_order)
    ] = _wants(
        f"value=role entries, comma-separated, the deciding one first; "
        f"roles are {', '.join(ROLE_NAMES)}",
        (),
    )
    local_accounts: Annotated[bool, NoDecode, BeforeValidator(read_flag)] = _wants(
        "1 to keep local accounts beside single sign-on, else 0", False
    )
    alert_urls: Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(entries)] = _wants(
        "Apprise URLs, comma-separated", ()
    )
    deadman_url: Annotated[SecretStr | None, NoDecode, BeforeValidator(read_secret_url)] = _wants(
        "an https address to ping (http on loopback only)", None
    )
    dkim_selectors: Annotated[tuple[str, ...], NoDecode, BeforeValidator(read_selectors)] = _wants(
        "DKIM selectors, comma-separated", ()
    )
    dns_resolver: Annotated[Bind | None, NoDecode, BeforeValidator(read_resolver)] = _wants(
        "the address of a DNS resolver in numbers, with :port where that is not 53", None
    )
    workers: int = Field(16, ge=0, le=512, description="a whole number from 0 to 512")

    @property
    def public_base(self) -> str:
        """The public address without a slash at the end; made from the bind where not set."""
        if self.public_url:
            return self.public_url
        unspecified = self.bind.host in {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound
        host = "127.0.0.1" if unspecified else self.bind.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.bind.port}"

    @model_serializer
    def _stay_here(self) -> dict[str, Any]:
        """Keys and passwords are among the values, so no document is made of them."""
        message = "settings are not serialised"
        raise TypeError(message)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is the library's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_settings` hands in: no file and no second look at the environment."""
        return (init_settings,)


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One variable's fault: its name, what is wrong, and what it wants. Never its value."""

    variable: str
    wrong: str
    wants: str

    def __str__(self) -> str:
        return f"{self.variable} {self.wrong}; it wants {self.wants}"


class SettingsInvalid(Exception):
    """The application must not start; `problems` names every variable at fault."""

    def __init__(self, problems: list[SettingProblem]) -> None:
        super().__init__("\n".join(str(each) for each in problems))
        self.problems = problems


def load_settings(environ: Mapping[str, str]) -> Settings:
    """The settings of an environment; raises `SettingsInvalid` with every fault at once."""
    given = _given(environ)
    problems = list(_missing(given))
    try:
        settings = Settings(**given)
    except ValidationError as error:
        known = {each.variable for each in problems}
        found = [each for each in _faults(error) if each.variable not in known]
        raise SettingsInvalid(problems + found) from None
    problems += _unprotected(settings)
    if problems:
        raise SettingsInvalid(problems)
    return settings


def _given(environ: Mapping[str, str]) -> dict[str, Any]:
    """Field name to text, for what is set and not blank."""
    variables = {name: environ.get(PREFIX + name.upper(), "") for name in Settings.model_fields}
    return {name: text.strip() for name, text in variables.items() if text.strip()}


def _missing(given: Mapping[str, str]) -> Iterator[SettingProblem]:
    """Variables that another one's value makes necessary."""
    named = f"{given.get('email_providers', '')},{given.get('sms_providers', '')}"
    needed = {
        name: f"is needed for the provider {provider}"
        for provider, names in NEEDED_BY_PROVIDER.items()
        if provider in {each.strip() for each in named.split(",")}
        for name in names
    }
    if "oidc_issuer" in given:
        needed |= dict.fromkeys(NEEDED_BY_OIDC, f"is needed beside {PREFIX}OIDC_ISSUER")
    elif any(name.startswith("oidc_") for name in given):
        needed["OIDC_ISSUER"] = "is needed beside the other settings of single sign-on"
    for name, why in needed.items():
        if name.lower() not in given:
            yield problem_of(name.lower(), f"is not set and {why}")


def _unprotected(settings: Settings) -> Iterator[SettingProblem]:
    """Where people would come back from the issuer over a line that anybody reads."""
    url = urlsplit(settings.public_base)
    if settings.oidc_issuer and url.scheme != "https" and not is_loopback(url.hostname or ""):
        why = f"is plain http beyond loopback, which {PREFIX}OIDC_ISSUER forbids"
        yield SettingProblem(f"{PREFIX}PUBLIC_URL", why, "an https address")


def _faults(error: ValidationError) -> Iterator[SettingProblem]:
    """Our own sentences are shown; the library's are not, for they may quote the value."""
    seen: set[str] = set()
    for fault in error.errors(include_url=False, include_input=False):
        name = str(fault["loc"][0])
        if name in seen:
            continue
        seen.add(name)
        ours = fault.get("ctx", {}).get("error")
        if fault["type"] == "missing":
            yield problem_of(name, "is not set")
        elif isinstance(ours, Unusable):
            yield problem_of(name, f"cannot be used ({ours})")
        else:
            yield problem_of(name, "cannot be used")


def problem_of(name: str, wrong: str) -> SettingProblem:
    """The fault of a field of `Settings`."""
    wants = Settings.model_fields[name].description or "another value"
    return SettingProblem(PREFIX + name.upper(), wrong, wants)

"""All settings: their types and rules, and how they are loaded from files, environment and options."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
)

from orchestrator.errors import BAD_SETTING, SETTINGS_UNREADABLE, UNKNOWN_SETTING, AnamnesisError

_POSTGRES: Final = ("postgresql", "postgresql+psycopg")


def _names_a_host(value: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _address(*schemes: str) -> AfterValidator:
    """Allow an empty text or a URL that can be shown: one without user, password or query."""
    begins = " or ".join(f"{scheme}://" for scheme in schemes)
    rule = f"must be empty or {begins} with a host, no user and no query"

    def check(value: str) -> str:
        if value and ("@" in value or "?" in value or not _names_a_host(value, schemes)):
            raise ValueError(rule)
        return value

    return AfterValidator(check)


def _database(value: SecretStr) -> SecretStr:
    url = value.get_secret_value()
    if url and not url.startswith("sqlite:///") and not _names_a_host(url, _POSTGRES):
        raise ValueError("must be empty, postgresql://USER:PASSWORD@HOST:PORT/NAME or sqlite:///FILE")
    return value


def _at_most(other: str) -> AfterValidator:
    """Allow at most the value of another setting, which must be declared earlier in the same section."""

    def check(value: float, info: ValidationInfo) -> float:
        if (bound := info.data.get(other)) is not None and value > bound:
            raise ValueError(f"must be at most `{other}`, which is {bound}")
        return value

    return AfterValidator(check)


def _without_question_mark(value: Path) -> Path:
    if "?" in str(value):
        raise ValueError(
            "must not contain a question mark, because that begins the options of a database URL"
        )
    return value


def _absolute_path(value: Path) -> Path:
    if value.parts[:1] == ("~",) and not os.path.isabs(os.environ.get("HOME", "/")):
        raise ValueError("begins with ~, but HOME is not an absolute path")
    try:
        return value.expanduser().absolute()
    except RuntimeError:
        home_unknown = "begins with ~, but this user has no home folder"
    raise ValueError(home_unknown)


def _region(value: str) -> str:
    if value and not (len(value) == 2 and value.isascii() and value.isalpha() and value.isupper()):
        raise ValueError("must be empty or two capital letters")
    return "GB" if value == "UK" else value


def _webhook(value: SecretStr) -> SecretStr:
    if value.get_secret_value() and not _names_a_host(value.get_secret_value(), ("http", "https")):
        raise ValueError("must be empty, or http:// or https:// with a host")
    return value


def _origins(value: str) -> str:
    for origin in value.split():
        if not _names_a_host(origin, ("http", "https")) or urlsplit(origin).path or "@" in origin:
            raise ValueError("must be origins such as https://app.example, separated by spaces")
    return value


Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Field(ge=0.001, le=86_400)]
Share = Annotated[float, Field(gt=0, le=1)]


class SettingsSection(BaseModel):
    """One section of `config/default.toml`. Defaults are only in that file."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False
    )


class ServerSettings(SettingsSection):
    """Where `anamnesis serve` listens."""

    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=0, le=65535)]
    sign_in_hours: Annotated[float, Field(gt=0, le=8_784)]
    allowed_origins: Annotated[str, AfterValidator(_origins)]


class DataSettings(SettingsSection):
    """The folder for all stored data."""

    dir: Annotated[
        Path, Field(strict=False), AfterValidator(_without_question_mark), AfterValidator(_absolute_path)
    ]

    def prepare(self) -> Path:
        """Create the folder if needed, readable only by its owner, and return its path."""
        try:
            self.dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(self.dir, os.W_OK | os.X_OK):
                return self.dir
            rule = "is a folder that this user may not write to"
        except OSError as error:
            rule = f"the folder cannot be created ({os.strerror(error.errno or 0)})"
        raise AnamnesisError(BAD_SETTING, key="data.dir", where=str(self.dir), rule=rule)


class DatabaseSettings(SettingsSection):
    """The database and how it is used."""

    url: Annotated[SecretStr, AfterValidator(_database)]
    busy_timeout_seconds: Seconds
    synchronous: Literal["FULL", "NORMAL"]


class ModelFileSettings(SettingsSection):
    """The folder of the embedding model, and how many threads it may use."""

    dir: Annotated[Path, Field(strict=False), AfterValidator(_absolute_path)]
    threads: Annotated[int, Field(ge=1, le=256)]


class TurnSettings(SettingsSection):
    """How long a turn may take, and how often it is tried."""

    deadline_seconds: Seconds
    lease_seconds: Seconds
    attempts: Count


class SessionSettings(SettingsSection):
    """When a session is paused."""

    idle_minutes: Count


class LimitSettings(SettingsSection):
    """Limits for one client. The limits of a frame are part of the protocol and not configurable."""

    trace_content_characters: Count
    http_body_bytes: Count
    http_requests_per_minute: Count
    bad_frames_per_minute: Count
    waiting_messages: Count
    waiting_messages_everywhere: Count


class BlockSettings(SettingsSection):
    """How large each memory block may grow, and when its oldest part is archived.

    With a limit below the allowed minimum, a block could not hold a single turn.
    """

    conversation_history_limit: Annotated[Count, Field(ge=4_000)]
    active_session_limit: Annotated[Count, Field(ge=1_000)]
    context_summary_limit: Annotated[Count, Field(ge=1_000)]
    memory_metadata_limit: Annotated[Count, Field(ge=1_000)]
    turns_refused_above: Annotated[Count, Field(le=25)]  # as in the block's schema
    turns_most: Annotated[Count, Field(le=24), _at_most("turns_refused_above")]
    turns_kept: Annotated[Count, _at_most("turns_most")]
    emergency_share: Share
    archive_share: Annotated[Share, _at_most("emergency_share")]
    warning_share: Annotated[Share, _at_most("archive_share")]
    archive_keep: Annotated[Count, _at_most("turns_kept")]
    emergency_keep: Annotated[Count, _at_most("archive_keep")]
    archival_trigger_threshold: Annotated[Count, _at_most("conversation_history_limit")]
    rotation_enabled: bool
    validation_enabled: bool
    revisions_kept: Annotated[int, Field(ge=0, le=1_000_000_000)]


class RecallSettings(SettingsSection):
    """How long-term memory is searched."""

    recipe: Annotated[str, Field(min_length=1)]
    token_budget: Count
    cache_megabytes: Count
    follow_up_days: Annotated[float, Field(ge=0, le=3650)]
    trace_enabled: bool
    trace_dir: Annotated[Path, Field(strict=False), AfterValidator(_absolute_path)]


class EmbeddingSettings(SettingsSection):
    """The model whose vectors long-term memory is searched by."""

    model: Literal["minilm", "e5-small-v2", "endpoint"]
    endpoint: Annotated[str, _address("http", "https")]
    api_key: SecretStr
    endpoint_model: str
    width: Annotated[int, Field(ge=0, le=16_384)]
    query_prefix: str
    passage_prefix: str
    unrelated_cosine: Annotated[float, Field(ge=0, lt=1)]
    timeout_seconds: Seconds


class MemorySettings(SettingsSection):
    """Where memories of conversations are kept, and when they are made."""

    ledger: Literal["auto", "files", "tables"]
    in_background: bool
    check_seconds: Seconds
    reply_seconds: Seconds
    tokens_per_day: Annotated[int, Field(ge=0, le=1_000_000_000)]


class BrainSettings(SettingsSection):
    """How long a model may take, and how often it is asked again."""

    reply_seconds: Seconds
    stall_seconds: Seconds
    budget_seconds: Seconds
    attempts: Count
    breaker_failures: Count
    breaker_seconds: Seconds
    tokens_per_person_and_day: Annotated[int, Field(ge=0, le=1_000_000_000)]


class ChatSettings(SettingsSection):
    """An OpenAI-style chat endpoint, if there is one."""

    endpoint: Annotated[str, _address("http", "https")]
    api_key: SecretStr
    model: str
    extractor_model: str
    temperature: Annotated[float, Field(ge=0, le=2)]
    answer_tokens: Annotated[Count, Field(ge=100)]
    request_tokens: Annotated[Count, Field(ge=2_500)]


class SafetySettings(SettingsSection):
    """The region of the emergency numbers, and where safety alerts are sent."""

    region: Annotated[str, AfterValidator(_region)]
    alert_url: Annotated[SecretStr, AfterValidator(_webhook)]
    alert_attempts: Count
    alert_timeout_seconds: Seconds


class LogSettings(SettingsSection):
    """Log level and log format."""

    level: Literal["debug", "info", "warning", "error"]
    format: Literal["auto", "json", "text"]


class TelemetrySettings(SettingsSection):
    """Where OpenTelemetry spans are sent."""

    endpoint: Annotated[str, _address("http", "https")]


def _without_version(value: str) -> str:
    return value.rstrip("/").removesuffix("/v1")


class LettaSettings(SettingsSection):
    """The Letta server, if there is one, and the options of its agents."""

    base_url: Annotated[str, _address("http", "https"), AfterValidator(_without_version)]
    api_key: SecretStr
    model: Annotated[str, Field(min_length=1)]
    extractor_model: str
    embedding: Annotated[str, Field(min_length=1)]
    context_window: Annotated[Count, Field(ge=4_000)]
    temperature: Annotated[float, Field(ge=0, le=2)]
    answer_tokens: Annotated[Count, Field(ge=100)]
    tag: Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]
    timeout_seconds: Seconds
    sync_seconds: Seconds
    copy_seconds: Annotated[float, Field(ge=0)]


class OidcSettings(SettingsSection):
    """The OIDC issuer whose tokens are accepted, if there is one."""

    issuer: Annotated[str, _address("http", "https")]
    audience: str
    person_claim: Annotated[str, Field(min_length=1)]
    roles_claim: Annotated[str, Field(min_length=1)]


class LiveKitSettings(SettingsSection):
    """Settings of the LiveKit server. Without a `url`, none is used."""

    url: Annotated[str, _address("ws", "wss", "http", "https")]
    api_key: SecretStr
    api_secret: SecretStr
    poll_seconds: Seconds


class Settings(SettingsSection):
    """All settings, validated."""

    server: ServerSettings
    data: DataSettings
    database: DatabaseSettings
    models: ModelFileSettings
    turn: TurnSettings
    session: SessionSettings
    limits: LimitSettings
    blocks: BlockSettings
    recall: RecallSettings
    embeddings: EmbeddingSettings
    memory: MemorySettings
    brain: BrainSettings
    chat: ChatSettings
    safety: SafetySettings
    logs: LogSettings
    telemetry: TelemetrySettings
    letta: LettaSettings
    livekit: LiveKitSettings
    oidc: OidcSettings

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def origins(self) -> Mapping[str, str]:
        """The origin (a file, a variable or an option) of each setting that is not a shipped default."""
        return self._origins

    def database_url(self) -> str:
        """The URL of the database, with its password; never show it."""
        return self.database.url.get_secret_value() or f"sqlite:///{self.data.dir / 'anamnesis.db'}"

    def display(self, key: str) -> str:
        """The value of a setting as text for the operator, with secrets hidden."""
        section, name = key.split(".")
        return str(getattr(getattr(self, section), name))


KEYS: Final = tuple(
    f"{section}.{key}"
    for section, field in Settings.model_fields.items()
    if field.annotation is not None
    for key in field.annotation.model_fields
)
"""Every setting, as `section.key`."""


def _variable(key: str) -> str:
    return f"ANAMNESIS_{key.replace('.', '_').upper()}"


VARIABLES: Final[Mapping[str, str]] = {
    "LETTA_BASE_URL": "letta.base_url",
    "LETTA_API_KEY": "letta.api_key",
    "LIVEKIT_URL": "livekit.url",
    "LIVEKIT_API_KEY": "livekit.api_key",
    "LIVEKIT_API_SECRET": "livekit.api_secret",
    "RETRIEVAL_TRACE_ENABLED": "recall.trace_enabled",
    "RETRIEVAL_TRACE_DIR": "recall.trace_dir",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "telemetry.endpoint",
} | {_variable(key): key for key in KEYS}
"""The setting of each environment variable. If two variables set the same one, the later here wins."""

CUSTOMARY: Final = {"chat.endpoint": "OPENAI_BASE_URL", "chat.api_key": "OPENAI_API_KEY"}
"""Variables of OpenAI's libraries. They count only if `chat.model` names a model."""

OPENAI_ENDPOINT: Final = "https://api.openai.com/v1"
"""Where a model is asked if neither a setting nor a variable names an endpoint."""

NOT_SETTINGS: Final = ("ANAMNESIS_CACHE_DIR", "ANAMNESIS_FAULT", "ANAMNESIS_KEY")
"""Our variables that are not settings, like all of ANAMNESIS_TEST_*. Set-up, tests and `chat` read them."""

_RENAMED: Final = {
    "letta.show_seconds": "letta.sync_seconds",
    "livekit.look_seconds": "livekit.poll_seconds",
}
RENAMED: Final = _RENAMED | {_variable(old): _variable(new) for old, new in _RENAMED.items()}
"""Old and new names of settings and of their variables. The error for an old name says the new one."""

_ALWAYS_ASKED: Final = (
    "A model that is configured now reads every message, except a bare number on the scale that was just "
    "asked for and a bare yes or no to a plain question. Remove it."
)
_ONE_CALL: Final = "One call now reads a message and decides where it belongs: its model is `{}`."
_WITHOUT_SUCCESSOR: Final = {
    "brain.sure_context": _ALWAYS_ASKED,
    "brain.sure_intent": _ALWAYS_ASKED,
    "chat.classifier_model": _ONE_CALL.format("chat.extractor_model"),
    "letta.classifier_model": _ONE_CALL.format("letta.extractor_model"),
}
REMOVED: Final = _WITHOUT_SUCCESSOR | {_variable(old): hint for old, hint in _WITHOUT_SUCCESSOR.items()}
"""Settings that do not exist any more, and their variables, with what the error says about each."""

COMMAND_LINE: Final = "the command line"
"""The origin of a setting that an option of the command gave."""

FOLDERS: Final = ("data.dir", "models.dir", "recall.trace_dir")
"""The settings whose value is a folder."""

CONFIG_FILES: Final = ("default.toml", "agents.toml", "recall.toml", "prompts", "memory.json", "workflows")
"""The files that are read from a configuration folder."""


class _Entry(NamedTuple):
    key: str
    value: object
    where: str


def shipped_config() -> Path:
    """The folder of the shipped configuration: in an installed wheel, or `config/` of the checkout."""
    installed = Path(__file__).parent / "_config"
    return installed if installed.is_dir() else Path(__file__).parents[1] / "config"


def configured(name: str, overlay: Path | None) -> Path:
    """The path of a configuration file or folder: in the overlay if it is there, else as shipped."""
    if overlay is not None and (overlay / name).exists():
        return overlay / name
    return shipped_config() / name


def load(
    config: Path | None = None,
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Read the shipped defaults, `config`/default.toml, the environment, and the options `given`.

    The last one that names a setting wins. An unknown setting or a bad value raises an error with its origin.
    """
    shipped = shipped_config() / "default.toml"
    values: dict[str, object] = {entry.key: entry.value for entry in _from_file(shipped)}
    origins: dict[str, str] = {}
    for entry in (
        *_from_overlay(config),
        *_from_environment(environment, values),
        *(_Entry(key, value, COMMAND_LINE) for key, value in (given or {}).items()),
    ):
        values[entry.key], origins[entry.key] = entry.value, entry.where
    for entry in _customary(values, environment):
        values[entry.key], origins[entry.key] = entry.value, entry.where
    values["data.dir"] = values["data.dir"] or _default_data_dir(environment)
    values["models.dir"] = values["models.dir"] or _default_models_dir(environment, values["data.dir"])

    tables: dict[str, dict[str, object]] = {section: {} for section in Settings.model_fields}
    for key, value in values.items():
        section, name = key.split(".")
        tables[section][name] = value
    try:
        settings = Settings.model_validate(tables)
    except ValidationError as refused:
        first = refused.errors(include_input=False, include_url=False)[0]
    else:
        settings._origins.update(origins)
        return settings
    # Raised outside `except`, so that pydantic's error, which holds the value, is not its context.
    key = ".".join(str(part) for part in first["loc"])
    rule = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    raise AnamnesisError(BAD_SETTING, key=key, where=origins.get(key, str(shipped)), rule=rule)


def _from_overlay(folder: Path | None) -> Iterator[_Entry]:
    """The settings in an overlay folder, which must exist and have at least one of the files we read."""
    if folder is None:
        return
    if not folder.is_dir():
        raise AnamnesisError(SETTINGS_UNREADABLE, where=str(folder), rule="there is no such folder")
    if not any((folder / name).exists() for name in CONFIG_FILES):
        rule = f"it has none of {', '.join(CONFIG_FILES)}"
        raise AnamnesisError(SETTINGS_UNREADABLE, where=str(folder), rule=rule)
    if (file := folder / "default.toml").exists():
        yield from (_relative_to(folder, entry) for entry in _from_file(file))


def _relative_to(folder: Path, entry: _Entry) -> _Entry:
    """Resolve a relative path in an overlay against the overlay's folder, not the working directory."""
    path = entry.value
    if entry.key not in FOLDERS or not isinstance(path, str) or not path or path.startswith("~"):
        return entry
    return entry._replace(value=str(folder.absolute() / path))


def _from_file(file: Path) -> Iterator[_Entry]:
    for section, table in _parse(file).items():
        if section not in Settings.model_fields:
            raise _unknown(str(file), section, Settings.model_fields)
        if not isinstance(table, dict):
            raise AnamnesisError(BAD_SETTING, key=section, where=str(file), rule="must be a table")
        for name, value in table.items():
            key = f"{section}.{name}"
            if key not in KEYS:
                raise _unknown(str(file), key, KEYS)
            yield _Entry(key, value, str(file))


def _parse(file: Path) -> dict[str, Any]:
    """Parse a file. Only line and column are taken from the parser's message, which may quote a secret."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        rule = f"not valid TOML {str(error).rpartition('(')[2].rstrip(')')}"
    except UnicodeDecodeError:
        rule = "not UTF-8"
    except OSError as error:
        rule = os.strerror(error.errno or 0)
    raise AnamnesisError(SETTINGS_UNREADABLE, where=str(file), rule=rule)


def _from_environment(environment: Mapping[str, str], defaults: Mapping[str, object]) -> Iterator[_Entry]:
    """The settings in environment variables. An empty variable counts as not set."""
    for name in environment:
        known = name in VARIABLES or name in NOT_SETTINGS or name.startswith("ANAMNESIS_TEST_")
        if name.startswith("ANAMNESIS_") and not known:
            raise _unknown("The environment", name, VARIABLES)
    for name, key in VARIABLES.items():
        if text := environment.get(name):
            yield _Entry(key, _read(text, like=defaults[key]), f"the variable {name}")


def _customary(values: Mapping[str, object], environment: Mapping[str, str]) -> Iterator[_Entry]:
    """What the variables of OpenAI's libraries add to a model that was named.

    Many shells have these variables set. Without a model, they are ignored, so that a variable alone never
    makes the server send anything anywhere.
    """
    if not values["chat.model"]:
        return
    for key, variable in CUSTOMARY.items():
        if not values[key] and (text := environment.get(variable)):
            yield _Entry(key, text, f"the variable {variable}")
        elif key == "chat.endpoint" and not values[key]:
            yield _Entry(key, OPENAI_ENDPOINT, "the address of OpenAI, since only a model is named")


def _read(text: str, like: object) -> object:
    """Convert a variable's text to the type of the default. Bad text stays, and validation refuses it."""
    if isinstance(like, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    if isinstance(like, int | float):
        try:
            return type(like)(text)
        except ValueError:
            return text
    return text


def _default_data_dir(environment: Mapping[str, str]) -> Path:
    """The data folder by the XDG base directory specification, which ignores relative paths."""
    folder = Path(environment.get("XDG_DATA_HOME", ""))
    return (folder if folder.is_absolute() else Path("~/.local/share")) / "anamnesis"


def _default_models_dir(environment: Mapping[str, str], data_dir: object) -> Path:
    """A folder in the cache that all checkouts share; without a home folder, one in the data folder."""
    if chosen := environment.get("ANAMNESIS_CACHE_DIR"):
        return Path(chosen) / "models"
    folder = Path(environment.get("XDG_CACHE_HOME", ""))
    if folder.is_absolute():
        return folder / "anamnesis" / "models"
    no_home = not os.path.isabs(os.environ.get("HOME", "/"))
    return Path(str(data_dir), "models") if no_home else Path("~/.cache/anamnesis/models")


def _unknown(where: str, key: str, known: Mapping[str, object] | tuple[str, ...]) -> AnamnesisError:
    """The error for an unknown key; it names the new key, or the most similar one."""
    from difflib import get_close_matches

    if new := RENAMED.get(key):
        hint = f"It is called `{new}` now."
    elif gone := REMOVED.get(key):
        hint = gone
    elif nearest := get_close_matches(key, known, n=1):
        hint = f"Did you mean `{nearest[0]}`?"
    else:
        hint = "config/default.toml lists them all."
    return AnamnesisError(UNKNOWN_SETTING, where=where, key=key, hint=hint)

"""Every setting of the house: what it may be, and the layers it is read from."""

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
    """Empty, or an address that may be shown: it has no place for a password or a token."""
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
    """Not above another setting of the same section, which the model names before this one."""

    def check(value: float, info: ValidationInfo) -> float:
        if (bound := info.data.get(other)) is not None and value > bound:
            raise ValueError(f"must be at most `{other}`, which is {bound}")
        return value

    return AfterValidator(check)


def _beside_a_database(value: Path) -> Path:
    if "?" in str(value):
        raise ValueError(
            "must not contain a question mark, which means something else in a database's address"
        )
    return value


def _whole_path(value: Path) -> Path:
    if value.parts[:1] == ("~",) and not os.path.isabs(os.environ.get("HOME", "/")):
        raise ValueError("begins with ~, and HOME is not the whole path of a folder")
    try:
        return value.expanduser().absolute()
    except RuntimeError:
        home_unknown = "begins with ~, and this user has no home folder"
    raise ValueError(home_unknown)


def _region(value: str) -> str:
    if value and not (len(value) == 2 and value.isascii() and value.isalpha() and value.isupper()):
        raise ValueError("must be empty or two capital letters")
    return "GB" if value == "UK" else value


def _webhook(value: SecretStr) -> SecretStr:
    if value.get_secret_value() and not _names_a_host(value.get_secret_value(), ("http", "https")):
        raise ValueError("must be empty, or http:// or https:// with a host")
    return value


Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Field(ge=0.001, le=86_400)]
Share = Annotated[float, Field(gt=0, le=1)]


class Section(BaseModel):
    """One table of `config/default.toml`, which is the only place for defaults."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False
    )


class Server(Section):
    """Where `anamnesis serve` listens."""

    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=0, le=65535)]


class Data(Section):
    """Where everything that is kept lies."""

    dir: Annotated[Path, Field(strict=False), AfterValidator(_beside_a_database), AfterValidator(_whole_path)]

    def prepare(self) -> Path:
        """Make the folder if it is not there, readable by its owner alone, and give its path."""
        try:
            self.dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(self.dir, os.W_OK | os.X_OK):
                return self.dir
            rule = "is a folder that we may not write to"
        except OSError as error:
            rule = f"cannot be made a folder ({os.strerror(error.errno or 0)})"
        raise AnamnesisError(BAD_SETTING, key="data.dir", where=str(self.dir), rule=rule)


class Database(Section):
    """Which database holds the tables, and how it is spoken to."""

    url: Annotated[SecretStr, AfterValidator(_database)]
    busy_timeout_seconds: Seconds
    synchronous: Literal["FULL", "NORMAL"]


class Models(Section):
    """Where the models' files lie, and how much of the machine they may use."""

    dir: Annotated[Path, Field(strict=False), AfterValidator(_whole_path)]
    threads: Annotated[int, Field(ge=1, le=256)]


class Turn(Section):
    """How long a turn may take and how often it is tried."""

    deadline_seconds: Seconds
    lease_seconds: Seconds
    attempts: Count


class Session(Section):
    """When a session counts as paused."""

    idle_minutes: Count


class Limits(Section):
    """What one peer may ask for. The sizes of frames are not here: they are part of the protocol."""

    trace_content_characters: Count
    http_body_bytes: Count
    bad_frames_per_minute: Count
    waiting_messages: Count


class Blocks(Section):
    """How much each memory block holds, and when its oldest part rotates out.

    Below the least limits a block has no room for what it must hold, and no turn would ever be remembered.
    """

    conversation_history_limit: Annotated[Count, Field(ge=4_000)]
    active_session_limit: Annotated[Count, Field(ge=1_000)]
    context_summary_limit: Annotated[Count, Field(ge=1_000)]
    memory_metadata_limit: Annotated[Count, Field(ge=1_000)]
    turns_refused_above: Annotated[Count, Field(le=25)]  # as the block's own schema has it
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


class Brain(Section):
    """When a model is asked rather than the embedded brain, and how long it is waited for."""

    sure_intent: Annotated[float, Field(ge=0, le=2)]
    sure_context: Annotated[float, Field(ge=0, le=2)]
    reply_seconds: Seconds
    stall_seconds: Seconds
    budget_seconds: Seconds
    attempts: Count
    breaker_failures: Count
    breaker_seconds: Seconds


class Chat(Section):
    """The OpenAI-style endpoint, if there is one."""

    endpoint: Annotated[str, _address("http", "https")]
    api_key: SecretStr
    model: str
    extractor_model: str
    classifier_model: str


class Safety(Section):
    """Whose emergency numbers are named, and who is told when danger was heard."""

    region: Annotated[str, AfterValidator(_region)]
    alert_url: Annotated[SecretStr, AfterValidator(_webhook)]
    alert_attempts: Count
    alert_timeout_seconds: Seconds


class Logs(Section):
    """How much is logged, and in which form."""

    level: Literal["debug", "info", "warning", "error"]
    format: Literal["auto", "json", "text"]


class Telemetry(Section):
    """Where spans are sent."""

    endpoint: Annotated[str, _address("http", "https")]


def _without_version(value: str) -> str:
    return value.rstrip("/").removesuffix("/v1")


class Letta(Section):
    """The Letta server, if there is one, and what its agents are made of."""

    base_url: Annotated[str, _address("http", "https"), AfterValidator(_without_version)]
    api_key: SecretStr
    model: Annotated[str, Field(min_length=1)]
    extractor_model: str
    classifier_model: str
    embedding: Annotated[str, Field(min_length=1)]
    context_window: Annotated[Count, Field(ge=4_000)]
    temperature: Annotated[float, Field(ge=0, le=2)]
    answer_tokens: Annotated[Count, Field(ge=100)]
    tag: Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]
    timeout_seconds: Seconds
    show_seconds: Seconds


class LiveKit(Section):
    """The LiveKit server, if there is one."""

    url: Annotated[str, _address("ws", "wss", "http", "https")]
    api_key: SecretStr
    api_secret: SecretStr
    look_seconds: Seconds


class Settings(Section):
    """Everything that is configured, checked."""

    server: Server
    data: Data
    database: Database
    models: Models
    turn: Turn
    session: Session
    limits: Limits
    blocks: Blocks
    brain: Brain
    chat: Chat
    safety: Safety
    logs: Logs
    telemetry: Telemetry
    letta: Letta
    livekit: LiveKit

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def origins(self) -> Mapping[str, str]:
        """Where each setting came from that is not a shipped default: a file, a variable or an option."""
        return self._origins

    def database_url(self) -> str:
        """The database's address with its password: for opening it, not for showing it."""
        return self.database.url.get_secret_value() or f"sqlite:///{self.data.dir / 'anamnesis.db'}"

    def shown(self, key: str) -> str:
        """A setting as it may be shown to an operator: secrets stay hidden."""
        section, name = key.split(".")
        return str(getattr(getattr(self, section), name))


KEYS: Final = tuple(
    f"{section}.{key}"
    for section, field in Settings.model_fields.items()
    if field.annotation is not None
    for key in field.annotation.model_fields
)
"""Every setting, as `section.key`."""

VARIABLES: Final[Mapping[str, str]] = {
    "LETTA_BASE_URL": "letta.base_url",
    "LETTA_API_KEY": "letta.api_key",
    "LIVEKIT_URL": "livekit.url",
    "LIVEKIT_API_KEY": "livekit.api_key",
    "LIVEKIT_API_SECRET": "livekit.api_secret",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "telemetry.endpoint",
} | {f"ANAMNESIS_{key.replace('.', '_').upper()}": key for key in KEYS}
"""Which environment variable sets what. Where two set the same, the later one here wins: ours."""

NOT_SETTINGS: Final = ("ANAMNESIS_CACHE_DIR", "ANAMNESIS_FAULT")
"""Variables of ours that set no setting: for set-up and tests. So are all of ANAMNESIS_TEST_*."""

FOLDERS: Final = ("data.dir", "models.dir")
"""The settings that name a folder."""

OVERLAID: Final = ("default.toml", "agents.toml", "prompts")
"""What a folder of configuration may hold."""


class _Entry(NamedTuple):
    key: str
    value: object
    where: str


def shipped_config() -> Path:
    """The folder of shipped configuration: inside an installed wheel, else `config/` of the checkout."""
    installed = Path(__file__).parent / "_config"
    return installed if installed.is_dir() else Path(__file__).parents[1] / "config"


def load(
    config: Path | None = None,
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Read the shipped defaults, `config`/default.toml, the environment, and what was `given` by option.

    The last one to name a setting wins. What is unknown or not allowed is refused by name, with its origin.
    """
    shipped = shipped_config() / "default.toml"
    values: dict[str, object] = {entry.key: entry.value for entry in _from_file(shipped)}
    origins: dict[str, str] = {}
    for entry in (
        *_from_overlay(config),
        *_from_environment(environment, values),
        *(_Entry(key, value, "the command line") for key, value in (given or {}).items()),
    ):
        values[entry.key], origins[entry.key] = entry.value, entry.where
    values["data.dir"] = values["data.dir"] or _usual_data_dir(environment)
    values["models.dir"] = values["models.dir"] or _usual_models_dir(environment, values["data.dir"])

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
    # Raised out here, so that pydantic's error, which knows the value, is not carried along as context.
    key = ".".join(str(part) for part in first["loc"])
    rule = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    raise AnamnesisError(BAD_SETTING, key=key, where=origins.get(key, str(shipped)), rule=rule)


def _from_overlay(folder: Path | None) -> Iterator[_Entry]:
    """An overlay may hold other files than settings, but it must be there and hold one that is read."""
    if folder is None:
        return
    if not folder.is_dir():
        raise AnamnesisError(SETTINGS_UNREADABLE, where=str(folder), rule="there is no such folder")
    if not any((folder / name).exists() for name in OVERLAID):
        rule = f"it has none of {', '.join(OVERLAID)}"
        raise AnamnesisError(SETTINGS_UNREADABLE, where=str(folder), rule=rule)
    if (file := folder / "default.toml").exists():
        yield from (_from_there(entry, folder) for entry in _from_file(file))


def _from_there(entry: _Entry, folder: Path) -> _Entry:
    """What an overlay calls by a relative path lies beside it, wherever the command is called from."""
    there = entry.value
    if entry.key not in FOLDERS or not isinstance(there, str) or not there or there.startswith("~"):
        return entry
    return entry._replace(value=str(folder.absolute() / there))


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
    """The parser's own message may quote the file, so only the place is taken from it."""
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
    """An empty variable counts as not set, as is usual."""
    for name in environment:
        known = name in VARIABLES or name in NOT_SETTINGS or name.startswith("ANAMNESIS_TEST_")
        if name.startswith("ANAMNESIS_") and not known:
            raise _unknown("The environment", name, VARIABLES)
    for name, key in VARIABLES.items():
        if text := environment.get(name):
            yield _Entry(key, _read(text, like=defaults[key]), f"the variable {name}")


def _read(text: str, like: object) -> object:
    """A variable is text: read it as what the default is, or leave it for the model to refuse."""
    if isinstance(like, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    if isinstance(like, int | float):
        try:
            return type(like)(text)
        except ValueError:
            return text
    return text


def _usual_data_dir(environment: Mapping[str, str]) -> Path:
    """Where the XDG base directory rules put an application's data; they ignore a relative folder."""
    folder = Path(environment.get("XDG_DATA_HOME", ""))
    return (folder if folder.is_absolute() else Path("~/.local/share")) / "anamnesis"


def _usual_models_dir(environment: Mapping[str, str], data_dir: object) -> Path:
    """Beside what set-up keeps for every checkout; without a home, beside the rest of what is kept."""
    if chosen := environment.get("ANAMNESIS_CACHE_DIR"):
        return Path(chosen) / "models"
    folder = Path(environment.get("XDG_CACHE_HOME", ""))
    if folder.is_absolute():
        return folder / "anamnesis" / "models"
    homeless = not os.path.isabs(os.environ.get("HOME", "/"))
    return Path(str(data_dir), "models") if homeless else Path("~/.cache/anamnesis/models")


def _unknown(where: str, key: str, known: Mapping[str, object] | tuple[str, ...]) -> AnamnesisError:
    from difflib import get_close_matches

    nearest = get_close_matches(key, known, n=1)
    hint = f"Did you mean `{nearest[0]}`?" if nearest else "config/default.toml lists them all."
    return AnamnesisError(UNKNOWN_SETTING, where=where, key=key, hint=hint)

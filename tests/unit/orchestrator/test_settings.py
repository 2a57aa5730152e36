"""Settings are read in layers, and the last layer wins; an error names the setting, never its value."""

import os
import stat
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

from memory_blocks.models import MAX_TURNS
from orchestrator.errors import AnamnesisError
from orchestrator.settings import FOLDERS, KEYS, VARIABLES, LettaSettings, load, shipped_config

SECRET = "s3cr3t-canary-7f3a"
SHIPPED = tomllib.loads((shipped_config() / "default.toml").read_text(encoding="utf-8"))
EXAMPLES = {
    "database.url": "postgresql://db/a",
    "livekit.url": "ws://host",
    "safety.region": "US",
    "data.dir": "/d",
    "models.dir": "/m",
}
SECRET_KEYS = ("database.url", "chat.api_key", "letta.api_key", "livekit.api_key", "livekit.api_secret")


def an_overlay(folder: Path, text: str) -> Path:
    """A folder for `--config` whose default.toml holds `text`."""
    folder.mkdir(exist_ok=True)
    (folder / "default.toml").write_text(text, encoding="utf-8")
    return folder


def test_the_shipped_file_and_the_models_name_the_same_settings() -> None:
    in_the_file = {f"{section}.{key}" for section, table in SHIPPED.items() for key in table}

    assert in_the_file == set(KEYS)


def test_every_shipped_setting_has_a_comment_above_it() -> None:
    lines = (shipped_config() / "default.toml").read_text(encoding="utf-8").splitlines()

    settings = [(above, line) for above, line in pairwise(lines) if " = " in line and line[0] != "#"]

    assert len(settings) == len(KEYS)
    assert [line for above, line in settings if not above.startswith("# ")] == []


def test_without_layers_the_shipped_defaults_are_used() -> None:
    settings = load(environment={})

    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8321)
    assert dict(settings.origins) == {}


def test_the_thresholds_of_the_blocks_are_the_ones_decided() -> None:
    blocks = load(environment={}).blocks

    assert (blocks.turns_most, blocks.turns_kept, blocks.turns_refused_above) == (20, 15, 25)
    assert (blocks.warning_share, blocks.archive_share, blocks.emergency_share) == (0.70, 0.85, 0.95)
    assert (blocks.archive_keep, blocks.emergency_keep) == (5, 3)
    assert blocks.archival_trigger_threshold == 28_000
    assert (blocks.conversation_history_limit, blocks.active_session_limit) == (32_000, 4_000)
    assert (blocks.context_summary_limit, blocks.memory_metadata_limit) == (8_000, 2_000)
    assert blocks.rotation_enabled
    assert blocks.validation_enabled


def test_each_layer_wins_over_the_one_before_and_is_named_as_the_origin(tmp_path: Path) -> None:
    overlay = an_overlay(tmp_path, "[server]\nport = 1\nhost = '::1'\n[turn]\nattempts = 7\n")
    variables = {"ANAMNESIS_SERVER_PORT": "2", "ANAMNESIS_SERVER_HOST": "0.0.0.0"}  # noqa: S104

    settings = load(overlay, {"server.port": 3}, variables)

    assert (settings.server.port, settings.server.host, settings.turn.attempts) == (3, "0.0.0.0", 7)  # noqa: S104
    assert dict(settings.origins) == {
        "server.port": "the command line",
        "server.host": "the variable ANAMNESIS_SERVER_HOST",
        "turn.attempts": str(tmp_path / "default.toml"),
    }


def test_an_overlay_replaces_single_keys_and_leaves_the_rest(tmp_path: Path) -> None:
    settings = load(an_overlay(tmp_path, "[blocks]\nturns_kept = 10\n"), environment={})

    assert (settings.blocks.turns_kept, settings.blocks.turns_most) == (10, 20)


@pytest.mark.parametrize("text", ["", "[server]\n"], ids=["empty file", "empty section"])
def test_an_overlay_may_leave_everything_as_it_is(tmp_path: Path, text: str) -> None:
    assert load(an_overlay(tmp_path, text), environment={}) == load(environment={})


@pytest.mark.parametrize("other", ["agents.toml", "prompts"])
def test_an_overlay_may_hold_other_files_than_settings(tmp_path: Path, other: str) -> None:
    (tmp_path / other).touch()

    assert load(tmp_path, environment={}) == load(environment={})


def test_an_overlay_without_any_file_that_is_read_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "defaults.toml").touch()

    with pytest.raises(
        AnamnesisError, match=r"it has none of default\.toml, agents\.toml, recall\.toml, prompts"
    ) as refused:
        load(tmp_path, environment={})

    assert str(tmp_path) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[server]\nprot = 1", "`server.prot` that does not exist. Did you mean `server.port`?"),
        ("[sever]\nport = 1", "`sever` that does not exist. Did you mean `server`?"),
        ("[qqqqq]", "`qqqqq` that does not exist. config/default.toml lists them all."),
        ("server = 1", "Setting `server`"),
    ],
)
def test_an_unknown_setting_is_refused_by_name_with_the_nearest_one(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(AnamnesisError) as refused:
        load(an_overlay(tmp_path, text), environment={})

    assert says in str(refused.value)
    assert str(tmp_path / "default.toml") in str(refused.value)


def test_an_unknown_variable_of_ours_is_refused_by_name_with_the_nearest_one() -> None:
    with pytest.raises(AnamnesisError, match=r"`ANAMNESIS_SEVER_PORT` .* mean `ANAMNESIS_SERVER_PORT`"):
        load(environment={"ANAMNESIS_SEVER_PORT": "1"})


@pytest.mark.parametrize("text", ["[letta]\nshow_seconds = 1.0", "[livekit]\nlook_seconds = 1.0"])
def test_the_old_name_of_a_setting_is_refused_with_the_new_one(tmp_path: Path, text: str) -> None:
    with pytest.raises(AnamnesisError, match=r"It is called `(letta\.sync|livekit\.poll)_seconds` now\."):
        load(an_overlay(tmp_path, text), environment={})


def test_the_old_name_of_a_variable_is_refused_with_the_new_one() -> None:
    with pytest.raises(AnamnesisError, match=r"It is called `ANAMNESIS_LETTA_SYNC_SECONDS` now\."):
        load(environment={"ANAMNESIS_LETTA_SHOW_SECONDS": "1"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[brain]\nsure_intent = 0.6", "now reads every message"),
        ("[brain]\nsure_context = 0.75", "now reads every message"),
        ('[chat]\nclassifier_model = "x"', r"its model is `chat\.extractor_model`"),
        ('[letta]\nclassifier_model = "x"', r"its model is `letta\.extractor_model`"),
    ],
)
def test_a_setting_that_is_gone_is_refused_with_what_replaced_it(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(AnamnesisError, match=says):
        load(an_overlay(tmp_path, text), environment={})


def test_a_variable_that_is_gone_is_refused_with_what_replaced_it() -> None:
    with pytest.raises(AnamnesisError, match=r"its model is `letta\.extractor_model`"):
        load(environment={"ANAMNESIS_LETTA_CLASSIFIER_MODEL": "x"})


def test_variables_that_are_not_settings_are_ignored() -> None:
    others = {
        "ANAMNESIS_CACHE_DIR": "x",
        "ANAMNESIS_TEST_SEED": "1",
        "ANAMNESIS_FAULT": "a:1",
        "LETTA_X": "1",
    }

    assert dict(load(environment=others).origins) == {}


def test_every_setting_has_its_variable() -> None:
    origins = {}
    for name, key in VARIABLES.items():
        section, field = key.split(".")
        text = EXAMPLES.get(key, str(SHIPPED[section][field]) or "http://host")
        origins[name] = dict(load(environment={name: text}).origins)
    del origins["ANAMNESIS_CHAT_MODEL"]["chat.endpoint"]  # that of OpenAI, which a model without one gets

    assert origins == {name: {key: f"the variable {name}"} for name, key in VARIABLES.items()}


OPENAI = {"OPENAI_API_KEY": "a key", "OPENAI_BASE_URL": "http://elsewhere/v1"}


def test_the_variables_of_openai_alone_change_nothing() -> None:
    settings = load(environment=OPENAI)

    assert dict(settings.origins) == {}
    assert (settings.chat.endpoint, settings.chat.api_key.get_secret_value()) == ("", "")


@pytest.mark.parametrize("where", ["option", "variable", "file"])
def test_the_variables_of_openai_complete_a_model_that_was_named(tmp_path: Path, where: str) -> None:
    overlay = an_overlay(tmp_path, '[chat]\nmodel = "a-model"') if where == "file" else None
    given = {"chat.model": "a-model"} if where == "option" else {}
    variable = {"ANAMNESIS_CHAT_MODEL": "a-model"} if where == "variable" else {}

    chat = load(overlay, given, OPENAI | variable).chat

    assert (chat.model, chat.endpoint) == ("a-model", "http://elsewhere/v1")
    assert chat.api_key.get_secret_value() == "a key"


def test_settings_of_ours_win_over_the_variables_of_openai() -> None:
    ours = {"chat.model": "a-model", "chat.endpoint": "http://ours/v1", "chat.api_key": "ours"}

    chat = load(given=ours, environment=OPENAI).chat

    assert (chat.endpoint, chat.api_key.get_secret_value()) == ("http://ours/v1", "ours")


def test_a_model_without_an_address_is_one_of_openai() -> None:
    settings = load(given={"chat.model": "gpt-4.1-mini"}, environment={})

    assert settings.chat.endpoint == "https://api.openai.com/v1"
    assert "OpenAI" in settings.origins["chat.endpoint"]


def test_our_variable_wins_over_the_customary_one() -> None:
    both = {"ANAMNESIS_LETTA_BASE_URL": "http://ours", "LETTA_BASE_URL": "http://customary"}

    assert load(environment=both).letta.base_url == "http://ours"


def test_an_empty_variable_counts_as_not_set() -> None:
    empty = {"ANAMNESIS_SERVER_PORT": "", "LETTA_API_KEY": "", "XDG_DATA_HOME": ""}

    assert load(environment=empty) == load(environment={})


@pytest.mark.parametrize(
    ("variable", "text", "rule"),
    [
        ("ANAMNESIS_SERVER_PORT", "many", "should be a valid integer"),
        ("ANAMNESIS_SERVER_PORT", "65536", "should be less than or equal to 65535"),
        ("ANAMNESIS_TURN_DEADLINE_SECONDS", "nan", "should be a finite number"),
        ("ANAMNESIS_TURN_LEASE_SECONDS", "1e300", "should be less than or equal to 86400"),
        ("ANAMNESIS_DATABASE_BUSY_TIMEOUT_SECONDS", "1e-300", "should be greater than or equal to 0.001"),
        ("ANAMNESIS_SESSION_IDLE_MINUTES", "1" + 18 * "0", "should be less than or equal to 1000000000"),
        ("ANAMNESIS_BLOCKS_CONVERSATION_HISTORY_LIMIT", "3999", "should be greater than or equal to 4000"),
        ("ANAMNESIS_BLOCKS_CONTEXT_SUMMARY_LIMIT", "1", "should be greater than or equal to 1000"),
        ("ANAMNESIS_TURN_ATTEMPTS", "0", "should be greater than or equal to 1"),
        ("ANAMNESIS_BLOCKS_ROTATION_ENABLED", "maybe", "should be a valid boolean"),
        ("ANAMNESIS_BLOCKS_TURNS_REFUSED_ABOVE", str(MAX_TURNS + 1), "should be less than or equal to 25"),
        ("ANAMNESIS_BLOCKS_TURNS_MOST", str(MAX_TURNS), "should be less than or equal to 24"),
        ("ANAMNESIS_BLOCKS_TURNS_KEPT", "21", "must be at most `turns_most`, which is 20"),
        ("ANAMNESIS_BLOCKS_WARNING_SHARE", "0.9", "must be at most `archive_share`, which is 0.85"),
        ("ANAMNESIS_LOGS_LEVEL", "loud", "should be 'debug', 'info', 'warning' or 'error'"),
        ("ANAMNESIS_SAFETY_REGION", "Utopia", "must be empty or two capital letters"),
        ("ANAMNESIS_LETTA_BASE_URL", "localhost:8283", "must be empty or http:// or https:// with a host"),
        ("LIVEKIT_URL", "ws://h:x", "must be empty or ws://"),
        ("LETTA_BASE_URL", "http://me:pass@h", "no user and no query"),
        ("ANAMNESIS_DATABASE_URL", "mysql://h/d", "must be empty, postgresql://USER:PASSWORD@HOST"),
        ("ANAMNESIS_DATABASE_URL", "postgresql://u:p@h:port/d", "must be empty, postgresql://USER"),
        ("ANAMNESIS_DATABASE_URL", "postgresql://[h/d", "must be empty, postgresql://USER"),
    ],
)
def test_a_bad_value_is_refused_by_key_rule_and_origin(variable: str, text: str, rule: str) -> None:
    with pytest.raises(AnamnesisError) as refused:
        load(environment={variable: text})

    assert f"`{VARIABLES[variable]}` (the variable {variable}): " in str(refused.value)
    assert rule in str(refused.value)


@pytest.mark.parametrize("text", ["port = '8321'", "port = true", "port = 8321.5"])
def test_a_file_must_give_a_value_of_the_right_type(tmp_path: Path, text: str) -> None:
    with pytest.raises(AnamnesisError, match=r"`server.port` \(.*default.toml\): should be a valid integer"):
        load(an_overlay(tmp_path, f"[server]\n{text}"), environment={})


def test_a_missing_overlay_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnamnesisError, match="there is no such folder"):
        load(tmp_path / "nowhere", environment={})


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (f"[letta]\napi_key = {SECRET}".encode(), "not valid TOML at line 2, column"),
        (b"[letta]\napi_key = '\xff'", "not UTF-8"),
    ],
)
def test_a_file_that_is_not_toml_is_refused_by_place_without_being_quoted(
    tmp_path: Path, content: bytes, rule: str
) -> None:
    (tmp_path / "default.toml").write_bytes(content)

    with pytest.raises(AnamnesisError, match=rule) as refused:
        load(tmp_path, environment={})

    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_secret_is_not_shown_by_the_settings(key: str) -> None:
    value = f"postgresql://user:{SECRET}@host/name" if key == "database.url" else SECRET
    variable = f"ANAMNESIS_{key.replace('.', '_').upper()}"

    settings = load(environment={variable: value})

    shown = repr(settings) + str(settings) + settings.model_dump_json() + settings.display(key)
    assert SECRET not in shown
    assert "*****" in settings.display(key)


@pytest.mark.parametrize("key", SECRET_KEYS)
def test_a_refused_secret_is_quoted_neither_by_the_error_nor_by_what_led_to_it(
    tmp_path: Path, key: str
) -> None:
    section, field = key.split(".")
    value = f'"{SECRET}"' if key == "database.url" else f'["{SECRET}"]'

    with pytest.raises(AnamnesisError, match=rf"`{key}`") as refused:
        load(an_overlay(tmp_path, f"[{section}]\n{field} = {value}"), environment={})

    assert SECRET not in str(refused.value)
    assert refused.value.__context__ is None


def test_pydantics_own_error_does_not_quote_the_value() -> None:
    with pytest.raises(ValidationError) as refused:
        LettaSettings.model_validate({"base_url": SECRET, "api_key": ""})

    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({}, "~/.local/share/anamnesis"),
        ({"XDG_DATA_HOME": "/xdg"}, "/xdg/anamnesis"),
        ({"XDG_DATA_HOME": "relative"}, "~/.local/share/anamnesis"),
        ({"XDG_DATA_HOME": "/xdg", "ANAMNESIS_DATA_DIR": "~/mine"}, "~/mine"),
    ],
)
def test_the_data_folder_is_the_one_given_or_the_default(environment: dict[str, str], folder: str) -> None:
    assert load(environment=environment).data.dir == Path(folder).expanduser()


@pytest.mark.parametrize("key", FOLDERS)
@pytest.mark.parametrize(("named", "found"), [("kept", "overlay/kept"), ("/d", "/d"), ("~/mine", "~/mine")])
def test_a_relative_folder_in_an_overlay_is_relative_to_the_overlay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str, named: str, found: str
) -> None:
    section, name = key.split(".")
    an_overlay(tmp_path / "overlay", f"[{section}]\n{name} = '{named}'\n")
    monkeypatch.chdir(tmp_path)

    settings = load(Path("overlay"), environment={})

    assert getattr(getattr(settings, section), name) == tmp_path / Path(found).expanduser()


def test_a_relative_folder_in_a_variable_is_relative_to_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    settings = load(an_overlay(tmp_path / "overlay", ""), environment={"ANAMNESIS_DATA_DIR": "kept"})

    assert settings.data.dir == tmp_path / "kept"


@pytest.mark.parametrize("home", ["", "relative"])
@pytest.mark.parametrize("given", [{}, {"data.dir": "~/mine"}], ids=["usual", "given"])
def test_a_home_that_is_not_an_absolute_path_is_refused(
    monkeypatch: pytest.MonkeyPatch, home: str, given: dict[str, object]
) -> None:
    monkeypatch.setenv("HOME", home)

    with pytest.raises(
        AnamnesisError, match=r"`data\.dir` .*: begins with ~, but HOME is not an absolute path"
    ):
        load(given=given, environment={})


def test_without_a_usable_home_another_data_folder_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")

    assert load(given={"data.dir": "/d"}, environment={}).data.dir == Path("/d")


@pytest.mark.parametrize(
    ("environment", "home", "folder"),
    [
        ({}, "/h", "/h/.cache/anamnesis/models"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/h", "/xdg/anamnesis/models"),
        ({"XDG_CACHE_HOME": "relative"}, "/h", "/h/.cache/anamnesis/models"),
        ({"XDG_CACHE_HOME": "/xdg", "ANAMNESIS_CACHE_DIR": "/cache"}, "/h", "/cache/models"),
        ({"ANAMNESIS_CACHE_DIR": "/cache", "ANAMNESIS_MODELS_DIR": "/mine"}, "/h", "/mine"),
        ({"ANAMNESIS_DATA_DIR": "/d"}, "", "/d/models"),
    ],
)
def test_the_models_folder_is_the_one_given_or_one_in_the_cache(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], home: str, folder: str
) -> None:
    monkeypatch.setenv("HOME", home)

    assert load(environment=environment).models.dir == Path(folder)


def test_the_data_folder_is_created_when_needed_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    data = load(given={"data.dir": str(tmp_path / "a" / "b")}, environment={}).data

    before, folder = data.dir.exists(), data.prepare()

    assert (before, stat.S_IMODE(folder.stat().st_mode)) == (False, 0o700)
    assert data.prepare() == folder


def test_a_data_folder_that_cannot_be_created_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(
        AnamnesisError, match=r"`data.dir` .*: the folder cannot be created \(Not a directory\)"
    ):
        load(given={"data.dir": str(tmp_path / "file" / "b")}, environment={}).data.prepare()


def test_a_data_folder_that_cannot_be_written_to_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)  # root may write anywhere

    with pytest.raises(AnamnesisError, match=r"`data.dir` .*: is a folder that this user may not write to"):
        load(given={"data.dir": str(tmp_path)}, environment={}).data.prepare()


def test_the_database_is_the_one_given_or_a_file_in_the_data_folder(tmp_path: Path) -> None:
    given = {"data.dir": str(tmp_path)}
    elsewhere = "postgresql://u:p@db/a"

    assert load(given=given, environment={}).database_url() == f"sqlite:///{tmp_path}/anamnesis.db"
    assert load(given=given, environment={"ANAMNESIS_DATABASE_URL": elsewhere}).database_url() == elsewhere


def test_a_data_folder_with_a_question_mark_is_refused() -> None:
    with pytest.raises(AnamnesisError, match="must not contain a question mark"):
        load(given={"data.dir": "/what?"}, environment={})


def test_the_page_on_configuration_names_every_customary_variable() -> None:
    page = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
    customary = {name: key for name, key in VARIABLES.items() if not name.startswith("ANAMNESIS_")}

    assert [name for name, key in customary.items() if f"| `{name}` | `{key}` |" not in page] == []

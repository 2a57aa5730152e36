"""The TypeScript example of docs/frontend.md, built as it is written there and run in a real Chromium."""

import re
import shutil
import signal
import subprocess
from pathlib import Path

import httpx
import pytest
from playwright.async_api import BrowserContext, Route

from orchestrator.api.authentication import Authentication
from orchestrator.wire.ids import PersonId
from tests.browser.support.chat import Chat
from tests.browser.support.scenes import HEADACHE
from tests.integration.test_frontend import code
from tests.support.orchestrators import ANN, an_orchestrator, local_brain, messages
from tests.support.servers.livekit_rooms import over_livekit, serving
from tools.console import CONSOLE, MODULES, ensure_packages, npm_environment
from tools.servers.livekit import Address
from tools.servers.process import free_port

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the event loop that the browser belongs to

PAGE = """<!doctype html><meta charset="utf-8"><title>A frontend</title>
<script type="module" src="/main.ts"></script>"""
MAIN = """
import { say } from "./frontend.ts";
Object.assign(window, { say });
"""
STORED_CONVERSATION = "localStorage.getItem('anamnesis/conversation')"


@pytest.fixture(scope="module")
def frontend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as a page that can be asked to `say` something."""
    node, folder = ensure_packages(), tmp_path_factory.mktemp("frontend")
    shutil.copytree(CONSOLE / "src" / "protocol", folder / "protocol")
    (folder / "node_modules").symlink_to(MODULES)
    files = {"index.html": PAGE, "main.ts": MAIN, "frontend.ts": code("ts")}
    for name, text in files.items():
        (folder / name).write_text(text)
    shutil.copy(CONSOLE / "vite.config.ts", folder)
    subprocess.run(
        [node / "node", MODULES / "vite" / "bin" / "vite.js", "build", "--logLevel", "warn"],
        cwd=folder,
        env=npm_environment(node),
        check=True,
    )
    return folder / "dist"


@pytest.mark.parametrize("query", ["", "?livekit"], ids=["websocket", "livekit"])
@pytest.mark.requirement("000-003", "003-148")
async def test_it_asks_a_real_orchestrator_and_continues_after_a_reload(
    embedded: str, tmp_path: Path, livekit: Address, frontend: Path, profile: BrowserContext, query: str
) -> None:
    async with (
        an_orchestrator(embedded, local_brain()).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit, page=frontend) as site,
    ):
        code = Authentication(tmp_path, session_seconds=3600).sessions.issue_code(PersonId(ANN))
        chat = await Chat.new_tab(profile)
        page, logged = chat.page, list[str]()
        page.on("console", lambda message: logged.append(message.text))
        async with page.expect_console_message(lambda message: message.text == "open"):
            await page.goto(f"{site.http.base_url}{query}#{code}")
        async with page.expect_console_message(lambda message: "no language model" in message.text):
            await chat.run(f"say('{HEADACHE}')")
        first, logged[:] = [*logged], []
        async with page.expect_console_message(lambda message: message.text == "open"):
            await page.reload()
        async with page.expect_console_message(lambda message: message.text.startswith("updated")):
            await chat.run("say('8')")
        second = [*logged]
        stored = await messages(orchestrator, await chat.run(STORED_CONVERSATION))

    assert chat.failures == []
    assert [message.contents for message in stored if message.message_role == "user"] == [HEADACHE, "8"]
    for lines in (first, second):
        assert any(line.startswith("retrieved ") for line in lines)
    assert len(stored) == 4


@pytest.mark.parametrize("fault", ["after_begin_commit:1", "after_sentence_commit:1"])
async def test_it_loses_nothing_if_the_server_is_killed_in_the_middle_of_an_answer(
    tmp_path: Path, livekit: Address, frontend: Path, profile: BrowserContext, fault: str
) -> None:
    """Killed before a word was said, the answer continues; killed after its first sentence, it failed."""

    async def send_file(route: Route) -> None:
        name = route.request.url.split("#")[0].removeprefix(f"{address}/")
        await route.fulfill(path=frontend / (name or "index.html"))

    chat, port = await Chat.new_tab(profile), free_port()
    page, logged, address = chat.page, list[str](), f"http://127.0.0.1:{port}"
    page.on("console", lambda message: logged.append(message.text))
    await page.route(re.compile(rf"^{address}/(?:#.*|assets/.*)?$"), send_file)
    async with serving(tmp_path, livekit, port=port, fault=fault) as (door, killed):
        async with page.expect_console_message(lambda message: message.text == "open"):
            await page.goto(door["page"])
        await chat.run(f"say('{HEADACHE}')")
        assert await killed.wait() == -signal.SIGKILL
    async with serving(tmp_path, livekit, port=port) as (door, _):
        async with page.expect_console_message(lambda message: message.text.startswith("updated")):
            await chat.run("say('8')")
        said = await transcript(door, await chat.run(STORED_CONVERSATION))

    not_spoken = re.compile(r"[a-z]|Failed to load resource")  # states, traces, and a server that is away
    spoken = [line for line in logged if not not_spoken.match(line)]
    assert chat.failures == []
    assert [content for role, content in said if role == "user"] == [HEADACHE, "8"]
    assert len(spoken) >= 2
    assert len(set(spoken)) == len(spoken)
    assert "".join(spoken) == "".join(content for role, content in said if role != "user")


async def transcript(door: dict[str, str], conversation_id: str) -> list[tuple[str, str]]:
    """Who said what in a conversation."""
    headers = {"Authorization": f"Bearer {door['key']}"}
    async with httpx.AsyncClient(base_url=door["url"], headers=headers) as http:
        page = (await http.get(f"/v1/conversations/{conversation_id}/transcript")).raise_for_status().json()
    return [(each["role"], each["content"]) for each in page["items"]]

"""The TypeScript example of docs/frontend.md, built as it is written there and run in a real Chromium."""

import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext

from orchestrator.api.authentication import Authentication
from orchestrator.wire.ids import PersonId
from tests.browser.chat import Chat
from tests.browser.scenes import HEADACHE
from tests.integration.test_frontend import code
from tests.support.livekit_rooms import over_livekit
from tests.support.orchestrators import ANN, an_orchestrator, local_brain, messages
from tools.console import CONSOLE, MODULES, ensure_packages, npm_environment
from tools.servers.livekit import Address

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

"""The TypeScript of the page for frontend developers, built as it stands there and run in a real Chromium."""

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser.chromium import Profile
from tests.browser.scenes import HEADACHE
from tests.houses import a_house, local_brain, messages
from tests.integration.test_frontend import code
from tests.rooms import over_livekit
from tools.console import CONSOLE, MODULES, ensure_packages, npm_environment
from tools.servers.livekit import Address

PAGE = """<!doctype html><meta charset="utf-8"><title>A frontend</title>
<script type="module" src="/main.ts"></script>"""
LISTENS = "export const told: string[] = []; console.log = (...words) => void told.push(words.join(' '));"
MAIN = """
import { told } from "./listens.ts";
import { say } from "./frontend.ts";
Object.assign(window, { told, say });
"""
REMEMBERED = "localStorage.getItem('anamnesis/conversation')"


@pytest.fixture(scope="module")
def frontend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The snippet as a page, which notes what it writes to the browser's console."""
    node, folder = ensure_packages(), tmp_path_factory.mktemp("frontend")
    shutil.copytree(CONSOLE / "src" / "protocol", folder / "protocol")
    (folder / "node_modules").symlink_to(MODULES)
    files = {"index.html": PAGE, "listens.ts": LISTENS, "main.ts": MAIN, "frontend.ts": code("ts")}
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


@pytest.mark.parametrize("way", ["", "?livekit"], ids=["websocket", "livekit"])
@pytest.mark.requirement("000-003", "003-148")
async def test_it_asks_a_real_house_and_goes_on_after_a_reload(
    embedded: str, tmp_path: Path, livekit: Address, frontend: Path, profile: Profile, way: str
) -> None:
    def visit(address: str) -> tuple[list[str], list[str], str]:
        page = profile.open(address).until("told.includes('open')")
        page.run(f"say('{HEADACHE}')")
        first = page.until("told.some(line => line.endsWith('?'))").run("told")
        page.reload().until("told.includes('open')")
        page.run("say('8')")
        second = page.until("told.some(line => line.startsWith('updated'))").run("told")
        assert page.failures == []
        return first, second, str(page.run(REMEMBERED))

    async with (
        a_house(embedded, local_brain()).open() as house,
        over_livekit(house, tmp_path, livekit, page=frontend) as site,
    ):
        first, second, conversation_id = await asyncio.to_thread(
            visit, f"{site.http.base_url}{way}#{site.key}"
        )
        said = await messages(house, conversation_id)

    assert [message.contents for message in said if message.message_role == "user"] == [HEADACHE, "8"]
    for told in (first, second):
        assert any(line.startswith("retrieved ") for line in told)
    assert len(said) == 4

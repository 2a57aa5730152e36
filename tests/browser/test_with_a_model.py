"""The page with a server that asks a language model: what was sent to it, and contradictions."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, expect

from tests.browser.support.chat import Chat
from tests.browser.support.real_server import RealServer
from tests.browser.support.signed_in import say_all, start_over
from tests.support.servers.forked_servers import Forker
from tools.servers.model_endpoint import MODEL, ModelEndpoint, Step

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the event loop that the browser belongs to


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, console: Path, forker: Forker, model_endpoint: ModelEndpoint
) -> Iterator[RealServer]:
    """A running server with a model, shared by the tests of this file."""
    model = {"ANAMNESIS_CHAT_MODEL": MODEL, "ANAMNESIS_CHAT_ENDPOINT": model_endpoint.url}
    with RealServer(forker, tmp_path_factory.mktemp("server") / "data", model) as server:
        yield server.start()
    check = server.forker.run(server.data, "check")
    assert (check.returncode, check.stderr) == (0, ""), check.stdout


async def test_why_shows_what_the_model_was_sent_and_how_it_differs_from_the_turn_before(
    server: RealServer, profile: BrowserContext, model_endpoint: ModelEndpoint, word: str
) -> None:
    chat = await Chat.open(profile, server.address_for("ann"))
    await say_all(chat, "I cannot sleep at night", f"and I lie awake, {word}")

    await chat.page.locator(".why").last.click()
    heading = chat.page.get_by_role("heading", name="What the model was sent")
    requests = chat.page.locator(".station", has=heading).locator("details")
    await expect(requests.first).to_contain_text(MODEL)
    sent = [json.dumps(each, ensure_ascii=False, sort_keys=True) for each in model_endpoint.asked(word)]
    exact = []
    for request in await requests.all():
        await request.locator("summary").click()
        await expect(request.locator("[data-change=added]").filter(has_text=word).first).to_be_visible()
        await request.get_by_role("tab", name="As people read it").click()
        await expect(request.locator("pre")).to_contain_text(word)
        await request.get_by_role("tab", name="Exactly as it was sent").click()
        exact.append(await request.locator("pre").inner_text())

    assert [json.dumps(json.loads(each), ensure_ascii=False, sort_keys=True) for each in exact] == sent
    assert chat.failures == []


async def test_two_values_that_were_never_corrected_are_side_by_side_until_one_is_forgotten(
    server: RealServer, profile: BrowserContext, model_endpoint: ModelEndpoint, word: str
) -> None:
    for value in ("3 May", "5 May"):
        said = {"op": "add", "target": None, "kind": "birthday", "subject": "person", "stable": True}
        reading = {
            "enriched_message": f"User says that their birthday is on {value}",
            "intent": "GENERAL_HEALTH",
            "confidence": 0.8,
            "reasoning": "A date",
            "changes": [{**said, "value": value}],
        }
        model_endpoint.script(f"{value} {word}", Step(text=json.dumps(reading)))
    chat = await Chat.open(profile, server.address_for("cora"))
    await say_all(chat, f"my birthday is on 3 May {word}")
    await start_over(chat)
    await say_all(chat, f"my birthday is on 5 May {word}")

    await chat.page.get_by_role("link", name="Memory", exact=True).click()
    sides = chat.page.get_by_role("region", name="Contradictions").locator(".side")
    await expect(sides).to_have_count(2)
    await expect(sides.nth(0)).to_contain_text("Counts now")
    await expect(sides.nth(0)).to_contain_text("5 May")
    await expect(sides.nth(1)).to_contain_text("3 May")
    first, second = [await side.bounding_box() for side in await sides.all()]
    assert first is not None
    assert second is not None
    assert (first["y"], first["x"] + first["width"] <= second["x"]) == (second["y"], True)

    await sides.nth(1).get_by_role("button", name="Forget").click()
    await chat.page.get_by_role("button", name="Forget it").click()
    await expect(sides).to_have_count(0)
    await expect(chat.page.locator(".memory")).to_have_count(1)
    await expect(chat.page.locator(".memory")).to_contain_text("5 May")
    assert chat.failures == []

"""The views of the page with the real server: what each of them shows and does."""

import csv
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Route, expect

from tests.browser.support.chat import Chat
from tests.browser.support.real_server import RealServer
from tests.browser.support.scenes import HEADACHE
from tests.browser.support.signed_in import (
    ALLERGY,
    MEMORY_QUESTION,
    SignedIn,
    chat,
    open_first_conversation,
    say_all,
    server,
    signed_in,
    start_over,
)

__all__ = ["chat", "server", "signed_in"]  # fixtures
pytestmark = pytest.mark.asyncio(loop_scope="session")  # the event loop that the browser belongs to

SUMMARY: dict[str, Any] = {
    "id": "mem_summary",
    "kind": "summary",
    "about": None,
    "saidAt": None,
    "speaker": None,
    "source": None,
    "tags": [],
    "pinned": False,
    "archived": False,
    "rating": None,
    "importance": 0.5,
    "confidence": 1,
    "createdAt": "2026-11-18T10:00:00.000Z",
    "updatedAt": "2026-11-18T10:00:00.000Z",
}
LARGEST_START = 200_000  # bytes of JavaScript, gzipped, that the chat needs
WIDER_THAN_THE_WINDOW = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


async def test_a_memory_question_is_answered_and_its_memory_is_opened(chat: Chat) -> None:
    assert "penicillin" in (await chat.texts(".answer"))[0]

    await chat.page.get_by_role("link", name=re.compile(r"^from memory: \d+ · why\?$")).click()
    await chat.until_text(".story", MEMORY_QUESTION)

    assert re.search(r"/why/msg_", chat.page.url)
    memories = await chat.texts(".memories li")
    assert any("penicillin" in memory for memory in memories)
    await chat.until_text(".station h3", "Understood as")
    assert len(await chat.texts(".waterfall tr")) >= 3


async def test_the_list_opens_an_earlier_conversation_with_the_own_messages(chat: Chat) -> None:
    await open_first_conversation(chat)

    assert await chat.texts(".question > p") == [HEADACHE, "8", "since Tuesday", ALLERGY]
    assert re.search(r"/chat/conv_", chat.page.url)


async def test_conversations_are_found_renamed_and_archived(chat: Chat) -> None:
    search = chat.page.get_by_role("searchbox", name="Search conversations")
    await search.fill("penicillin")
    await expect(chat.page.locator(".conversation-entry")).to_have_count(2)
    await search.fill("Tuesday")
    await expect(chat.page.locator(".conversation-entry")).to_have_count(1)

    await chat.page.locator(".conversation-entry button").click()
    await chat.page.get_by_role("menuitem", name="Rename").click()
    await chat.page.get_by_role("textbox", name="Title").fill("My headache")
    await chat.page.keyboard.press("Enter")
    await chat.until_text(".conversation-title", "My headache")

    await chat.page.get_by_role("button", name="Change My headache").click()
    await chat.page.get_by_role("menuitem", name="Archive").click()
    await chat.until_text(".conversations .empty", "No conversation has these words")
    await chat.page.get_by_role("checkbox", name="Archived").check()
    await chat.page.get_by_role("button", name="Change My headache").click()
    await chat.page.get_by_role("menuitem", name="Make active again").click()
    await chat.page.get_by_role("checkbox", name="Archived").uncheck()
    await chat.until_text(".conversation-title", "My headache")


async def test_the_slider_shows_the_blocks_after_the_first_turn(chat: Chat) -> None:
    await open_first_conversation(chat)
    await chat.page.get_by_role("link", name="Blocks").click()
    session = chat.page.get_by_role("region", name="Active session")
    await expect(session).to_contain_text("Allergies: penicillin")
    await chat.until_text(".valid", "keep every rule")

    slider = chat.page.get_by_role("slider", name="Turn")
    await slider.focus()
    await slider.press("Home")

    await expect(session).to_contain_text("Concern: headache")
    await expect(session).not_to_contain_text("penicillin")
    assert "turn=1" in chat.page.url
    await chat.page.get_by_role("button", name="Later").click()
    added = chat.page.get_by_role("region", name="Conversation history").locator("[data-change=added]")
    await expect(added.filter(has_text="Person: 8")).to_have_count(1)


async def test_a_diff_of_two_revisions_says_what_changed_and_who_changed_it(chat: Chat) -> None:
    await open_first_conversation(chat)
    await chat.page.get_by_role("link", name="Blocks").click()
    session = chat.page.get_by_role("region", name="Active session")
    await session.get_by_role("button", name="Revisions").click()

    revisions = chat.page.get_by_role("region", name="Revisions of active session")
    await expect(revisions.get_by_role("button")).to_have_count(4)
    await revisions.get_by_role("button").nth(2).click()

    await expect(revisions.locator("[data-change=added]")).to_contain_text(["Severity of headache: 8/10"])
    await expect(revisions.get_by_role("button").nth(2)).to_contain_text("context extractor")
    assert "label=active_session" in chat.page.url


async def test_the_journey_of_a_search_shows_what_was_found_and_why(chat: Chat) -> None:
    await chat.page.locator(".why").click()
    await chat.page.get_by_role("link", name="How these were chosen").click()

    final = chat.page.get_by_role("region", name="Final")
    await expect(final).to_contain_text("penicillin")
    await expect(final.locator(".signals").first).to_contain_text("vector")
    await expect(chat.page.locator(".funnel")).to_contain_text("searched")
    await expect(chat.page.get_by_role("meter", name="Budget of the context")).to_be_visible()
    assert "/retrievals/" in chat.page.url


async def test_a_correction_in_the_memory_is_used_by_the_next_answer(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address_for("dora"))
    await say_all(chat, ALLERGY)
    await chat.page.get_by_role("link", name="Memory", exact=True).click()
    allergies = chat.page.get_by_role("region", name="Allergies")
    await expect(allergies).to_contain_text(f"“{ALLERGY}”")  # in whose words

    await allergies.get_by_role("button", name="Correct").click()
    await allergies.get_by_role("textbox").fill("amoxicillin")
    await allergies.get_by_role("button", name="Save").click()
    await chat.until_text(".undo", "Corrected.")
    await expect(allergies).to_contain_text("allergic to amoxicillin")

    await chat.page.get_by_role("link", name="Chat", exact=True).click()
    await start_over(chat)
    await say_all(chat, MEMORY_QUESTION)
    assert "amoxicillin" in (await chat.texts(".answer"))[0]
    assert chat.failures == []


async def test_a_memory_is_pinned_forgotten_with_a_preview_and_brought_back(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address_for("emma"))
    await say_all(chat, ALLERGY)
    conversation = chat.page.url
    await chat.page.goto(f"{server.url}/memory")
    memory = chat.page.locator(".memory", has_text="penicillin")
    await memory.get_by_role("button", name="Pin").click()
    await expect(chat.page.locator(".memory[data-pinned=true]")).to_have_count(1)

    await memory.get_by_role("button", name="Forget").click()
    dialog = chat.page.get_by_role("dialog", name="Forget this?")
    await expect(dialog).to_contain_text("No longer found, because it rests on them")
    await expect(dialog).to_contain_text(ALLERGY)
    await dialog.get_by_role("button", name="Forget it").click()
    await chat.until_text(".empty", "Nothing lasting is known yet")
    blocks = await Chat.open(profile, f"{conversation}/blocks")
    session = blocks.page.get_by_role("region", name="Active session")
    await expect(session).to_contain_text("by person:emma")
    await expect(session).not_to_contain_text("penicillin")
    await blocks.page.close()

    await chat.click("Undo")
    await expect(memory).to_be_visible()
    await memory.locator("summary").click()
    await expect(memory.locator(".origins")).to_contain_text("person:emma")
    assert chat.failures == []


async def test_staff_reads_the_memory_of_others_only_with_a_reason_which_is_kept(
    server: RealServer, signed_in: SignedIn, profile: BrowserContext
) -> None:
    staff = await Chat.open(profile, server.address)
    await staff.until_connected()
    await staff.until_text(".roles", "all roles")
    await staff.page.goto(f"{server.url}/memory?person=ann")
    memory = staff.page.locator(".memory").first
    await expect(memory).to_contain_text("The text is not shown in a list")

    await memory.locator("summary").click()
    await staff.page.get_by_role("textbox").fill("a question of ann")
    await staff.click("Show")
    await expect(memory.locator(".origins")).to_contain_text("penicillin")

    await staff.page.goto(f"{server.url}/traces?of=all&actor=operator")
    await staff.until_text(".trace-rows", "a question of ann")
    assert staff.failures == []


async def test_traces_come_live_and_are_filtered_opened_and_saved(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address_for("fred"))
    await chat.until_connected()
    table = await Chat.open(profile, f"{server.url}/traces?action=stored")
    await table.until_text(".live", "Live")

    await say_all(chat, HEADACHE)
    rows = table.page.locator(".trace-rows [role=row]")
    await expect(rows).to_have_count(4)  # the four blocks
    await table.page.locator("label:has(span:text-is('Block')) select").select_option("active_session")
    await expect(rows).to_have_count(1)
    assert "label=active_session" in table.page.url
    await rows.first.click()
    await table.until_text(".open-trace", "turn 1 added")

    async with table.page.expect_download() as saving:
        await table.click("Save as CSV")
    saved = (await (await saving.value).path()).read_text()
    assert [row["label"] for row in csv.DictReader(io.StringIO(saved))] == ["active_session"]
    async with table.page.expect_download() as saving:
        await table.click("Save as JSON Lines")
    lines = (await (await saving.value).path()).read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["active_session"]
    assert chat.failures == table.failures == []


async def test_the_live_traces_of_one_conversation_leave_out_those_of_others(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address_for("gwen"))
    await say_all(chat, HEADACHE)
    here = re.search(r"/chat/(conv_[^/?]+)", chat.page.url)
    assert here is not None
    table = await Chat.open(profile, f"{server.url}/traces?conversation={here[1]}&action=updated")
    await table.until_text(".live", "Live")
    await table.until_text("main", "No trace fits these filters")

    await chat.say("8")
    await chat.until_answered(2)
    rows = table.page.locator(".trace-rows [role=row]")
    await expect(rows).to_have_count(4)  # the four blocks
    await start_over(chat)
    await say_all(chat, HEADACHE, "8")
    await expect(rows).to_have_count(4)
    await table.page.get_by_role("button", name="One conversation").click()
    await expect(rows).to_have_count(8)
    assert chat.failures == table.failures == []


async def test_the_overview_links_its_charts_to_the_rows_behind_them(server: RealServer, chat: Chat) -> None:
    await chat.page.get_by_role("link", name="Overview").click()
    routing = chat.page.get_by_role("region", name="Who answered")
    await expect(routing.locator("svg").first).to_be_visible()
    assert await chat.texts("[aria-label='Turns per day'] .small >> nth=0") == ["5 turns, 0 failed"]

    await routing.get_by_role("link", name=re.compile("General health")).click()
    await expect(chat.page.locator("tbody tr")).to_have_count(5)
    await chat.page.get_by_role("link", name="why").last.click()
    await chat.until_text(".story", HEADACHE)


async def test_a_deep_link_opens_cold_and_shows_nothing_before_the_person_is_known(
    server: RealServer, chat: Chat, profile: BrowserContext
) -> None:
    await chat.page.locator(".why").click()
    await chat.until_text(".story", MEMORY_QUESTION)
    address = chat.page.url
    cold = await Chat.open(chat.page.context, address)
    await cold.until_text(".story", MEMORY_QUESTION)
    assert await cold.texts(".connection") == ["Signed in"]

    stranger = await Chat.open(profile, address)
    await stranger.until_text(".notice", "You are not signed in")
    assert await stranger.texts(".story") == []
    await stranger.page.goto(server.address_for("boris"))
    await stranger.until_connected()
    await stranger.page.goto(address)
    await stranger.until_text(".failed", "could not be shown")

    assert "penicillin" not in await stranger.page.content()
    assert cold.failures == stranger.failures == []
    await cold.page.close()


async def test_an_address_that_is_no_view_says_so(server: RealServer, chat: Chat) -> None:
    await chat.page.goto(f"{server.url}/chat/a/b/c")

    await chat.until_text("main", "There is no such page")


async def test_a_message_is_edited_answered_again_and_noted(
    server: RealServer, profile: BrowserContext
) -> None:
    chat = await Chat.open(profile, server.address_for("cleo"))
    await chat.until_connected()
    await chat.say("I have had a hedache")
    await chat.until_answered(1)

    await chat.click("Edit")
    await chat.page.get_by_role("textbox", name="Your message, corrected").fill(HEADACHE)
    await chat.click("Send again")
    await chat.until_text(".exchange:last-child .question > p", HEADACHE)
    await chat.until_connected()
    await chat.page.locator(".exchange:last-child .answer[aria-busy=false]").wait_for()
    await chat.click("Answer again")
    await chat.until_text(".before summary", "The answer before")
    await chat.until_connected()
    await chat.click("Note")
    await chat.page.get_by_role("textbox", name="Your note about this answer").fill("it was the left side")
    await chat.page.keyboard.press("Enter")
    await chat.until_text(".note", "Your note: it was the left side")
    await chat.until_gone(".note small")
    after = await chat.exchanges()

    await chat.reload()
    await chat.until_connected()
    assert await chat.exchanges() == after
    assert await chat.texts(".note") == ["Your note: it was the left side"]
    assert chat.failures == []


async def test_a_note_is_shown_in_another_browser(
    server: RealServer, profile: BrowserContext, chromium: Browser
) -> None:
    chat = await Chat.open(profile, server.address_for("nina"))
    await say_all(chat, HEADACHE)
    await chat.click("Note")
    await chat.page.get_by_role("textbox", name="Your note about this answer").fill("on the left side")
    await chat.page.keyboard.press("Enter")
    await chat.until_text(".note", "Your note: on the left side")
    await chat.until_gone(".note small")

    elsewhere = await chromium.new_context()
    other = await Chat.open(elsewhere, server.address_for("nina"))
    await other.until_connected()
    await other.page.goto(chat.page.url)
    await other.until_text(".note", "Your note: on the left side")

    assert await other.texts(".note") == ["Your note: on the left side"]
    assert chat.failures == other.failures == []
    await elsewhere.close()


async def test_staff_reads_the_chat_of_somebody_else_with_a_reason_and_cannot_write(
    server: RealServer, profile: BrowserContext, chat: Chat
) -> None:
    await open_first_conversation(chat)
    staff = await Chat.open(profile, server.address)
    await staff.until_connected()
    await staff.page.goto(chat.page.url)
    await staff.page.get_by_role("textbox", name=re.compile("Why do you need")).fill("ticket 7")
    await staff.click("Show")

    await staff.until_text(".others .question", ALLERGY)
    await expect(staff.page.get_by_role("textbox", name="Your message")).to_have_count(0)
    assert await staff.texts(".others .question p") == [HEADACHE, "8", "since Tuesday", ALLERGY]
    await staff.page.get_by_role("link", name="Blocks").click()
    await expect(staff.page.get_by_role("region", name="Active session")).to_contain_text("penicillin")
    memory = (await _facts_of(chat))[0]
    await staff.page.goto(f"{server.url}/memory?id={memory}")
    await staff.page.get_by_role("textbox", name=re.compile("Why do you need")).first.fill("ticket 7")
    await staff.page.get_by_role("button", name="Show").first.click()
    await staff.until_text("h2", "A memory of ann")
    await expect(staff.page.get_by_role("button", name="Correct")).to_have_count(0)
    assert staff.failures == []


async def _facts_of(chat: Chat) -> list[str]:
    found = await chat.page.evaluate("fetch('/v1/memories?kind=fact').then((answer) => answer.json())")
    return [each["id"] for each in found["items"]]


async def test_summaries_have_a_tab_of_their_own(server: RealServer, profile: BrowserContext) -> None:
    chat = await Chat.open(profile, server.address_for("sara"))
    await chat.until_connected()
    await chat.page.goto(f"{server.url}/memory?kind=summary")
    await chat.until_text(".empty", "Nothing was summed up yet")

    async def one_summary(route: Route) -> None:
        page = await (await route.fetch()).json()
        page["items"] = [{**SUMMARY, "content": "They talked about a headache."}]
        await route.fulfill(json=page)

    await chat.page.route(re.compile(r"/v1/memories\?.*kind=summary"), one_summary)
    await chat.page.reload()

    await chat.until_text(".memory", "They talked about a headache.")
    await expect(chat.page.get_by_role("tab", name="Summaries")).to_have_attribute("aria-selected", "true")
    await chat.page.goto(f"{server.url}/traces")
    types = chat.page.locator("label:has(span:text-is('Type')) option")
    for kind in ("summary", "user"):
        await expect(types.filter(has_text=re.compile(f"^{kind}$"))).to_have_count(1)
    assert chat.failures == []


async def test_rotations_are_marked_on_the_slider(server: RealServer, profile: BrowserContext) -> None:
    chat = await Chat.open(profile, server.address_for("rosa"))
    await say_all(chat, *[f"I have had a headache for {number} days" for number in range(1, 24)])
    await chat.page.get_by_role("link", name="Blocks").click()

    await chat.until_present(".slider-mark")
    await chat.page.locator(".rotations button").first.click()
    turn = re.search(r"turn=(\d+)", chat.page.url)
    assert turn is not None
    await chat.page.goto(f"{server.url}/overview")
    links = chat.page.get_by_role("region", name="Rotations").get_by_role("link")
    await links.first.click()
    await expect(chat.page.locator("tbody tr").first).to_contain_text(turn[1])
    assert "/rotations" in chat.page.url
    assert chat.failures == []


async def test_on_a_phone_every_view_fits_and_the_list_covers_the_chat(chat: Chat) -> None:
    await chat.page.set_viewport_size({"width": 360, "height": 740})
    assert await chat.run(WIDER_THAN_THE_WINDOW) is False
    await chat.click("Conversations")
    await open_first_conversation(chat)
    await expect(chat.page.locator(".conversations")).to_be_hidden()

    for name in ("Blocks", "headache"):  # the conversation is named after what it is about
        await chat.page.get_by_role("link", name=re.compile(name, re.IGNORECASE)).first.click()
        await chat.page.locator(".blocks .diff, .exchange").first.wait_for()
        assert await chat.run(WIDER_THAN_THE_WINDOW) is False


async def test_the_chat_starts_with_less_javascript_than_the_limit(console: Path) -> None:
    page = (console / "index.html").read_text()
    needed = re.findall(r'(?:src|href)="/(assets/[^"]+\.js)"', page)
    imported = [name for name in needed for name in _imports(console, name)]

    sizes = {name: len(gzip.compress((console / name).read_bytes())) for name in {*needed, *imported}}
    assert sum(sizes.values()) < LARGEST_START, json.dumps(sizes)
    assert len(list((console / "assets").glob("*.js"))) > len(sizes)  # the views are files of their own


def _imports(console: Path, name: str) -> set[str]:
    """The files that a file imports when it starts, and those that these import."""
    code = (console / name).read_text()
    direct = {f"assets/{each}" for each in re.findall(r'from"\./([^"]+\.js)"', code)}
    return direct.union(*(_imports(console, each) for each in direct))

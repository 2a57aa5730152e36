"""One browser tab with the page: what a person does in it, and what can be read there."""

import re
from dataclasses import dataclass
from typing import Any, Self

from playwright.async_api import BrowserContext, ConsoleMessage, Page

from tools.setup.browser import ANSWERED, CONNECTED

SECONDS = 30


@dataclass(frozen=True, slots=True)
class Chat:
    """A tab. `failures` collects uncaught exceptions and violations of the Content-Security-Policy.

    It waits for elements. Playwright's `wait_for_function` needs eval, which that policy forbids.
    """

    page: Page
    failures: list[str]

    @classmethod
    async def open(cls, profile: BrowserContext, address: str) -> Self:
        """Open an address in a new tab."""
        chat = await cls.new_tab(profile)
        await chat.page.goto(address)
        return chat

    @classmethod
    async def new_tab(cls, profile: BrowserContext) -> Self:
        """Open an empty tab."""
        page, failures = await profile.new_page(), list[str]()

        def note_violation(message: ConsoleMessage) -> None:
            if "Content Security Policy" in message.text:
                failures.append(message.text)

        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("console", note_violation)
        return cls(page, failures)

    async def type(self, text: str) -> None:
        """Type into the element that has the focus."""
        await self.page.keyboard.insert_text(text)

    async def say(self, text: str) -> None:
        """Type a message and press Enter. The page must have put the focus into its text field."""
        await self.type(text)
        await self.page.keyboard.press("Enter")

    async def click(self, name: str) -> None:
        """Click the button with that name."""
        await self.page.get_by_role("button", name=name, exact=True).click()

    async def reload(self) -> None:
        """Load the page again."""
        await self.page.reload()

    async def run(self, javascript: str) -> Any:
        """Evaluate an expression in the page."""
        return await self.page.evaluate(javascript)

    async def texts(self, selector: str) -> list[str]:
        """The visible text of each element that matches, without waiting for any."""
        return await self.page.locator(selector).all_inner_texts()

    async def exchanges(self) -> list[str]:
        """Each message with its answer, memory line and traces, as visible text, without the buttons."""
        found = await self.page.locator(".exchange").all()
        parts = ".question > p, .question > small, .answer, .why, .failure, .trace"
        return ["\n".join(await one.locator(parts).all_inner_texts()) for one in found]

    async def open_menu(self, button: str, item: str) -> None:
        """Choose an item of the menu that a button opens."""
        await self.click(button)
        await self.page.locator(".menu-item").filter(has_text=item).click()

    async def until_present(self, selector: str, seconds: float = SECONDS) -> None:
        """Wait until an element matches."""
        await self.page.locator(selector).first.wait_for(state="attached", timeout=seconds * 1000)

    async def until_gone(self, selector: str) -> None:
        """Wait until no element matches."""
        await self.page.locator(selector).first.wait_for(state="detached", timeout=SECONDS * 1000)

    async def until_text(self, selector: str, part: str) -> None:
        """Wait until an element that matches shows `part`."""
        matches = self.page.locator(selector).filter(has_text=re.compile(re.escape(part)))
        await matches.first.wait_for(timeout=SECONDS * 1000)

    async def until_connected(self, seconds: float = SECONDS) -> None:
        """Wait until the page is connected and no answer is under way."""
        await self.until_present(CONNECTED, seconds)

    async def until_answered(self, messages: int, seconds: float = SECONDS) -> None:
        """Wait until that many messages have a complete answer and no answer is under way."""
        answered = self.page.locator(ANSWERED)
        await answered.nth(messages - 1).wait_for(timeout=seconds * 1000)
        await self.until_gone(".thinking")
        assert await answered.count() == messages

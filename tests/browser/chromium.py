"""Drives a real Chromium over its DevTools protocol: open pages, type, click, look."""

import base64
import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from websockets.sync.client import ClientConnection, connect

from tools.chromium import library_path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "--window-size=1200,850",
)
SECONDS = 30
BETWEEN_LOOKS = 0.02
ENTER = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
SHIFT = 8


class Browser:
    """One Chromium. Each `profile()` has its own cookies and storage, as another person's browser would."""

    def __init__(self, devtools: ClientConnection) -> None:
        self._devtools = devtools
        self._numbers = itertools.count(1)
        self.failures: dict[str, list[str]] = {}

    @contextmanager
    def profile(self) -> Iterator["Profile"]:
        """An empty profile, gone with its pages after the body."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        try:
            yield Profile(self, context)
        finally:
            self.ask("Target.disposeBrowserContext", browserContextId=context)

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call one method of the protocol; what went wrong inside a page meanwhile is noted in `failures`."""
        number = next(self._numbers)
        about = {} if session is None else {"sessionId": session}
        self._devtools.send(json.dumps({"id": number, "method": method, "params": parameters, **about}))
        while True:
            heard = json.loads(self._devtools.recv(timeout=SECONDS))
            if heard.get("id") == number:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']['message']}")
                result: dict[str, Any] = heard["result"]
                return result
            self._note(heard)

    def _note(self, event: dict[str, Any]) -> None:
        noted = self.failures.setdefault(event.get("sessionId", ""), [])
        match event:
            case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                noted.append(json.dumps(details))
            case {"method": "Log.entryAdded", "params": {"entry": {"source": "security", "text": text}}}:
                noted.append(text)


class Profile:
    """The tabs of one person."""

    def __init__(self, browser: Browser, context: str) -> None:
        self._browser, self._context = browser, context

    def open(self, address: str) -> "Page":
        """A new tab at an address."""
        about: dict[str, Any] = {"browserContextId": self._context, "width": 1200, "height": 850}
        target = self._browser.ask("Target.createTarget", url="about:blank", **about)["targetId"]
        session = self._browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._browser.ask(f"{domain}.enable", session)
        return Page(self._browser, session).go(address)


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    @property
    def failures(self) -> list[str]:
        """Exceptions in the page, and what its Content-Security-Policy forbade."""
        self.run("0")
        return self._browser.failures.get(self._session, [])

    def go(self, address: str) -> Self:
        """Open an address in this tab."""
        self._ask("Page.navigate", url=address)
        return self

    def reload(self) -> Self:
        """As the button does. What was true before is not mistaken for what is true after."""
        self.run("window.beforeReload = true")
        self._ask("Page.reload")
        return self.until("window.beforeReload === undefined")

    def run(self, javascript: str) -> Any:
        """The value of an expression in the page."""
        asked = {"expression": javascript, "returnByValue": True, "awaitPromise": True}
        outcome = self._ask("Runtime.evaluate", **asked)
        if "exceptionDetails" in outcome:
            raise RuntimeError(outcome["exceptionDetails"]["exception"].get("description", "an exception"))
        return outcome["result"].get("value")

    def until(self, javascript: str, seconds: float = SECONDS) -> Self:
        """Wait until an expression is true."""
        give_up = time.monotonic() + seconds
        while not self._holds(javascript):
            if time.monotonic() > give_up:
                raise TimeoutError(f"`{javascript}` did not become true; the page says:\n{self.text('body')}")
            time.sleep(BETWEEN_LOOKS)
        return self

    def _holds(self, javascript: str) -> bool:
        try:
            return bool(self.run(f"!!({javascript})"))
        except RuntimeError:  # the page is just being replaced by another, or has no such element yet
            return False

    def text(self, selector: str) -> str:
        """What can be read in the first element that fits."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def texts(self, selector: str) -> list[str]:
        """What can be read in each element that fits."""
        return list(self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)"))

    def until_text(self, selector: str, part: str) -> Self:
        """Wait until some element that fits can be read to contain `part`."""
        every = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return self.until(f"{every}.some(e => e.innerText.includes({json.dumps(part)}))")

    def click(self, name: str) -> Self:
        """Click the button of that name, with the mouse."""
        named = f"b => b.innerText === {json.dumps(name)} && b.checkVisibility() && !b.disabled"
        button = f"[...document.querySelectorAll('button')].find({named})"
        self.until(button)
        middle = "r => ({x: r.x + r.width / 2, y: r.y + r.height / 2})"
        place = self.run(f"({middle})({button}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)
        return self

    def type(self, text: str) -> Self:
        """Type into what has the focus."""
        self._ask("Input.insertText", text=text)
        return self

    def press_enter(self, *, shift: bool = False) -> Self:
        """Press Enter, perhaps with Shift."""
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, modifiers=SHIFT if shift else 0, **ENTER)
        return self

    def look(self, file: Path) -> bytes:
        """Take a picture of what is seen."""
        picture = base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"])
        file.write_bytes(picture)
        return picture

    def until_answered(self, messages: int, seconds: float = SECONDS) -> Self:
        """Wait until that many messages have a whole answer, and none is under way."""
        answered = "document.querySelectorAll('.exchange:has(.answer[aria-busy=false] .sentence)').length"
        calm = "!document.querySelector('.thinking')"
        return self.until(f"{answered} === {messages} && {calm}", seconds)

    def seen(self) -> list[str]:
        """Each message with all that came of it, as it can be read."""
        return self.texts(".exchange")

    def accessible_names(self) -> set[tuple[str, str]]:
        """The role and name of everything that somebody who cannot see the page is told of."""
        nodes = self._ask("Accessibility.getFullAXTree")["nodes"]
        told = [node for node in nodes if not node["ignored"] and "name" in node]
        return {(node["role"]["value"], node["name"]["value"]) for node in told}

    def close(self) -> None:
        """Close the tab."""
        self._ask("Page.close")

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.ask(method, self._session, **parameters)


@contextmanager
def running_chromium(executable: Path) -> Iterator[Browser]:
    """A Chromium that is up during the body, with all it wrote gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="anamnesis-chromium-", ignore_cleanup_errors=True) as home:
        env = {**os.environ, "HOME": home, **library_path(executable)}
        said = Path(home) / "said"
        with said.open("w") as stderr:
            process = subprocess.Popen(
                [executable, *FLAGS, f"--user-data-dir={home}/profile"], env=env, stdout=stderr, stderr=stderr
            )
        try:
            address = _devtools_of(process, said, Path(home))
            # No pings: they would draw from the one `random` that Hypothesis watches, from another thread.
            with connect(address, max_size=None, ping_interval=None) as devtools:
                yield Browser(devtools)
        finally:
            process.terminate()
            process.wait()


def _devtools_of(process: subprocess.Popen[bytes], said: Path, home: Path) -> str:
    """The address it writes into its profile once it is ready."""
    ready, give_up = home / "profile" / "DevToolsActivePort", time.monotonic() + SECONDS
    while not ready.exists() or len(lines := ready.read_text().splitlines()) < 2:
        if process.poll() is not None or time.monotonic() > give_up:
            raise RuntimeError(f"Chromium did not start:\n{said.read_text()}")
        time.sleep(BETWEEN_LOOKS)
    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"

"""One headless Chromium for all pages of a session of tests: what a page shows while it is used."""

import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

_TIMEOUT_S = 120

#: Before anything of the page: what would be in the console as an error.
_LISTENER = Path(__file__).with_name("listener.js").read_text(encoding="utf-8")

#: Once the page is loaded; an exercise notes in ``seen`` what it saw.
_EXERCISE = Path(__file__).with_name("exercise.js").read_text(encoding="utf-8")


def executable() -> str | None:
    """The path of a browser; None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Browser:
    """A browser that is driven by the DevTools protocol, through pipes.

    Args:
        folder: of pages, and of the browser's own files.
    """

    def __init__(self, chromium: str, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._unread = b""
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._process = subprocess.Popen(
            [
                # It reads commands from its descriptor 3, and writes answers to 4.
                *("bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", chromium),
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
                *("--disable-background-networking", "--no-first-run", "--window-size=1200,900"),
                *(f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(commands, answers),
        )
        os.close(commands)
        os.close(answers)

    def close(self) -> None:
        """End it, with all of its processes."""
        self._call("Browser.close")
        self._process.wait(_TIMEOUT_S)
        os.close(self._commands)
        os.close(self._answers)

    def use(
        self,
        page: str,
        exercise: str,
        *,
        library: str = "",
        fragment: str = "",
        scheme: str = "light",
    ) -> dict[str, Any]:
        """The states of a page while it was used.

        Args:
            exercise: JavaScript, which may ``await``; it notes in ``seen`` what it saw.
            library: a script that the exercise needs.
            scheme: of colours: ``light`` or ``dark``.
        """
        file = self._folder / "report.html"
        file.write_text(page, encoding="utf-8")
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", session, features=media)
        self._call("Page.enable", session)
        self._call("Page.addScriptToEvaluateOnNewDocument", session, source=_LISTENER)
        self._call("Page.navigate", session, url=f"{file.as_uri()}{fragment}")
        if library:
            self._call("Runtime.evaluate", session, expression=library)
        answer = self._call(
            "Runtime.evaluate",
            session,
            expression=_EXERCISE.replace("EXERCISE", exercise),
            awaitPromise=True,
            returnByValue=True,
        )
        self._call("Target.closeTarget", targetId=target)
        assert "exceptionDetails" not in answer, answer
        seen: dict[str, Any] = answer["result"]["value"]
        return seen

    def _call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": params}
        text = json.dumps({**command, "sessionId": session} if session else command)
        os.write(self._commands, text.encode() + b"\0")
        answer = self._wait(lambda message: message.get("id") == number)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _wait(self, is_awaited: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message of a kind; others are left out."""
        end_s = time.monotonic() + _TIMEOUT_S
        while True:
            text, ended, rest = self._unread.partition(b"\0")
            if ended:
                self._unread = rest
                message: dict[str, Any] = json.loads(text)
                if is_awaited(message):
                    return message
                continue
            ready, _, _ = select.select([self._answers], [], [], end_s - time.monotonic())
            received = os.read(self._answers, 2**20) if ready else b""
            assert received, "the browser has ended, or does not answer"
            self._unread += received

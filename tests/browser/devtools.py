# SPDX-License-Identifier: Apache-2.0
"""How does a test drive a browser? Chromium without a window, by its DevTools protocol over a plain
WebSocket."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(
            prefix="kiln-browser-", ignore_cleanup_errors=True
        )
        self.process = subprocess.Popen(
            [
                program, "--headless=new", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--remote-debugging-port=0", "--no-first-run",
                "--window-size=1500,1000", f"--user-data-dir={self.profile.name}", "about:blank",
            ],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        self.messages: list[dict] = []
        self.number = 0
        address = ""
        for line in self.process.stderr:
            if match := re.search(r"DevTools listening on ws://([^/]+)(/\S+)", line):
                address, path = match.groups()
                break
        if not address:
            raise RuntimeError("the browser did not say where it listens")
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: "
            f"Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        self.buffer = self.buffer.split(b"\r\n\r\n", 1)[1]
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.socket.close()
        self.profile.cleanup()

    def _take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            more = self.socket.recv(1 << 16)
            if not more:
                raise RuntimeError("the browser has gone")
            self.buffer += more
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    def _receive(self) -> dict:
        text = b""
        while True:
            first, second = self._take(2)
            size = second & 127
            if size == 126:
                size = struct.unpack(">H", self._take(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self._take(8))[0]
            text += self._take(size)
            if first & 0x80:
                return json.loads(text)

    def call(self, method: str, **parameters: object) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        payload = json.dumps(message).encode()
        mask = os.urandom(4)
        size = len(payload)
        head = struct.pack(">BB", 0x81, 0x80 | size) if size < 126 else b""
        head = head or (
            struct.pack(">BBH", 0x81, 0xFE, size)
            if size < 65536
            else struct.pack(">BBQ", 0x81, 0xFF, size)
        )
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload)))
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.messages.append(answer)

    def run(self, script: str) -> object:
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, path: Path, ready: str, limit_s: float = 30) -> None:
        self.call("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + limit_s
        # The page before may still be there, and lack what the expression asks for.
        while not self.run(f"(() => {{ try {{ return {ready}; }} catch {{ return false; }} }})()"):
            if time.monotonic() > end:
                raise RuntimeError(f"not ready after {limit_s} s: {ready}")
            time.sleep(0.05)

    def _place_of(self, selector: str) -> list[float]:
        return self.run(
            f"(() => {{ const n = document.querySelector({json.dumps(selector)});"
            "n.scrollIntoView({block: 'center'}); const r = n.getBoundingClientRect();"
            "return [r.left + Math.min(60, r.width / 2), r.top + r.height / 2]; })()"
        )

    def click(self, selector: str) -> None:
        """With the mouse, where the element is: what covers it would be hit instead."""
        x, y = self._place_of(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """A key, for what has the focus: Enter, Tab, a letter."""
        codes = {"Enter": (13, "\r"), "Tab": (9, ""), " ": (32, " ")}
        code, text = codes.get(key, (ord(key[0]), key))
        facts = {"key": key, "windowsVirtualKeyCode": code, "text": text}
        self.call("Input.dispatchKeyEvent", type="keyDown", **facts)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def hover(self, selector: str) -> None:
        x, y = self._place_of(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def theme(self, name: str) -> None:
        """What the page is told of the user's wish: light, dark or nothing."""
        features = [{"name": "prefers-color-scheme", "value": name}] if name else []
        self.call("Emulation.setEmulatedMedia", features=features)

    def width(self, pixels: int) -> None:
        """Of the window; 0: as it was opened."""
        if pixels:
            size = {"width": pixels, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
            self.call("Emulation.setDeviceMetricsOverride", **size)
        else:
            self.call("Emulation.clearDeviceMetricsOverride")

    def screenshot(self, path: Path) -> None:
        """Of the whole page, also of what the window does not show."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        answer = self.call(
            "Page.captureScreenshot",
            format="png",
            captureBeyondViewport=True,
            clip={**size, "scale": 1},
        )
        path.write_bytes(base64.b64decode(answer["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, requests that are for anything but the
        page itself."""
        self.run("0")
        out = []
        for message in self.messages:
            method, parameters = message.get("method"), message.get("params", {})
            if method == "Runtime.exceptionThrown":
                out.append(json.dumps(parameters["exceptionDetails"])[:300])
            elif method == "Log.entryAdded":
                out.append(json.dumps(parameters["entry"])[:300])
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in (
                "error",
                "warning",
                "assert",
            ):
                out.append(json.dumps(parameters)[:300])
            elif method == "Network.requestWillBeSent" and not parameters["request"][
                "url"
            ].startswith(("file:", "data:", "about:")):
                out.append("a request for " + parameters["request"]["url"])
        return out

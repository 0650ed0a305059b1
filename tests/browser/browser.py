"""A headless Chromium, controlled over a pipe with its DevTools protocol (chromedevtools.github.io/devtools-protocol).

Uses only the standard library: --remote-debugging-pipe reads commands from file descriptor 3 and writes answers to 4.
Each message is JSON text followed by a zero byte.
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

MOUSE = "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"


def find_browser():
    """The program named by MESHARD_BROWSER, otherwise the first Chromium on the path, otherwise None."""
    names = [os.environ.get("MESHARD_BROWSER"), "chromium-headless-shell", "chromium", "google-chrome"]
    return next((path for name in names if name and (path := shutil.which(name))), None)


class Browser:
    """A browser process; a context manager."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="meshard-browser-")
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()

        def descriptors():
            # Moves these first, because either may already be descriptor 3 or 4.
            read, write = os.dup2(to_read, 63), os.dup2(from_write, 64)
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--no-first-run", "--disable-background-networking", MOUSE, f"--user-data-dir={self.profile}",
                   "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=descriptors, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.number, self.events = b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.back], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.back, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("the browser does not answer")
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, limit=20, **parameters):
        """Returns the answer to a command. Events that come before it are stored."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + limit
        while True:
            answer = self.receive(deadline)
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]


class Page:
    """One tab with a window size."""

    def __init__(self, browser, width=1280, height=900, dark=False):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        # Without motion, because a smooth scroll that focus() began moves elements after place() has found them.
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def events(self, *methods):
        return [event["params"] for event in self.browser.events
                if event.get("sessionId") == self.session and event.get("method") in methods]

    def open(self, path):
        """Loads a file, and waits until its script reports that the page is built."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + 20
        while self.run("document.documentElement?.getAttribute('data-ready')") != "true":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} is not ready: {self.complaints()}")
            time.sleep(0.02)

    def run(self, expression, limit=20):
        """The value of a JavaScript expression. Waits for promises, at most `limit` seconds."""
        answer = self.call("Runtime.evaluate", limit=limit, expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def frame(self):
        """Waits until all changes are drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def complaints(self):
        """The exceptions, errors and warnings of the page."""
        texts = [event["exceptionDetails"].get("exception", {}).get("description") or event["exceptionDetails"]["text"]
                 for event in self.events("Runtime.exceptionThrown")]
        texts += [event["entry"]["text"] for event in self.events("Log.entryAdded") if event["entry"]["level"] in ("error", "warning")]
        texts += [str(event["args"]) for event in self.events("Runtime.consoleAPICalled") if event["type"] in ("error", "warning", "assert")]
        return texts

    def requests(self):
        return [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]

    def place(self, selector):
        """The center of an element, after scrolling it into view."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{element}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.frame()  # the browser uses the last frame to find the element under the pointer
        *center, inside = self.run(f"(() => {{ const b = {element}.getBoundingClientRect(), x = b.x + b.width / 2, y = b.y + b.height / 2;"
                                   f" const at = document.elementFromPoint(x, y); return [x, y, at !== null && ({element}.contains(at) || at.contains({element}))]; }})()")
        if not inside:
            raise RuntimeError(f"{selector} is not visible at its center {center}")
        return center

    def point_at(self, selector):
        x, y = self.place(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def save_picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

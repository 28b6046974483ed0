"""A headless Chromium by its debugging pipe: enough to open a page, act on it, look at it.

Not a test; browser_test.py and screenshots use it. find() gives None where there is no browser.
"""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-default-apps", "--disable-dev-shm-usage", "--mute-audio", "--force-color-profile=srgb",
    "--remote-debugging-pipe",
]


def find():
    """The browser's path, or None. Ubuntu's `chromium-browser` only says that one should install a snap."""
    for name in ("chromium", "google-chrome", "google-chrome-stable", "chrome"):
        path = shutil.which(name)
        if path and not os.path.realpath(path).startswith("/snap/"):
            return path
    return None


class Browser:
    """One browser with one page. events holds what it told besides answers: console, exceptions, requests."""

    def __init__(self, path, width=1280, height=900, timeout=120):
        self.timeout = timeout
        self.profile = tempfile.mkdtemp(prefix="godwit-browser-")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def descriptors():  # the browser reads commands from 3 and answers on 4
            commands, answers = os.dup(to_browser), os.dup(from_browser)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self.process = subprocess.Popen(
            [path, *FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self.profile}",
             "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": self.profile},  # it leaves folders there
            preexec_fn=descriptors, close_fds=False, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.events, self._buffer, self._next, self._session = [], b"", 0, None
        os.set_blocking(self._in, False)
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                  flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            try:
                piece = os.read(self._in, 1 << 20)
                if not piece:
                    raise RuntimeError("the browser ended")
                self._buffer += piece
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError("the browser does not answer") from None
                time.sleep(0.005)
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self._next += 1
        message = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data):]
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def value(self, expression):
        """What a JavaScript expression gives; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression):
        deadline = time.monotonic() + self.timeout
        while not self.value(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.02)

    def frames(self, count=3):
        """Until the page has painted so many frames more."""
        self.value("new Promise(done => { let n = %d; const f = () => --n < 0 ? done(true) : "
                   "requestAnimationFrame(f); f(); })" % count)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path, whole=True):
        shot = {}
        if whole:
            box = self.call("Page.getLayoutMetrics")["cssContentSize"]
            shot = {"captureBeyondViewport": True,
                    "clip": {"x": 0, "y": 0, "width": box["width"], "height": box["height"], "scale": 1}}
        data = self.call("Page.captureScreenshot", format="png", **shot)["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))

    def complaints(self):
        """Errors and warnings of the console, exceptions, refused requests."""
        found = []
        for event in self.events:
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str([a.get("value", a.get("description")) for a in params["args"]]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
        return found

    def requests(self):
        """Addresses that the page asked for, without itself and what it carries."""
        return [e["params"]["request"]["url"] for e in self.events
                if e["method"] == "Network.requestWillBeSent"
                and not e["params"]["request"]["url"].startswith(("data:", "blob:", "about:"))]

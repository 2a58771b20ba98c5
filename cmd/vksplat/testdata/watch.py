# Drives the viewer of a training run in headless Chromium. Reads what to do as JSON from standard input, prints what happened as JSON.
import base64
import json
import time

from browser import new_page, run

PATIENCE = 90  # s, for anything

# What a page of another server tries, and, for comparison, the page's own.
SOCKET = "(url) => new Promise((done) => { const w = new WebSocket(url); w.onopen = () => done(true); w.onerror = () => done(false); })"
# How many pixels of a curve are drawn on.
DRAWN = "(id) => { const c = document.getElementById(id); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; }"


class Viewer:
    """A page with a run, and what goes over its WebSocket."""

    def __init__(self, context, url, log):
        self.status, self.sent, self.page = {}, {}, new_page(context, log)
        self.page.on("websocket", self.listen)
        self.page.goto(url)
        self.page.wait_for_selector("body[data-frames]", state="attached", timeout=1000 * PATIENCE)

    def listen(self, socket):
        self.socket = socket.url
        socket.on("framesent", self.take_sent)
        socket.on("framereceived", self.take_received)

    def take_sent(self, payload):
        self.sent = json.loads(payload).get("view") or self.sent

    def take_received(self, payload):
        if isinstance(payload, str):
            self.status = json.loads(payload).get("status") or self.status

    def frames(self):
        return int(self.page.evaluate("document.body.dataset.frames"))

    def until(self, what, reached):
        """Waits until reached() is true."""
        end = time.monotonic() + PATIENCE
        while not reached():
            if time.monotonic() > end:
                raise SystemExit(f"{what}: not within {PATIENCE} s; status {self.status}, page says {self.text('#doing')!r} {self.text('#note')!r}")
            self.page.wait_for_timeout(50)

    def settled(self, act):
        """Acts, waits for the frames that follow, until none comes any more: training is paused. Returns the picture, a PNG file in base64."""
        before = self.frames()
        act()
        self.until("a frame", lambda: self.frames() > before)
        still = 0
        while still < 2:
            count = self.frames()
            self.page.wait_for_timeout(500)
            still = still + 1 if self.frames() == count else 0
        return self.page.evaluate("document.getElementById('picture').toDataURL('image/png')").split(",")[1]

    def text(self, selector):
        return self.page.inner_text(selector)

    def drag(self, x, y):
        box = self.page.locator("#picture").bounding_box()
        at = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(*at)
        self.page.mouse.down()
        self.page.mouse.move(at[0] + x, at[1] + y, steps=5)
        self.page.mouse.up()

    def touch(self, *strokes):
        """Moves fingers: each stroke is a way from a point to another, in px."""
        client = self.page.context.new_cdp_session(self.page)
        steps = 6
        for i in range(steps + 1):
            points = [{"x": a + (c - a) * i / steps, "y": b + (d - b) * i / steps, "id": n} for n, (a, b, c, d) in enumerate(strokes)]
            client.send("Input.dispatchTouchEvent", {"type": "touchMove" if i else "touchStart", "touchPoints": points})
            self.page.wait_for_timeout(30)
        client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def pictures(viewer, shot, log):
    """What a paused run shows: a photo's camera, the slider, a free camera."""
    page, out = viewer.page, log["pictures"]
    page.keyboard.press("]")
    out["photo camera"] = viewer.settled(lambda: page.keyboard.press("["))
    page.wait_for_function("document.getElementById('photo').complete")
    shot(page, "picture")
    for share, key in ((0, "Home"), (100, "End"), (50, None)):
        if key:
            page.focus("#share")
            page.keyboard.press(key)
        else:
            box = page.locator("#share").bounding_box()
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        box = page.locator("#picture").bounding_box()
        clip = {"x": box["x"], "y": box["y"] + box["height"] / 8, "width": box["width"], "height": box["height"] / 2}
        out[f"slider {share}"] = base64.b64encode(page.screenshot(clip=clip)).decode()
        log["shares"].append(page.input_value("#share"))
    shot(page, "slider")
    page.focus("#share")
    page.keyboard.press("Home")
    page.focus("#stage")
    for key, name in (("5", "error"), ("2", "depth"), ("3", "centres"), ("4", "ellipsoids"), ("1", "again")):
        out[name] = viewer.settled(lambda: page.keyboard.press(key))
        shot(page, name)
    out["free"] = viewer.settled(lambda: page.keyboard.press("f"))
    out["turned"] = viewer.settled(lambda: viewer.drag(90, 25))
    log["view"] = viewer.sent
    shot(page, "turned")


def phone(browser, task, shot, log):
    """A phone held upright, while the run is paused."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, device_scale_factor=2, is_mobile=True, has_touch=True, color_scheme="light")
    viewer = Viewer(context, task["url"], log)
    page = viewer.page
    viewer.until("paused", lambda: viewer.text("#doing") == "paused")
    log["phone"] = out = {"open": page.is_visible("#panel"), "wide": page.evaluate("document.documentElement.scrollWidth")}
    page.tap("#toggle")
    out["curves"] = [page.evaluate(DRAWN, id) for id in ("losses", "psnrs", "splats")]  # at once
    viewer.settled(lambda: None if viewer.page.wait_for_timeout(300) else page.tap("#free"))
    shot(page, "phone")
    out["views"] = [viewer.sent]
    box = page.locator("#picture").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    viewer.settled(lambda: viewer.touch((x, y, x + 60, y + 20)))
    out["views"].append(viewer.sent)
    viewer.settled(lambda: viewer.touch((x - 20, y, x - 80, y), (x + 20, y, x + 80, y)))
    out["views"].append(viewer.sent)
    shot(page, "phone_turned")
    return viewer


def refusals(browser, context, viewer, task, log):
    own = viewer.page.url.split("?")[0]
    for name, url in task["visits"].items():
        stranger = browser.new_context() if name.startswith("stranger") else context
        log["statuses"][name] = stranger.new_page().goto(url.replace("PAGE/", own)).status
    evil = context.new_page()
    evil.goto(task["elsewhere"])
    log["sockets"] = {"own": viewer.page.evaluate(SOCKET, viewer.socket), "foreign": evil.evaluate(SOCKET, viewer.socket)}
    log["path"] = viewer.page.evaluate("fetch('photo?camera=..%2f..%2f..%2fetc%2fpasswd').then((r) => r.status)")
    log["leaves"] = viewer.page.evaluate("fetch('https://192.0.2.1/').then(() => true, () => false)")


def watch(browser, task, log):
    log.update(pictures={}, shares=[], statuses={})

    def shot(page, name):
        if task["shots"]:
            page.screenshot(path=f"{task['shots']}/{name}.png")

    context = browser.new_context(viewport={"width": 1100, "height": 640}, color_scheme="dark")
    viewer = Viewer(context, task["url"], log)
    page = viewer.page
    page.on("dialog", lambda d: d.accept())
    viewer.until("first steps", lambda: viewer.status["step"] >= task["steps"] and viewer.frames() > 2)
    log["training"] = {"doing": viewer.text("#doing"), "frames": viewer.frames()}
    shot(page, "training")
    page.click("#pause")
    viewer.until("pause", lambda: viewer.status["doing"] == "paused" == viewer.text("#doing"))
    log["paused"] = [viewer.status["step"]]
    pictures(viewer, shot, log)
    page.click("#save")
    viewer.until("save", lambda: "is saved" in viewer.text("#saved") or "Not saved" in viewer.text("#saved"))
    log["saved"] = viewer.text("#saved")
    mobile = phone(browser, task, shot, log)
    refusals(browser, context, viewer, task, log)
    log["violations"] = page.evaluate("violations") + mobile.page.evaluate("violations")
    log["paused"].append(viewer.status["step"])
    page.click("#pause")
    viewer.until("going on", lambda: viewer.status["step"] > log["paused"][1])
    page.click("#stop")
    for v in (viewer, mobile):
        v.until("the end", lambda: v.page.is_visible("#end"))
    page.wait_for_timeout(2500)  # no word of a lost connection follows
    log["end"] = [[v.text("#doing"), v.text("#end"), v.page.is_visible("#note"), v.page.is_enabled("#save")] for v in (viewer, mobile)]
    shot(page, "end")
    shot(mobile.page, "phone_end")


run(watch)

# Edits a model in headless Chromium, with a mouse and on a phone. Reads what to do as JSON from standard input, prints what happened as JSON.
import time

from browser import new_page, run
from playwright.sync_api import Error

PATIENCE = 90  # s
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 1, "has_touch": True, "is_mobile": True}

# The middle of a handle of the box: where its colour fills a square. It is [x, y] in CSS px of the page, or null.
HANDLE = """() => {
    const c = document.getElementById('overlay'), at = c.getBoundingClientRect(), w = c.width, d = c.getContext('2d').getImageData(0, 0, w, c.height).data;
    const is = (x, y) => d[4 * (y * w + x)] === 255 && d[4 * (y * w + x) + 1] === 210 && d[4 * (y * w + x) + 2] === 74 && d[4 * (y * w + x) + 3] === 255;
    for (let y = 10; y < c.height - 10; y++) {
        for (let x = 10; x < w - 10; x++) {
            if (is(x - 6, y) && is(x + 6, y) && is(x, y - 6) && is(x - 4, y - 5) && is(x + 4, y - 5) && is(x - 4, y + 5) && is(x + 4, y + 5)) {
                return [at.left + x * at.width / w, at.top + y * at.height / c.height];
            }
        }
    }
    return null;
}"""
DRAWN = "() => { const c = document.getElementById('overlay'); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v).length; }"


class Page:
    def __init__(self, context, task, log):
        self.page, self.shots = new_page(context, log), task["shots"]
        self.page.goto(task["url"])
        self.until("a picture", lambda: int(self.page.evaluate("document.body.dataset.frames || '0'")) > 0)

    def until(self, what, reached):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if reached():
                    return
            except Error:  # the page is just going from the address with the token to the one without
                pass
            if time.monotonic() > end:
                raise SystemExit(f"{what}: not within {PATIENCE} s; the page says {self.page.inner_text('#left')!r} {self.page.inner_text('#note')!r}")
            self.page.wait_for_timeout(50)

    def splats(self):
        return int(self.page.text_content("#left").split()[0].replace(",", ""))

    def changed(self, do):
        """Does something and waits until the number of splats is another, which it returns, and a picture has come."""
        before, frames = self.splats(), int(self.page.evaluate("document.body.dataset.frames"))
        do()
        self.until("a change", lambda: self.splats() != before)
        self.until("its picture", lambda: int(self.page.evaluate("document.body.dataset.frames")) > frames)
        return self.splats()

    def shoot(self, name):
        if self.shots:
            self.page.wait_for_timeout(1000)
            self.page.screenshot(path=f"{self.shots}/edit_{name}.png")

    def middle(self):
        box = self.page.locator("#picture").bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def desk(browser, task, log):
    """With a mouse and keys."""
    p = Page(browser.new_context(viewport={"width": 1000, "height": 700}), task, log)
    page, counts = p.page, log["counts"]
    counts["whole"] = p.splats()
    page.keyboard.press("b")
    log["boxed"] = [page.is_visible("#boxed"), page.evaluate(DRAWN)]
    for _ in range(3):  # from farther away, where the whole box is seen
        page.mouse.move(*p.middle())
        page.mouse.wheel(0, 300)
    p.until("a handle", lambda: page.evaluate(HANDLE))
    numbers = lambda: page.evaluate("[...document.querySelectorAll('#faces input')].map((i) => i.value)")
    log["faces"] = [numbers()]
    x, y = page.evaluate(HANDLE)
    cx, cy = p.middle()
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + (cx - x) / 3, y + (cy - y) / 3, steps=4)
    p.shoot("box")
    page.mouse.up()
    log["faces"].append(numbers())
    counts["inside"] = p.changed(lambda: page.click("#inside"))
    counts["undone"] = p.changed(lambda: page.keyboard.press("Control+z"))
    counts["redone"] = p.changed(lambda: page.keyboard.press("Control+Shift+Z"))
    page.keyboard.press("d")
    size = page.input_value("#radius")
    page.keyboard.press("]")
    log["sizes"] = [float(size), float(page.input_value("#radius"))]
    page.mouse.move(cx - 60, cy)
    page.mouse.down()
    page.mouse.move(cx + 60, cy + 20, steps=6)
    p.shoot("brush")
    counts["brushed"] = p.changed(page.mouse.up)
    p.shoot("brushed")
    page.select_option("#up", "+y")
    before = page.evaluate("document.body.dataset.edits")
    page.click("#upright")
    p.until("up", lambda: page.evaluate("document.body.dataset.edits") != before)
    page.fill("#name", "from the page")
    page.select_option("#format", "spz")
    page.click("#export")
    p.until("the export", lambda: page.inner_text("#exported").startswith("Written"))
    log["written"] = page.inner_text("#exported")
    with page.expect_download() as got:
        page.click("#download a")
    log["download"] = got.value.suggested_filename
    page.click("#export")
    p.until("a refusal", lambda: page.is_visible("#note"))
    log["refused"] = page.inner_text("#note")
    p.shoot("exported")
    log["violations"] += page.evaluate("violations")


def fingers(page, *strokes):
    """Moves fingers: each stroke is a way from a point to another, in px."""
    client, steps = page.context.new_cdp_session(page), 6
    for i in range(steps + 1):
        points = [{"x": a + (c - a) * i / steps, "y": b + (d - b) * i / steps, "id": n} for n, (a, b, c, d) in enumerate(strokes)]
        client.send("Input.dispatchTouchEvent", {"type": "touchMove" if i else "touchStart", "touchPoints": points})
        page.wait_for_timeout(30)
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def phone(browser, task, log):
    p = Page(browser.new_context(**PHONE), task, log)
    page, counts = p.page, log["counts"]
    log["wide"] = page.evaluate("document.documentElement.scrollWidth")
    tools = page.locator("#tools button")
    log["tools"] = [tools.nth(i).bounding_box() for i in range(tools.count())]
    counts["phone reset"] = p.changed(lambda: page.evaluate("document.getElementById('reset').click()"))
    page.tap("[data-tool=brush]")
    x, y = p.middle()
    counts["phone brushed"] = p.changed(lambda: fingers(page, (x - 120, y, x + 120, y + 40)))
    p.shoot("phone")
    log["overlay"] = page.is_visible("#overlay")
    fingers(page, (x - 20, y, x - 60, y), (x + 20, y, x + 60, y))  # come nearer, and remove nothing
    page.tap("[data-tool=box]")
    log["phoneBox"] = [page.is_visible("#inside"), page.evaluate("document.documentElement.scrollWidth")]
    p.shoot("phone_box")
    counts["phone two fingers"] = p.splats()
    counts["phone undone"] = p.changed(lambda: page.tap("#undo"))
    log["violations"] += page.evaluate("violations")


def main(browser, task, log):
    log["violations"], log["counts"] = [], {}
    desk(browser, task, log)
    phone(browser, task, log)


run(main)

# Looks in headless Chromium at a model that vksplat view draws. Reads what to do as JSON from standard input, prints what happened as JSON.
import json
import time

from browser import new_page, run
from playwright.sync_api import Error

PATIENCE = 90  # s, for a picture


def main(browser, task, log):
    context = browser.new_context(viewport={"width": 900, "height": 600})
    page = new_page(context, log)
    log["views"], frames = [], 0
    page.on("websocket", lambda s: s.on("framesent", lambda text: log["views"].extend(v for v in [json.loads(text).get("view")] if v)))
    page.goto(task["url"])

    def drawn():
        """The number of pictures so far."""
        try:
            return int(page.evaluate("document.body.dataset.frames || '0'"))
        except Error:  # the page is just going from the address with the token to the one without
            return 0

    def pictures():
        """Waits for another picture."""
        nonlocal frames
        end = time.monotonic() + PATIENCE
        while drawn() <= frames:
            if time.monotonic() > end:
                raise SystemExit(f"no picture within {PATIENCE} s; the page says {page.inner_text('#doing')!r} {page.inner_text('#note')!r}")
            page.wait_for_timeout(50)
        page.wait_for_timeout(600)
        frames = int(page.evaluate("document.body.dataset.frames"))
        if task["shots"]:
            page.screenshot(path=f"{task['shots']}/stream_{frames}.png")

    pictures()
    log["says"] = page.inner_text("#doing")
    log["hidden"] = [id for id in ("pause", "save", "stop", "progress", "losses", "psnrs", "splats", "slider", "photo", "tools", "undo", "redo", "overlay") if not page.is_visible(f"#{id}")]
    log["modes"] = page.locator("#modes button:visible").all_inner_texts()
    page.locator("#views tr").nth(1).click()
    pictures()
    for key in ("2", "p", "5"):  # depth; what only a training has
        page.keyboard.press(key)
    pictures()
    page.keyboard.press("1")
    box = page.locator("#picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 60, box["y"] + box["height"] / 2, steps=3)
    page.mouse.up()
    pictures()
    log["note"] = page.is_visible("#note")
    log["violations"] = page.evaluate("violations")


run(main)

# Watches a search for cameras, and then the training, in headless Chromium. Reads what to do as JSON from standard input, prints what happened as JSON.
import os
import signal

from browser import new_page, run

PATIENCE = 90_000  # ms, for anything

# How many pixels of the picture are drawn on.
DRAWN = "() => { const c = document.getElementById('picture'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; }"


def script(browser, task, log):
    page = new_page(browser.new_context(viewport={"width": 800, "height": 600}), log)
    os.kill(task["pid"], signal.SIGCONT)  # the program waits for this
    page.goto(task["url"])
    page.wait_for_selector("body[data-cameras]", state="attached", timeout=PATIENCE)
    log["cameras"], log["points"] = (int(page.evaluate(f"document.body.dataset.{name}")) for name in ("cameras", "points"))
    log["stages"] = page.inner_text("#stages")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    log["drawn"] = page.evaluate(DRAWN)
    log["violations"] = page.evaluate("violations")
    page.wait_for_selector("body[data-frames]", state="attached", timeout=PATIENCE)
    log["frames"] = int(page.evaluate("document.body.dataset.frames"))


run(script)

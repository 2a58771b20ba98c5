# Draws a model in headless Chromium, in windows of some sizes. Reads what to do as JSON from standard input, prints what happened as JSON.
import base64

from browser import new_page, run


def draw(browser, task, log):
    page = new_page(browser.new_context(), log)
    log["pictures"] = []
    for width, height in task["sizes"]:
        page.set_viewport_size({"width": width, "height": height})
        if log["pictures"]:
            page.reload()
        else:
            page.goto(task["url"])
            page.wait_for_url(lambda u: "token=" not in u)
        page.wait_for_selector("body[data-loaded]", state="attached", timeout=120_000)
        page.wait_for_timeout(1500)
        log["pictures"].append(base64.b64encode(page.screenshot()).decode())


run(draw)

# Works on the page of vksplat open as a person does: folder, verdict, training, watching, stopping, continuing, the
# model, an export, a comparison. TestPlayDesk says what the task holds, and judges the log.
import time

import browser
from playwright.sync_api import Error

PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}


def shoot(page, task, name):
    if task.get("shots"):
        page.screenshot(path=f"{task['shots']}/desk-{name}.png", full_page=False)


def steps(page):
    """The step that the training on the page is at, 0 before the first."""
    text = page.locator(".job[data-kind=train] .numbers, section .numbers").first.inner_text()
    return int(text.split()[1].replace(",", "")) if text.startswith("step ") else 0


def until(page, what, reached, patience=240):
    """Waits until reached() is true. The page's policy forbids what wait_for_function does."""

    def now():
        try:
            return reached()
        except Error:  # another page is on its way
            return False

    end = time.monotonic() + patience
    while not now():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {patience} s; the page says {page.inner_text('main')!r}")
        page.wait_for_timeout(50)


def wait_step(page, least):
    until(page, f"step {least}", lambda: steps(page) >= least)


def wide(page):
    return page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")


def begin(page, task, log):
    """From the empty page to a training."""
    page.goto(task["url"])
    page.get_by_role("link", name="Choose a folder").wait_for()
    shoot(page, task, "welcome")
    page.get_by_role("link", name="Choose a folder").click()
    page.get_by_role("link", name=task["scene"]).wait_for()
    shoot(page, task, "browse")
    page.get_by_role("link", name=task["scene"]).click()
    page.locator(".verdict h3").wait_for(timeout=120000)
    log["verdict"] = page.locator(".verdict h3").inner_text()
    page.locator(".costs dl").wait_for(timeout=240000)
    log["costs"] = page.locator(".costs dl").inner_text()
    shoot(page, task, "verdict")
    page.get_by_role("button", name="Start training").click()
    page.locator(".job[data-kind=train]").wait_for()
    page.get_by_role("link", name="Watch in 3D").wait_for(timeout=240000)
    wait_step(page, 2)
    shoot(page, task, "trains")


def watch(page, task, log):
    """Through the relay to the viewer of the training, and back."""
    page.get_by_role("link", name="Watch in 3D").click()
    until(page, "frames", lambda: page.evaluate("Number(document.body.dataset.frames || 0)") >= 2)
    log["watched"] = page.evaluate("document.body.dataset.connected")
    shoot(page, task, "watch")
    page.locator("#back").click()
    page.locator(".job[data-kind=train]").wait_for()


def stop(page, task, log):
    page.get_by_role("link", name="Details").click()
    page.get_by_role("button", name="Stop").wait_for()
    shoot(page, task, "run-trains")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Continue training").wait_for(timeout=240000)
    log["stopped"] = page.locator(".facts").first.inner_text()
    shoot(page, task, "run-stopped")


def go_on(page, task, log):
    before = steps_of_facts(page)
    page.get_by_role("button", name="Continue training").click()
    wait_step(page, before + 2)
    log["continued"] = [before, steps(page)]
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Continue training").wait_for(timeout=240000)


def steps_of_facts(page):
    return int(page.locator(".facts dd").first.inner_text().split()[0].replace(",", ""))


def model(page, task, log):
    page.get_by_role("button", name="Open model").click()
    until(page, "the model", lambda: page.evaluate("document.body.dataset.loaded") == "true")
    page.wait_for_timeout(1500)  # for the picture alone
    shoot(page, task, "model")
    page.locator("a.back").click()
    page.locator("article.run").first.wait_for()
    shoot(page, task, "runs")


def edit(page, task, log):
    """Through the relay to the editor of the model, and back."""
    page.locator("article.run a").first.click()
    page.get_by_role("button", name="Edit").click()
    until(page, "frames", lambda: page.evaluate("Number(document.body.dataset.frames || 0)") >= 1)
    page.locator("[data-tool=box]").click()
    page.locator("#inside").click()
    until(page, "an edit", lambda: "are left" in page.inner_text("#left"))
    log["edited"] = page.inner_text("#left")
    shoot(page, task, "edit")
    page.locator("#back").click()
    page.locator("article.run").first.wait_for()


def export(page, task, log):
    page.locator("article.run a").first.click()
    page.get_by_role("button", name="Export").click()
    page.get_by_role("link", name="Download").wait_for(timeout=120000)
    with page.expect_download() as got:
        page.get_by_role("link", name="Download").click()
    log["download"] = got.value.suggested_filename
    with open(got.value.path(), "rb") as f:
        log["bytes"] = len(f.read())
    page.locator(".pair").scroll_into_view_if_needed()
    shoot(page, task, "exported")


def flight(page, task, log):
    """A video, which is drawn and played on the page."""
    page.get_by_label("duration").select_option("5")
    page.get_by_label("size").select_option("480")
    page.get_by_role("button", name="Render").click()
    page.locator(".job[data-kind=flight]").wait_for()
    if task["flight"]:
        page.locator("video").wait_for(timeout=240000)
        until(page, "the video", lambda: page.evaluate("document.querySelector('video').readyState") >= 1)
        log["film"] = page.evaluate("document.querySelector('video').duration")
        shoot(page, task, "flight")
    else:
        page.locator(".job[data-kind=flight]").get_by_role("button", name="Stop").click()


def upload(page, task, log):
    """Photos that are dropped: they are stored, and the search for cameras begins."""
    page.get_by_role("link", name="Runs", exact=True).click()
    page.set_input_files("#files", task["photos"])
    page.locator(".job[data-kind=capture]").wait_for()
    shoot(page, task, "upload")
    job = page.locator(".job[data-kind=capture]")
    until(page, "the end of the search", lambda: job.get_attribute("data-state") in ("done", "failed", "stopped"))
    log["capture"] = [job.get_attribute("data-state"), job.inner_text()]
    shoot(page, task, "captured")


def compare(page, task, log):
    page.get_by_role("link", name="Compare").click()
    page.locator("table.compare").wait_for()
    log["columns"] = page.locator("table.compare thead th[scope=col]").count()
    shoot(page, task, "compare")


def phone(client, task, log):
    """The same pages on a phone: nothing is wider than it."""
    context = client.new_context(**PHONE)
    page = browser.new_page(context, log)
    page.goto(task["url"])
    page.locator("article.run").first.wait_for()
    log["wide"] = {}
    for name, place in task["places"].items():
        page.evaluate("(place) => { location.hash = place; }", place)
        page.wait_for_timeout(200)
        if name == "verdict":
            page.locator(".costs dl").wait_for(timeout=240000)
        else:
            page.wait_for_timeout(1500)
        log["wide"][name] = wide(page)
        shoot(page, task, f"phone-{name}")
        if task.get("shots"):
            page.screenshot(path=f"{task['shots']}/desk-phone-{name}-full.png", full_page=True)
    context.close()


def script(client, task, log):
    context = client.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark")
    page = browser.new_page(context, log)
    for part in begin, watch, stop, go_on, model, edit, export, flight, compare, upload:
        part(page, task, log)
    log["violations"] = page.evaluate("window.violations")
    phone(client, task, log)
    page.close()


browser.run(script)

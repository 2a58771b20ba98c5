# Works on the page of vksplat open as a person does: folder, verdict, training, watching, stopping, continuing, the
# model, an export, a comparison. TestPlayDesk says what the task holds, and judges the log.
import time

import browser
from playwright.sync_api import Error, TimeoutError

PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}

# What a page lacks for those who see little, or use no mouse: names of controls, contrast of texts.
AUDIT = """() => {
    const lacks = [], colour = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const shown = (e) => e.checkVisibility() && e.getClientRects().length > 0;
    const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3])).concat(1);
    const read = (text) => {
        colour.clearRect(0, 0, 1, 1);
        colour.fillStyle = text;
        colour.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = colour.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const behind = (e) => {
        const layers = [];
        for (let x = e; x; x = x.parentElement) {
            layers.push(read(getComputedStyle(x).backgroundColor));
        }
        return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
    };
    const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const named = (e) => e.getAttribute('aria-label') || e.innerText.trim() || e.labels && [...e.labels].some((l) => l.innerText.trim());
    for (const e of document.querySelectorAll('a[href], button, input, select, progress, canvas, video, textarea')) {
        if (shown(e) && !named(e)) {
            lacks.push(`no name: ${e.outerHTML.slice(0, 120)}`);
        }
    }
    for (const e of document.querySelectorAll('img:not([alt])')) {
        lacks.push(`no alternative: ${e.outerHTML.slice(0, 120)}`);
    }
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const e = walk.currentNode.parentElement;
        if (!walk.currentNode.data.trim() || !shown(e) || e.closest('[aria-hidden=true], option, [aria-disabled]')) {
            continue;
        }
        const below = behind(e), [a, b] = [light(over(read(getComputedStyle(e).color), below)), light(below)];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) {
            lacks.push(`contrast ${ratio.toFixed(2)}: ${walk.currentNode.data.trim().slice(0, 60)}`);
        }
    }
    if ([...document.querySelectorAll('h1')].filter(shown).length !== 1) {
        lacks.push('not one heading of the page');
    }
    return lacks;
}"""

# How many controls of a page are there to be used. The first one gets the focus.
CONTROLS = """() => {
    window.controls = [...document.querySelectorAll('a[href], button, input, select, video, [tabindex="0"]')]
        .filter((e) => e.checkVisibility() && (e.type !== 'radio' || e.checked));
    window.controls[0].focus();
    return window.controls.length;
}"""

# The control that has the focus: its number, and whether that is seen. Browsers draw it inside of videos.
FOCUSED = """() => {
    const e = document.activeElement;
    const outlined = (x) => getComputedStyle(x).outlineStyle !== 'none' && parseFloat(getComputedStyle(x).outlineWidth) >= 2;
    return [window.controls.indexOf(e), outlined(e) || outlined(e.parentElement) || e.tagName === 'VIDEO', e.outerHTML.slice(0, 120)];
}"""


def audit(page, log, name):
    """Notes what a page lacks, and walks through it with the tabulator."""
    log["lacks"] += [f"{name}: {text}" for text in page.evaluate(AUDIT)]
    have = page.evaluate(CONTROLS)
    reached = {0}
    for _ in range(3 * have):
        page.keyboard.press("Tab")
        number, seen, text = page.evaluate(FOCUSED)
        if number < 0:
            break
        reached.add(number)
        if not seen:
            log["lacks"].append(f"{name}: the focus is not seen: {text}")
    if len(reached) < have:
        text = page.evaluate("(reached) => window.controls.filter((e, i) => !reached.includes(i)).map((e) => e.outerHTML.slice(0, 120))", list(reached))
        log["lacks"].append(f"{name}: not reached by keyboard: {text}")


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
    audit(page, log, "welcome")
    shoot(page, task, "welcome")
    page.get_by_role("link", name="Choose a folder").click()
    page.get_by_role("link", name=task["scene"]).wait_for()
    page.get_by_role("link", name=task["hostile"]).click()  # a name is a text, whatever is in it
    page.locator(".crumbs", has_text=task["hostile"]).wait_for()
    if page.locator("main img").count():
        log["errors"].append("the name of a folder becomes a picture")
    page.go_back()
    page.get_by_role("link", name=task["scene"]).wait_for()
    shoot(page, task, "browse")
    page.get_by_role("link", name=task["scene"]).click()
    page.locator(".verdict h2").wait_for(timeout=120000)
    log["verdict"] = page.locator(".verdict h2").inner_text()
    page.locator(".costs dl").wait_for(timeout=240000)
    log["costs"] = page.locator(".costs dl").inner_text()
    audit(page, log, "verdict")
    shoot(page, task, "verdict")
    start, job = page.get_by_role("button", name="Start training"), page.locator(".job[data-kind=train]")
    start.click()
    try:
        job.wait_for(timeout=60000)
    except TimeoutError:  # the button was drawn anew under the pointer: a person presses it again
        start.click()
        job.wait_for()
    page.get_by_role("link", name="Watch in 3D").wait_for(timeout=240000)
    wait_step(page, 2)
    until(page, "what is said", lambda: "has begun" in page.locator("#said").inner_text())
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
    audit(page, log, "run")
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
    if task.get("shots"):
        page.wait_for_timeout(1500)
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
    page.get_by_label("duration").evaluate("(e) => { e.value = '5'; e.selectedOptions[0].value = '1'; }")  # quickly drawn
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
    """Photos that are dropped: they are stored, and the search for cameras begins. What is none is refused."""
    page.get_by_role("link", name="Runs", exact=True).click()
    page.set_input_files("#files", [{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"x"}])
    page.locator("#toast", has_text="neither a photo nor a video").wait_for()
    page.keyboard.press("Escape")
    page.locator("#toast").wait_for(state="hidden")
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
    audit(page, log, "compare")
    log["columns"] = page.locator("table.compare thead th[scope=col]").count()
    shoot(page, task, "compare")


def phone(client, task, log):
    """The same pages on a phone, in the other colours: nothing is wider than it."""
    context = client.new_context(color_scheme="dark" if task.get("shots") else "light", **PHONE)
    page = browser.new_page(context, log)
    page.goto(task["url"])
    page.locator("article.run").first.wait_for()
    log["wide"] = {}
    for name, (place, there) in task["places"].items():
        page.evaluate("(place) => { location.hash = place; }", place)
        page.locator(there).first.wait_for(timeout=240000)
        log["wide"][name] = wide(page)
        audit(page, log, f"phone, {name}")
        shoot(page, task, f"phone-{name}")
        if task.get("shots"):
            page.screenshot(path=f"{task['shots']}/desk-phone-{name}-full.png", full_page=True)
    context.close()


def script(client, task, log):
    context = client.new_context(viewport={"width": 1440, "height": 900}, color_scheme="dark")
    page = browser.new_page(context, log)
    log["lacks"], log["took"] = [], []
    for part in begin, watch, stop, go_on, model, edit, export, flight, compare, upload:
        began = time.monotonic()
        part(page, task, log)
        log["took"].append(f"{part.__name__} {time.monotonic() - began:.1f} s")
    log["violations"] = page.evaluate("window.violations")
    phone(client, task, log)
    page.close()


browser.run(script)

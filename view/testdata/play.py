# Drives the viewer in headless Chromium. Reads what to do as JSON from standard input, prints what happened as JSON.
import base64

from browser import new_page, run

# Colours of a screenshot's pixels, by the browser itself: [x, y] -> [r, g, b].
PIXELS = """async ([png, at]) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(png), (c) => c.charCodeAt(0))]));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const context = canvas.getContext('2d');
    context.drawImage(bitmap, 0, 0);
    return at.map(([x, y]) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3));
}"""

# What a page of another server tries; whether any of it succeeds.
ATTACKS = """async (url) => {
    const works = async (what) => { try { return await what(); } catch (e) { return false; } };
    const picture = () => new Promise((done) => { const i = new Image(); i.onload = () => done(true); i.onerror = () => done(false); i.src = url; });
    const script = () => new Promise((done) => { const s = document.createElement('script'); s.onload = () => done(true); s.onerror = () => done(false); s.src = url + 'boot.js'; document.body.append(s); });
    const socket = () => new Promise((done) => { const w = new WebSocket(url.replace('http', 'ws')); w.onopen = () => done(true); w.onerror = () => done(false); });
    return {
        cors: await works(async () => (await fetch(url + 'scene.ply', { credentials: 'include' })).ok),
        blind: await works(async () => { await fetch(url + 'scene.ply', { credentials: 'include', mode: 'no-cors' }); return true; }),
        picture: await works(picture),
        script: await works(script),
        socket: await works(socket),
    };
}"""


def open_viewer(context, url, log):
    page = new_page(context, log)
    page.goto(url)
    page.wait_for_url(lambda u: "token=" not in u)
    page.wait_for_selector("body[data-loaded]", state="attached", timeout=120_000)
    page.wait_for_timeout(1000)
    return page


def shot(page):
    return base64.b64encode(page.screenshot()).decode()


def play(browser, task, log):
    context = browser.new_context(viewport={"width": task["width"], "height": task["height"]})
    page = open_viewer(context, task["url"], log)
    blank = context.new_page()
    log["colours"] = blank.evaluate(PIXELS, [shot(page), task["pixels"]])
    log["violations"] = page.evaluate("violations")

    page.mouse.move(task["width"] / 2, task["height"] / 2)
    page.mouse.down()
    page.mouse.move(task["width"] / 2 + 80, task["height"] / 2, steps=5)
    page.mouse.up()
    page.wait_for_timeout(1500)
    log["moved"] = blank.evaluate(PIXELS, [shot(page), task["pixels"]])

    # The policy itself: what the page's own scripts cannot do.
    log["leaves"] = page.evaluate("fetch('https://192.0.2.1/').then(() => true, () => false)")
    log["policy"] = page.evaluate("violations")
    log["cookie"] = page.evaluate("document.cookie")
    own = page.url.split("?")[0]
    if task.get("elsewhere"):
        log["statuses"] = {}
        for name, url in task["visits"].items():
            answer = context.new_page().goto(url.replace("PAGE/", own))
            log["statuses"][name] = answer.status
        evil = context.new_page()
        evil.goto(task["elsewhere"])
        log["attacks"] = evil.evaluate(ATTACKS, own)
        evil.set_content(f"<iframe src='{own}'></iframe>")
        evil.wait_for_timeout(500)
        log["frame"] = evil.frames[1].url if len(evil.frames) > 1 else ""


run(play)

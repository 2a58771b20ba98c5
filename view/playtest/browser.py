# What the scripts that drive the viewers share.
import json
import sys

from playwright.sync_api import Error, sync_playwright

SWIFTSHADER = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
# No name leads anywhere, but one that a page of DNS rebinding would have.
OFFLINE = ["--host-resolver-rules=MAP rebound.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--disable-background-networking"]

PATIENCE = 240_000  # ms: a machine may have much else to do

VIOLATIONS = "window.violations = []; addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + ' ' + e.blockedURI));"


def run(script):
    """Calls script(browser, task, log) with the task from standard input, and prints the log."""
    task = json.load(sys.stdin)
    log = {"requests": [], "console": [], "errors": []}
    try:
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=task["chromium"], args=SWIFTSHADER + OFFLINE)
            script(browser, task, log)
            browser.close()
    except Error as e:
        sys.exit(f"{sys.argv[0]}: {e}")
    json.dump(log, sys.stdout)


def new_page(context, log):
    """A page whose requests, messages and violations of its policy are noted."""
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.on("request", lambda r: log["requests"].append(r.url))
    page.on("console", lambda m: log["console"].append(f"{m.type}: {m.text}"))
    page.on("pageerror", lambda e: log["errors"].append(str(e)))
    page.add_init_script(VIOLATIONS)
    return page

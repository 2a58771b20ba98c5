# Opens the pages of a farm on a desktop and on a phone, and says how wide they are, which pictures they show and what the browser complains of.
import browser

SIZES = {"wide": {"viewport": {"width": 1280, "height": 900}}, "phone": {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}}


def script(chromium, task, log):
    log["pages"] = []
    for name, size in SIZES.items():
        context = chromium.new_context(**size)
        page = browser.new_page(context, log)
        page.goto(task["url"])
        page.wait_for_selector("h1")
        base = page.url
        for path in task["paths"]:
            page.goto(base + path)
            page.wait_for_load_state("load")
            for picture in page.query_selector_all("img"):
                picture.scroll_into_view_if_needed()  # those below are loaded lazily
            page.wait_for_timeout(200)
            width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            pictures = page.evaluate("[...document.images].map((i) => i.naturalWidth)")
            log["pages"].append({"size": name, "path": path, "width": width[0], "room": width[1], "pictures": pictures, "violations": page.evaluate("violations")})
        context.close()


browser.run(script)

#!/usr/bin/env python3
"""Looks in headless Chromium at what `vksplat view` serves, and prints the time to the first picture, the bytes that
were loaded and the most memory that the browser's processes took together (proportional set size, Linux).

    bench/browser.py bin/vksplat MODEL [--seconds 60] [--moves] [--chromium FILE] [--shot F.png] [-- flags of view]

Needs the package playwright. The browser draws by SwiftShader, in RAM, so that what a GPU would hold is counted too.
"""
import argparse
import os
import re
import subprocess
import sys
import threading
import time

from playwright.sync_api import TimeoutError, sync_playwright

SWIFTSHADER = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox",
               "--disable-background-networking"]


def children(root):
    """The processes below one."""
    found = {root}
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.split("\n")[1:] if line.strip()]
    while True:
        more = {pid for pid, parent in pairs if parent in found} - found
        if not more:
            return found
        found |= more


def memory(root, name):
    """Bytes of the processes below one that run a program, each kind of process for itself."""
    kinds = {}
    for pid in children(root):
        try:
            command = open(f"/proc/{pid}/cmdline").read()
            pss = re.search(r"^Pss:\s+(\d+)", open(f"/proc/{pid}/smaps_rollup").read(), re.M)
        except OSError:
            continue  # it has ended
        if name in command and pss:
            kind = re.search(r"--type=([\w-]+)", command)
            kind = kind.group(1) if kind else "browser"
            kinds[kind] = kinds.get(kind, 0) + int(pss.group(1)) * 1024
    return kinds


def main():
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[:own.index("--")], own[own.index("--") + 1:]
    args = argparse.ArgumentParser()
    args.add_argument("vksplat")
    args.add_argument("model")
    args.add_argument("--seconds", type=float, default=60)
    args.add_argument("--chromium", default="/usr/bin/chromium")
    args.add_argument("--moves", action="store_true")
    args.add_argument("--shot")
    args = args.parse_args(own)
    began = time.monotonic()
    server = subprocess.Popen([args.vksplat, "view", args.model, "--no-open", *rest], stdout=subprocess.PIPE, text=True)
    url = next(m.group(1) for m in (re.match(r"open in a browser: (\S+)", line) for line in server.stdout) if m)
    print(f"the server is ready after {time.monotonic() - began:.1f} s")
    most, peak, ended = {}, 0, threading.Event()

    def watch(root):
        nonlocal most, peak
        while not ended.wait(0.5):
            kinds = memory(root, "chromium")
            if sum(kinds.values()) > peak:
                most, peak = kinds, sum(kinds.values())

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=args.chromium, args=SWIFTSHADER)
        watcher = threading.Thread(target=watch, args=(os.getpid(),))
        watcher.start()
        page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
        got = {"bytes": 0, "files": 0}

        def loaded(response):
            got["files"] += 1
            got["bytes"] += int(response.headers.get("content-length", 0))
        page.on("response", loaded)
        page.on("pageerror", lambda e: print("page:", e))
        began = time.monotonic()
        page.goto(url + "&webgl" if "?" in url else url + "?webgl")
        for _ in range(60):
            try:
                page.wait_for_selector("body[data-loaded]", state="attached", timeout=10_000)
                break
            except TimeoutError:
                print(f"{time.monotonic() - began:.0f} s: {got['files']} files, {got['bytes'] / 1e6:.1f} MB",
                      flush=True)
        print(f"the first picture after {time.monotonic() - began:.1f} s, {got['files']} files, "
              f"{got['bytes'] / 1e6:.1f} MB")
        end, step = time.monotonic() + args.seconds, 0
        while time.monotonic() < end:
            page.wait_for_timeout(min(4000, 1000 * args.seconds))
            if args.moves:  # nearer, and to the side
                step += 1
                page.mouse.move(640, 360)
                page.mouse.wheel(0, -400 if step % 8 < 6 else 900)
                page.mouse.down()
                page.mouse.move(640 + 90 * (-1) ** step, 380, steps=4)
                page.mouse.up()
        if args.shot:
            page.screenshot(path=args.shot, timeout=300_000)
        print(f"after {time.monotonic() - began:.0f} s {got['files']} files, {got['bytes'] / 1e6:.1f} MB")
        ended.set()
        watcher.join()
        browser.close()
    server.terminate()
    server.wait()
    print(f"the browser took {peak / 1e6:.0f} MB at most:",
          ", ".join(f"{kind} {n / 1e6:.0f}" for kind, n in sorted(most.items())))


main()

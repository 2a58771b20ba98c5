#!/usr/bin/env python3
"""ruler.py ROWS...: tables of the rows that ruler.sh wrote.
ruler.py ROWS... --against BEFORE AFTER [--gate]: what recipe AFTER changes, and whether it may become the default.
ruler.py --selftest: tests the gate with made-up rows.

--list LIST (choosing.txt) leaves out all other scenes, and the gate then asks for rows of each of its scenes in std and
stretch.

Where rows are of several builds, recipes are called RECIPE@BUILD, and one of a build is compared with one of another
only by these names. Rows of other flags or sizes are told apart likewise. Differences are paired by scene and seed. The
95 % interval of a mean over scenes is Student's, of the means over each scene's seeds; a single scene, with three seeds
or more, has that of its seeds.

The gate: on split std the mean PSNR rises by 0.05 dB or LPIPS falls by 3 %, with an interval that excludes 0, and the
other of the two does not get worse; no scene loses more than 0.2 dB; and PSNR does not get worse on a split that leaves
a gap (stretch, sparse, few), nor off the path (views 15 degrees or more from the nearest photo that was trained on).
"Worse" means that the whole interval is; a scene of two seeds is judged by its mean. Rows without LPIPS are judged by
1 - SSIM in its place. Three scenes of std, with two seeds each, and three of stretch are the least. With --gate the
exit code is 0 if it passes, else 1."""
import argparse
import json
import math
import random
import statistics
import sys

OFF_PATH = 15
# Student's quantile of 97.5 % for 1, 2, ... degrees of freedom; the last one beyond, which is a little wide.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]
COLUMNS = [("psnr", "PSNR", 2), ("ssim", "SSIM", 4), ("lpips", "LPIPS", 4), ("cc_psnr", "cc PSNR", 2),
           ("lens_psnr", "PSNR through the lens", 2), ("aligned_psnr", "aligned PSNR", 2),
           ("seconds", "seconds", 2), ("splats", "splats", 0), ("mib", "MiB", 1)]


def lines_of(path):
    try:
        return open(path).readlines()
    except OSError as e:
        sys.exit(f"ruler.py: {e}")


def read(paths):
    """The rows of the files, the last of each run. A scene is a line of a list: its name and flags of the capture."""
    rows = {}
    for line in (line for path in paths for line in lines_of(path)):
        try:
            r = json.loads(line)
            r["scene"] = " ".join([r["scene"], *r["capture_flags"].split()])
            rows[tuple(r[k] for k in ("scene", "split", "recipe", "flags", "downscale", "seed", "build"))] = r
        except (ValueError, TypeError, KeyError):  # a run was killed while it wrote its row, or this is no row
            continue
    if not rows:
        sys.exit(f"ruler.py: no rows in {' '.join(paths)}")
    return list(rows.values())


def read_list(path):
    """The scenes of a list."""
    return [" ".join(line.split()) for line in lines_of(path) if line.strip() and not line.lstrip().startswith("#")]


def named(rows):
    """The rows, with what the recipe is called in "name"."""
    builds = len({r["build"] for r in rows}) > 1
    for group in grouped(rows, "recipe").values():
        several = {key for key in ("downscale", "flags") if len({r[key] for r in group}) > 1}
        for r in group:
            r["name"] = r["recipe"] + ("@" + r["build"]) * builds + (
                f" 1/{r['downscale']}") * ("downscale" in several) + f" ({r['flags']})" * ("flags" in several)
    return rows


def grouped(rows, *keys):
    groups = {}
    for r in rows:
        groups.setdefault(tuple(r[k] for k in keys), []).append(r)
    return groups


def table(rows):
    """A line for each scene, split and recipe, and for each split the mean of the scenes that all its recipes have."""
    columns = [c for c in COLUMNS if any(c[0] in r for r in rows)]
    print("| scene | split | recipe | seeds |" + "".join(f" {title} |" for _, title, _ in columns))
    print("|---|---|---|---|" + "---|" * len(columns))
    runs = grouped(rows, "scene", "split", "name")

    def line(scene, split, name, groups, seeds):
        cells = []
        for key, _, digits in columns:
            groups_of = [[r[key] for r in g if key in r] for g in groups]
            if not all(groups_of):
                cells.append("")
                continue
            cell = f"{statistics.mean(statistics.mean(g) for g in groups_of):,.{digits}f}"
            if len(groups) == 1 and len(groups_of[0]) > 1:
                cell += f" ± {statistics.stdev(groups_of[0]):,.{digits}f}"
            cells.append(cell)
        print(f"| {scene} | {split} | {name} | {seeds} |" + "".join(f" {c} |" for c in cells))

    for (scene, split, name), group in sorted(runs.items()):
        line(scene, split, name, [group], ", ".join(str(r["seed"]) for r in sorted(group, key=lambda r: r["seed"])))
    for split in sorted({r["split"] for r in rows}):
        names = sorted({r["name"] for r in rows if r["split"] == split})
        scenes = [s for s in sorted({r["scene"] for r in rows}) if all((s, split, n) in runs for n in names)]
        for name in names if len(scenes) > 1 else []:
            line(f"mean of {len(scenes)}", split, name, [runs[s, split, name] for s in scenes], "")
    print("\n± is the standard deviation over seeds. Held out: every 8th photo, or the capture's own (std); the third "
          "quarter of the photos (stretch); as many at even distances (even).")


def gaps(rows):
    """What a gap in the photos costs: PSNR of even less that of stretch."""
    runs = grouped(rows, "name", "split", "scene")

    def mean(*key):
        return statistics.mean(r["psnr"] for r in runs[key])

    for name in sorted({r["name"] for r in rows}):
        lost = [mean(name, "even", s) - mean(name, "stretch", s) for s in sorted({r["scene"] for r in rows})
                if (name, "even", s) in runs and (name, "stretch", s) in runs]
        if lost:
            print(f"{name}: stretch is {statistics.mean(lost):.2f} dB below even ({len(lost)} scenes)")


def slopes(rows):
    """PSNR over the angle to the nearest photo that was trained on, each scene about its own mean."""
    rows = [r for r in rows if r["split"] in ("std", "even", "stretch")]  # of much the same number of photos
    for (name,), group in sorted(grouped(rows, "name").items()):
        xs, ys = [], []
        for _, runs in sorted(grouped(group, "scene").items()):
            views = [(v["nearest_degrees"], v["psnr"]) for r in runs for v in r["views"].values()
                     if "nearest_degrees" in v]
            if views:
                x0, y0 = (statistics.mean(c) for c in zip(*views))
                xs += [x - x0 for x, _ in views]
                ys += [y - y0 for _, y in views]
        if sum(x * x for x in xs) > 0:
            print(f"{name}: {sum(x * y for x, y in zip(xs, ys)) / sum(x * x for x in xs):+.3f} dB per degree from the "
                  f"nearest photo that was trained on ({len(xs)} views)")


def interval(values):
    """Student's 95 % interval of the mean; one value bounds nothing."""
    if len(values) < 2:
        return -math.inf, math.inf
    half = STUDENT[min(len(values) - 1, len(STUDENT)) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values) - half, statistics.mean(values) + half


class Change:
    """A measure of AFTER less that of BEFORE, larger being better: by scene the differences of its seeds."""

    def __init__(self, pairs, measure):
        found = {}
        for scene, before, after in pairs:
            d = measure(before, after)
            if d is not None:
                found.setdefault(scene, []).append(d)
        self.scenes = found
        if found:
            means = [statistics.mean(d) for d in found.values()]
            self.mean = statistics.mean(means)
            seeds = max(found.values(), key=len)
            self.low, self.high = interval(means if len(means) > 1 else seeds if len(seeds) > 2 else [])

    def __bool__(self):
        return bool(self.scenes)

    def worse(self):
        return self.high < 0

    def gains(self, least):
        return self.mean >= least and self.low > 0


def difference(before, after):
    return after["psnr"] - before["psnr"]


def fall(score):
    """The share by which an error falls."""
    def measure(before, after):
        a, b = score(before), score(after)
        return None if a is None or b is None or a == 0 else (a - b) / a
    return measure


def off_path(before, after):
    """The difference of PSNR in views that look from where no photo was trained on."""
    views = [after["views"][k]["psnr"] - v["psnr"] for k, v in before["views"].items()
             if v.get("nearest_degrees", 0) >= OFF_PATH and k in after["views"]]
    return statistics.mean(views) if views else None


def pairs_of(rows, before, after):
    """Pairs (scene, run before, run after) by split."""
    for name in before, after:
        if not any(r["name"] == name for r in rows):
            sys.exit(f"ruler.py: no rows of {name}; there are {', '.join(sorted({r['name'] for r in rows}))}")
    of = grouped(rows, "scene", "split", "seed", "downscale", "name")
    pairs = {}
    for scene, split, seed, downscale, name in sorted(of):
        other = (scene, split, seed, downscale, after)
        if name == before and other in of:
            pairs.setdefault(split, []).append((scene, of[scene, split, seed, downscale, name][-1], of[other][-1]))
    return pairs


def against(rows, before, after, scenes=(), say=print):
    """Prints what changes from BEFORE to AFTER, and returns the reasons why the gate, which asks for the scenes, does
    not pass."""
    pairs = pairs_of(rows, before, after)
    std = pairs.get("std", [])
    lpips = bool(std) and all("lpips" in r for p in std for r in p[1:])
    second = "LPIPS" if lpips else "1 - SSIM"
    error = fall(lambda r: r.get("lpips") if lpips else 1 - r["ssim"])
    say(f"{after} against {before}, paired by scene and seed, 95 % intervals:\n")
    say(f"| split | scene | seeds | PSNR, dB | {second} falls by |\n|---|---|---|---|---|")
    for split, of in sorted(pairs.items()):
        psnr, falls = Change(of, difference), Change(of, error)
        for scene, d in sorted(psnr.scenes.items()):
            say(f"| {split} | {scene} | {len(d)} | {shown(d)} | {shown(falls.scenes.get(scene), 100, ' %')} |")
        say(f"| {split} | **mean** | | **{psnr.mean:+.3f}**{bounds(psnr.low, psnr.high)} | " + (
            f"**{100 * falls.mean:+.2f} %**{bounds(100 * falls.low, 100 * falls.high)} |" if falls else "|"))
    off = Change([p for of in pairs.values() for p in of], off_path)
    if off:
        say(f"\nOff the path ({OFF_PATH} degrees or more): {off.mean:+.3f} dB{bounds(off.low, off.high)}, scenes: "
            f"{len(off.scenes)}.")
    no = refusals(pairs, Change(std, difference), Change(std, error), off, second, scenes)
    if not lpips:
        say("\nRows without LPIPS: the gate goes by 1 - SSIM in its place.")
    say("\nGate for a default: " + ("no: " + "; ".join(no) if no else "yes") + ".")
    return no


def bounds(low, high):
    return f" ({low:+.3f} to {high:+.3f})" if low > -math.inf else ""


def shown(values, factor=1, unit=""):
    if not values:
        return ""
    text = f"{factor * statistics.mean(values):+.{3 if factor == 1 else 2}f}{unit}"
    if len(values) < 3:
        return text
    return text + bounds(*interval([factor * v for v in values]))


def refusals(pairs, psnr, error, off, second, scenes):
    """Why the gate does not pass; nothing if it does."""
    stretch = {scene for scene, *_ in pairs.get("stretch", [])}
    missing = [s for s in scenes if s not in psnr.scenes or s not in stretch]
    if missing:
        return [f"it takes rows of both recipes, in std and in stretch, of {', '.join(missing)}"]
    if len(psnr.scenes) < 3 or min(len(d) for d in psnr.scenes.values()) < 2:
        return ["it takes three scenes of split std, each with two seeds or more that both recipes have"]
    no = []
    if not psnr.gains(0.05) and not error.gains(0.03):
        no.append(f"neither gains PSNR 0.05 dB nor {second} 3 % with an interval that excludes 0")
    for change, name in (psnr, "PSNR"), (error, second):
        if change.worse():
            no.append(f"{name} gets worse")
    for scene, d in sorted(psnr.scenes.items()):
        if (interval(d)[1] if len(d) > 2 else statistics.mean(d)) < -0.2:
            no.append(f"{scene} loses more than 0.2 dB")
    for split, of in sorted(pairs.items()):
        if split.partition(":")[0] in ("stretch", "sparse", "few") and Change(of, difference).worse():
            no.append(f"PSNR of split {split} gets worse")
    if len(stretch) < 3:
        no.append("it takes three scenes of split stretch")
    if off and off.worse():
        no.append("PSNR off the path gets worse")
    return no


def made_up(gain, noise, scenes=6, seeds=3, lpips=True, **gains):
    """Rows of BEFORE and of AFTER, whose PSNR is higher by gain, or by what gains has for a scene or a split; "off" is
    added off the path, and LPIPS falls by the share "falls"."""
    draw, rows = random.Random(7), []
    for scene in (f"s{i}" for i in range(scenes)):
        for split in "std", "even", "stretch":
            for seed in range(seeds):
                for name in "before", "after":
                    up = 0 if name == "before" else gains.get(scene if split == "std" else split, gain)
                    psnr = 30 + up + draw.gauss(0, noise)
                    views = {"near": {"psnr": psnr, "nearest_degrees": 3.0}, "far": {
                        "psnr": psnr + (gains.get("off", 0) if up else 0), "nearest_degrees": 25.0}}
                    rows.append(dict(scene=scene, split=split, seed=seed, recipe=name, flags="", downscale=1, build="b",
                                     psnr=psnr, ssim=.9 + up / 500, seconds=1, splats=9, mib=1, views=views))
                    if lpips:
                        rows[-1]["lpips"] = .2 * (1 - gains.get("falls", 0) * (name == "after"))
    return named(rows)


def false_alarms(scenes, draws=4000):
    """The share of comparisons that find a gain where scenes and seeds differ by chance alone."""
    draw, found = random.Random(5), 0
    for _ in range(draws):
        pairs = []
        for scene in range(scenes):
            up = draw.gauss(0, 0.1)
            pairs += [(scene, {"psnr": draw.gauss(0, 0.2)}, {"psnr": draw.gauss(up, 0.2)}) for _ in range(2)]
        found += Change(pairs, difference).low > 0
    return found / draws


def selftest():
    """Every case names a word of the reason why the gate does not pass, or nothing if it must pass."""
    cases = {
        "a clear gain": (made_up(0.3, 0.05), None),
        "a clear gain without LPIPS": (made_up(0.3, 0.05, lpips=False), None),
        "LPIPS alone": (made_up(0, 0.01, falls=0.06), None),
        "LPIPS too little": (made_up(0, 0.01, falls=0.02), "neither"),
        "a gain that is too small": (made_up(0.03, 0.001), "neither"),
        "a clear loss": (made_up(-0.3, 0.05), "PSNR gets worse"),
        "noise": (made_up(0, 0.2), "neither"),
        "a gain within the noise": (made_up(0.06, 0.5), "neither"),
        "one scene far below": (made_up(0.4, 0.02, s3=-0.6), "s3 loses"),
        "the same with two seeds": (made_up(0.4, 0.02, seeds=2, s3=-0.6), "s3 loses"),
        "LPIPS gets worse": (made_up(0.3, 0.05, falls=-0.05), "LPIPS gets worse"),
        "stretch gets worse": (made_up(0.3, 0.05, stretch=-0.3), "stretch gets worse"),
        "off the path": (made_up(0.3, 0.05, off=-1), "off the path"),
        "no stretch": ([r for r in made_up(0.3, 0.05) if r["split"] != "stretch"], "three scenes of split stretch"),
        "one seed": (made_up(0.3, 0.05, seeds=1), "it takes"),
        "two scenes": (made_up(0.3, 0.05, scenes=2), "it takes"),
        "scenes of a list": (made_up(0.3, 0.05), None, ["s0", "s5"]),
        "a scene of the list is missing": (made_up(0.3, 0.05), "of s6", ["s0", "s6"]),
        "a stretch of the list is missing": (
            [r for r in made_up(0.3, 0.05) if r["scene"] != "s1" or r["split"] == "std"], "of s1", ["s0", "s1"]),
        "recipes of two builds": (named([dict(r, build=r["recipe"]) for r in made_up(0.3, 0.05)]), "before@before"),
    }
    wrong = 0
    for name, (rows, want, *scenes) in cases.items():
        try:
            no = against(rows, "before", "after", *scenes, say=lambda *_: None)
        except SystemExit as e:
            no = [str(e)]
        if bool(no) != (want is not None) or want and want not in "; ".join(no):
            wrong += 1
            print(f"{name}: want {want or 'a pass'}, got {'; '.join(no) or 'a pass'}")
    for scenes in 3, 6:
        share = false_alarms(scenes)
        if not 0.018 <= share <= 0.032:
            wrong += 1
            print(f"{scenes} scenes: {100 * share:.2f} % of the comparisons find a gain by chance, want 2.5 %")
    print(f"{len(cases) + 2 - wrong} passed, {wrong} failed")
    return wrong == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="files of rows (ruler.jsonl)", default=["ruler.jsonl"])
    parser.add_argument("--against", nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--gate", action="store_true", help="exit with 1 if AFTER does not pass")
    parser.add_argument("--list", help="leave out all scenes but those of this list; the gate asks for all of them")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        sys.exit(not selftest())
    scenes = read_list(options.list) if options.list else []
    rows = named([r for r in read(options.rows) if not options.list or r["scene"] in scenes])
    if options.against:
        no = against(rows, *options.against, scenes)
        sys.exit(bool(options.gate and no))
    if options.gate:
        parser.error("--gate needs --against")
    if rows:
        table(rows)
        print()
        gaps(rows)
        slopes(rows)


main()

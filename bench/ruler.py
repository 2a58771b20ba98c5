#!/usr/bin/env python3
"""ruler.py ROWS...: tables of the rows that ruler.sh wrote.
ruler.py ROWS... --against BEFORE AFTER [--gate]: what recipe AFTER changes, and whether it may become the default.
ruler.py --selftest: tests the gate with made-up rows.

A recipe that several builds trained is RECIPE@BUILD; rows of other flags or sizes are told apart likewise. Differences
are paired by scene and seed. The 95 % interval of a mean is a bootstrap's with a fixed seed: scenes are drawn with
replacement, and of each its seeds. A scene with three seeds or more has Student's interval.

The gate: on split std the mean PSNR rises by 0.05 dB or LPIPS falls by 3 %, with an interval that excludes 0, and the
other of the two does not get worse; no scene loses more than 0.2 dB; and PSNR does not get worse on a split that leaves
a gap (stretch, sparse, few), nor off the path (views 15 degrees or more from the nearest photo that was trained on).
"Worse" means that the whole interval is; a scene of two seeds is judged by its mean. Rows without LPIPS are judged by
1 - SSIM in its place. Three scenes of two seeds are the least. With --gate the exit code is 0 if it passes, else 1."""
import argparse
import json
import math
import random
import statistics
import sys

DRAWS, OFF_PATH = 2000, 15
# Student's quantile of 97.5 % for 2, 3, ... degrees of freedom; 1.96 beyond.
STUDENT = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120]
COLUMNS = [("psnr", "PSNR", 2), ("ssim", "SSIM", 4), ("lpips", "LPIPS", 4), ("cc_psnr", "cc PSNR", 2),
           ("lens_psnr", "PSNR through the lens", 2), ("aligned_psnr", "aligned PSNR", 2),
           ("seconds", "seconds", 2), ("splats", "splats", 0), ("mib", "MiB", 1)]


def read(paths):
    """The rows of the files, the last of each run, with what the recipe is called in "name"."""
    rows = {}
    for path in paths:
        try:
            lines = open(path).readlines()
        except OSError as e:
            sys.exit(f"ruler.py: {e}")
        for line in lines:
            try:
                r = json.loads(line)
            except ValueError:  # a run was killed while it wrote its row
                continue
            rows[r["scene"], r["split"], r["recipe"], r["flags"], r["downscale"], r["seed"], r["build"]] = r
    for group in grouped(rows.values(), "recipe").values():
        several = {key for key in ("build", "downscale", "flags") if len({r[key] for r in group}) > 1}
        for r in group:
            r["name"] = r["recipe"] + ("@" + r["build"]) * ("build" in several) + (
                f" 1/{r['downscale']}") * ("downscale" in several) + f" ({r['flags']})" * ("flags" in several)
    return list(rows.values())


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


def bootstrap(scenes):
    """The 95 % interval of the mean over scenes; scenes has the differences of each one's seeds."""
    draw, means = random.Random(1), []
    for _ in range(DRAWS):
        picked = draw.choices(scenes, k=len(scenes))
        means.append(statistics.fmean(statistics.fmean(draw.choices(seeds, k=len(seeds))) for seeds in picked))
    means.sort()
    return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS)]


def student(values):
    """The 95 % interval of a scene's mean, for three seeds or more."""
    half = (STUDENT[len(values) - 3] if len(values) - 3 < len(STUDENT) else 1.96) * statistics.stdev(
        values) / math.sqrt(len(values))
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
            self.mean = statistics.mean(statistics.mean(d) for d in found.values())
            self.low, self.high = bootstrap([found[s] for s in sorted(found)])

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


def against(rows, before, after, say=print):
    """Prints what changes from BEFORE to AFTER, and returns the reasons why the gate does not pass."""
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
        say(f"| {split} | **mean** | | **{psnr.mean:+.3f}** ({psnr.low:+.3f} to {psnr.high:+.3f}) | " + (
            f"**{100 * falls.mean:+.2f} %** ({100 * falls.low:+.2f} to {100 * falls.high:+.2f}) |" if falls else "|"))
    off = Change([p for of in pairs.values() for p in of], off_path)
    if off:
        say(f"\nOff the path ({OFF_PATH} degrees or more): {off.mean:+.3f} dB ({off.low:+.3f} to {off.high:+.3f}), "
            f"{len(off.scenes)} scenes.")
    no = refusals(pairs, Change(std, difference), Change(std, error), off, second)
    if not lpips:
        say("\nRows without LPIPS: the gate goes by 1 - SSIM in its place.")
    say("\nGate for a default: " + ("no: " + "; ".join(no) if no else "yes") + ".")
    return no


def shown(values, factor=1, unit=""):
    if not values:
        return ""
    text = f"{factor * statistics.mean(values):+.{3 if factor == 1 else 2}f}{unit}"
    if len(values) < 3:
        return text
    low, high = student(values)
    return f"{text} ({factor * low:+.3f} to {factor * high:+.3f})"


def refusals(pairs, psnr, error, off, second):
    """Why the gate does not pass; nothing if it does."""
    if len(psnr.scenes) < 3 or min(len(d) for d in psnr.scenes.values()) < 2:
        return ["it takes three scenes of split std, each with two seeds or more that both recipes have"]
    no = []
    if not psnr.gains(0.05) and not error.gains(0.03):
        no.append(f"neither gains PSNR 0.05 dB nor {second} 3 % with an interval that excludes 0")
    for change, name in (psnr, "PSNR"), (error, second):
        if change.worse():
            no.append(f"{name} gets worse")
    for scene, d in sorted(psnr.scenes.items()):
        if (student(d)[1] if len(d) > 2 else statistics.mean(d)) < -0.2:
            no.append(f"{scene} loses more than 0.2 dB")
    for split, of in sorted(pairs.items()):
        if split.partition(":")[0] in ("stretch", "sparse", "few") and Change(of, difference).worse():
            no.append(f"PSNR of split {split} gets worse")
    if "stretch" not in pairs:
        no.append("there are no rows of split stretch")
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
                    rows.append(dict(scene=scene, split=split, seed=seed, recipe=name, name=name, flags="", downscale=1,
                                     build="b", psnr=psnr, ssim=.9 + up / 500, seconds=1, splats=9, mib=1, views=views))
                    if lpips:
                        rows[-1]["lpips"] = .2 * (1 - gains.get("falls", 0) * (name == "after"))
    return rows


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
        "no stretch": ([r for r in made_up(0.3, 0.05) if r["split"] != "stretch"], "no rows of split stretch"),
        "one seed": (made_up(0.3, 0.05, seeds=1), "it takes"),
        "two scenes": (made_up(0.3, 0.05, scenes=2), "it takes"),
    }
    global DRAWS
    DRAWS, wrong = 400, 0
    for name, (rows, want) in cases.items():
        no = against(rows, "before", "after", say=lambda *_: None)
        if bool(no) != (want is not None) or want and want not in "; ".join(no):
            wrong += 1
            print(f"{name}: want {want or 'a pass'}, got {'; '.join(no) or 'a pass'}")
    print(f"{len(cases) - wrong} passed, {wrong} failed")
    return wrong == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="files of rows (ruler.jsonl)", default=["ruler.jsonl"])
    parser.add_argument("--against", nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--gate", action="store_true", help="exit with 1 if AFTER does not pass")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        sys.exit(not selftest())
    rows = read(options.rows)
    if options.against:
        no = against(rows, *options.against)
        sys.exit(bool(options.gate and no))
    if options.gate:
        parser.error("--gate needs --against")
    if rows:
        table(rows)
        print()
        gaps(rows)
        slopes(rows)


main()

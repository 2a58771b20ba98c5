#!/usr/bin/env bash
# lenses.sh: trains captures on photos as their lenses took them and on resampled ones, and scores the files both ways.
# Prints, for each capture and way, means over the seeds: plain, the file drawn without distortion against photos that
# are freed of theirs, and as taken, the same file through the lens against photos as they are.
#
#     D=FOLDER_OF_CAPTURES CAPTURES="fox kermit" SEEDS="1 2 3" bench/lenses.sh
#
# VKSPLAT is the program (default: vksplat), WORK the folder for runs (build/lenses), ARGS more flags of train. Captures
# of strong lenses: go run ./tools/synthcapture -photos 96 -width 1000 -height 750 -points 20000 -shrink 1 -noise 4
# -lens opencv|rational|fisheye|wide|prism -out D/NAME. Captures of cameras that moved: -shutter 0.04 with or without a
# lens; those of held-out photos stood still, so that plain scores tell what is right.
set -euo pipefail
vksplat=${VKSPLAT:-vksplat} work=${WORK:-build/lenses} seeds=${SEEDS:-1 2 3}
mkdir -p "$work"
for c in $CAPTURES; do
	for s in $seeds; do
		for way in resampled native; do
			m=$work/${c}_${way}_$s flag=
			if [ $way = native ]; then flag=--native-lens; fi
			# shellcheck disable=SC2086
			[ -f "$m/results.json" ] || "$vksplat" train "$D/$c" -m "$m" --eval --seed "$s" --overwrite $flag \
				${ARGS:-} >"$m.log" 2>&1
			"$vksplat" eval "$m" --native-lens >"$m.taken.log" 2>&1
		done
	done
done
python3 - "$work" $CAPTURES <<'P'
import glob, json, statistics, sys
work = sys.argv[1]
print("| capture | way | seeds | plain PSNR | SSIM | as taken PSNR | SSIM | seconds |")
print("|---|---|---|---|---|---|---|---|")
for capture in sys.argv[2:]:
    for way in ("resampled", "native"):
        rows = []
        for run in sorted(glob.glob(f"{work}/{capture}_{way}_*/")):
            scores = json.load(open(run + "results.json"))
            plain = [v for k, v in scores.items() if not k.endswith("_as_taken")][-1]
            taken = [v for k, v in scores.items() if k.endswith("_as_taken")][-1]
            seconds = json.load(open(run + "stats.json"))["loop_seconds"]
            rows.append((plain["PSNR"], plain["SSIM"], taken["PSNR"], taken["SSIM"], seconds))
        if rows:
            p, s, tp, ts, seconds = (statistics.mean(x) for x in zip(*rows))
            print(f"| {capture} | {way} | {len(rows)} | {p:.3f} | {s:.4f} | {tp:.3f} | {ts:.4f} | {seconds:.1f} |")
P

#!/usr/bin/env bash
# curve.sh CAPTURE...: PSNR of the held-out photos against seconds from the command's start, for the presets PRESETS
# (default, 3dgs, mcmc). One run each measures itself AT times (16), the more often the earlier; its measurements
# do not count as time. A run that takes longer than LIMIT seconds (none) of the clock is ended there. Rows of JSON go
# to ROWS (rows.jsonl), for plot.py; a table of the last measurement at 2, 5, 10, 20 and 30 s is printed. VKSPLAT is
# the program (default: vksplat), FLAGS are more flags of train.
set -euo pipefail
vksplat=${VKSPLAT:-vksplat} rows=${ROWS:-rows.jsonl} at=${AT:-16} limit=${LIMIT:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for capture in "$@"; do
	for preset in ${PRESETS:-default 3dgs mcmc}; do
		rm -rf "$work/run"
		# shellcheck disable=SC2086
		steps=$("$vksplat" train "$capture" --preset "$preset" --eval --downscale 1 ${FLAGS:-} --print-config |
			awk '$1 == "iterations" { print $3 }')
		list=$(for i in $(seq 1 "$at"); do echo $(((steps * i * i - 1) / at / at + 1)); done | paste -sd,)
		# shellcheck disable=SC2086
		timeout -s INT "$limit" "$vksplat" train "$capture" -m "$work/run" --preset "$preset" --eval --downscale 1 \
			--eval-at "$list" --checkpoint-every 0 --keep-checkpoints 0 --progress none ${FLAGS:-} >"$work/log" 2>&1 ||
			[[ $? == 124 ]] || {
			cat "$work/log" >&2
			exit 1
		}
		python3 - "$(basename "$capture")" "$preset" "$work/run" >>"$rows" <<'PY'
import json, sys
capture, preset, run = sys.argv[1:]
stats = json.load(open(run + "/stats.json"))
events = map(json.loads, open(run + "/metrics.jsonl"))
print(json.dumps(dict(capture=capture, preset=preset, steps=stats["step"], splats=stats["splats"],
    loop=round(stats["loop_seconds"], 2), ssim=round(stats["ssim"], 4), ended=not stats.get("interrupted"),
    points=[[round(stats["start_seconds"] + e["seconds"], 2), round(e["psnr"], 3)]
            for e in events if e.get("event") == "eval"])))
PY
	done
done
python3 - "$rows" <<'PY'
import json, sys
times = [2, 5, 10, 20, 30]
print("| capture, preset |" + "".join(f" {t} s |" for t in times) + " end |\n|---|" + "---|" * (len(times) + 1))
for row in map(json.loads, open(sys.argv[1])):
    cells = [[p for t, p in row["points"] if t <= limit] for limit in times]
    end = row["points"][-1]
    print(f"| {row['capture']}, {row['preset']} |" + "".join(f" {c[-1]:.2f} |" if c else " |" for c in cells) +
          f" {end[1]:.2f} at {end[0]:.1f} s |")
PY

#!/usr/bin/env bash
# curve.sh CAPTURE [FLAGS...]: PSNR of the held-out photos against seconds from the command's start, for the presets
# PRESETS (default fast): the last measurement at 5, 10, 20, 30 and 60 s. Measurements themselves are not counted (AT of
# them, 40). BIN (bin/vksplat), OUT (build/curve)
set -euo pipefail
bin=${BIN:-bin/vksplat} out=${OUT:-build/curve} n=${AT:-40}
capture=$1
shift
mkdir -p "$out"
for preset in ${PRESETS:-default fast}; do
	run="$out/$(basename "$capture")-$preset"
	rm -rf "$run"
	steps=$("$bin" train "$capture" -m "$run" --preset "$preset" "$@" --print-config |
		awk '$1 == "iterations" { print $3 }')
	at=$(for i in $(seq 1 "$n"); do echo $((steps * i / n)); done | paste -sd,)
	"$bin" train "$capture" -m "$run" --preset "$preset" --eval --eval-at "$at" \
		--checkpoint-every 0 --keep-checkpoints 0 --progress none "$@" >"$run.log" 2>&1
	start=$(awk -F'[:,]' '/"start_seconds"/ { print $2 }' "$run/stats.json")
	grep '"event":"eval"' "$run/metrics.jsonl" |
		sed -E 's/.*"psnr":([0-9.]+).*"seconds":([0-9.]+).*/\2 \1/' |
		awk -v start="$start" -v name="$(basename "$capture"), $preset" '
		{ t = $1 + start; for (k in T) if (t <= T[k]) best[k] = $2; last = $2; end = t }
		BEGIN { split("5 10 20 30 60", T, " ") }
		END {
			printf "| %s |", name
			for (k = 1; k <= 5; k++) printf " %s |", (end <= T[k]) ? last : (best[k] ? best[k] : "-")
			printf " %.2f at %.1f s |\n", last, end
		}'
done

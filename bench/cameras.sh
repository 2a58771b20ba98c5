#!/usr/bin/env bash
# cameras.sh: trains captures with the cameras that they have and with those that calibration makes of them, and prints,
# for each capture and way, means over the seeds of the scores of whole photos as they were taken.
#
#     D=FOLDER_OF_CAPTURES CAPTURES="bonsai_146 fox_pinhole" SEEDS="42 1 2" bench/cameras.sh
#
# VKSPLAT is the program (default: vksplat), WORK the folder for runs (build/cameras), WEIGHTS the network of LPIPS,
# JOBS how many run at a time. WAYS (default: given auto) may have refined, too: given cameras, refined in training. A
# capture whose name ends in _own or _wrong is made of the one without, if it is missing: each photo gets a camera of
# its own (own_lenses.py), or a wrong pose (wrong_poses.py).
set -euo pipefail
vksplat=${VKSPLAT:-vksplat} work=${WORK:-build/cameras} seeds=${SEEDS:-42 1 2} ways=${WAYS:-given auto}
mkdir -p "$work"
for c in $CAPTURES; do
	case $c in
	*_own) [ -e "$D/$c" ] || python3 "$(dirname "$0")/own_lenses.py" "$D/${c%_own}" "$D/$c" ;;
	*_wrong) [ -e "$D/$c" ] || python3 "$(dirname "$0")/wrong_poses.py" "$D/${c%_wrong}" "$D/$c" all ;;
	esac
done
run() { # CAPTURE WAY SEED
	m=$work/$1_$2_$3
	case $2 in refined) set -- "$1" given "$3" --refine-cameras ;; esac
	[ -f "$m/stats.json" ] || "$vksplat" train "$D/$1" -m "$m" --eval --seed "$3" --cameras "$2" "${@:4}" --overwrite \
		>"$m.log" 2>&1
	"$vksplat" eval "$m" --native-lens ${WEIGHTS:+--lpips-weights "$WEIGHTS"} >"$m.taken.log" 2>&1
	rm -rf "$m/checkpoints"
}
export -f run
export vksplat work D
for c in $CAPTURES; do for s in $seeds; do for w in $ways; do echo "$c $w $s"; done; done; done |
	xargs -P "${JOBS:-1}" -L 1 bash -c 'run "$@"' _
python3 - "$work" "$ways" $CAPTURES <<'P'
import glob, json, statistics, sys
print("| capture | way | seeds | PSNR | SSIM | LPIPS |")
print("|---|---|---|---|---|---|")
for capture in sys.argv[3:]:
    for way in sys.argv[2].split():
        rows = []
        for run in sorted(glob.glob(f"{sys.argv[1]}/{capture}_{way}_*/")):
            scores = json.load(open(run + "results.json"))
            rows.append([v for k, v in scores.items() if k.endswith("_as_taken")][-1])
        mean = lambda key: statistics.mean(r.get(key, float("nan")) for r in rows)
        spread = statistics.stdev([r["PSNR"] for r in rows]) if len(rows) > 1 else 0
        print(f"| {capture} | {way} | {len(rows)} | {mean('PSNR'):.2f} ± {spread:.2f} | {mean('SSIM'):.4f} | "
              f"{mean('LPIPS'):.4f} |")
P

#!/usr/bin/env bash
# screen.sh LIST CAPTURE...: trains every CAPTURE by every line of the file LIST, has each file judged alone in an empty
# folder, and prints a table of the scores of held-out photos. A line is NAME SPLIT [FLAGS...] of train. SPLIT says what
# is held out, in the order of file names:
#   std      every 8th photo, as train does                 dev      every 8th, beginning with the 5th
#   sparse   all but every 4th photo                         stretch  the third quarter of the photos
#   few:K    all but K photos, at even distances
# Recipes are chosen on dev, sparse and stretch, and looked at on std at the end. VKSPLAT is the program (default:
# vksplat), JUDGE the one that judges (default: VKSPLAT), DEVICE the device (default: 0), JOBS the runs at a time
# (default: 3; with 1, seconds mean something), ROWS the file that gets a row of JSON for each run (default:
# rows.jsonl).
set -euo pipefail
list=$1
shift
export VKSPLAT=${VKSPLAT:-vksplat}
export JUDGE=${JUDGE:-$VKSPLAT} DEVICE=${DEVICE:-0} ROWS=${ROWS:-rows.jsonl}

# one NAME SPLIT CAPTURE FLAGS: one run and its row.
one() {
	local name=$1 split=$2 capture=$3 flags=$4 work held
	work=$(mktemp -d)
	case $split in
	std) held=NR%8==1 ;;
	dev) held=NR%8==5 ;;
	sparse) held=NR%4!=1 ;;
	stretch) held='NR>n/2&&NR<=3*n/4' ;;
	few:*) held="int((NR-1)*${split#few:}/n)==int((NR-2)*${split#few:}/n)&&NR>1" ;;
	*) echo "screen.sh: no split $split" >&2 && return 1 ;;
	esac
	(cd "$capture/images" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$work/photos"
	awk -v n="$(wc -l <"$work/photos")" "$held" "$work/photos" >"$work/held"
	# shellcheck disable=SC2086
	if "$VKSPLAT" train "$capture" -m "$work/out" --eval --test-list "$work/held" --device "$DEVICE" \
		--downscale 1 --progress none $flags >"$work/log" 2>&1 && mkdir "$work/alone" &&
		cp "$work"/out/point_cloud/iteration_*/point_cloud.ply "$work/alone/model.ply" &&
		(cd "$work/alone" && for half in test train; do
			"$JUDGE" eval model.ply --capture "$capture" --test-every 2 --split $half --device "$DEVICE" \
				--downscale 1 -o $half >>"$work/log" 2>&1 || exit 1
		done); then
		python3 - "$name" "$split" "$capture" "$work" "$flags" >>"$ROWS" <<'PY'
import json, os, statistics, sys
name, split, capture, work, flags = sys.argv[1:]
views = {"PSNR": {}, "SSIM": {}, "cc_psnr": {}}
for half in "test", "train":
    found = json.load(open(work + f"/alone/{half}/per_view.json"))
    for score in views:
        views[score].update(found[max(found)][score])
stats, held = json.load(open(work + "/out/stats.json")), open(work + "/held").read().split()
def mean(score):
    return statistics.mean(views[score][photo] for photo in held)
print(json.dumps(dict(name=name, split=split, capture=os.path.basename(capture), flags=flags,
    psnr=round(mean("PSNR"), 3), cc=round(mean("cc_psnr"), 3), ssim=round(mean("SSIM"), 4),
    low=round(min(views["PSNR"][photo] for photo in held), 2),
    seconds=round(stats["loop_seconds"], 1), splats=stats["splats"])))
PY
	else
		echo "screen.sh: $name $split $capture failed:" >&2
		tail -3 "$work/log" >&2
	fi
	rm -rf "$work"
}
export -f one

while read -r name split flags; do
	[[ -z $name || $name = '#'* ]] && continue
	for capture in "$@"; do printf '%s\0%s\0%s\0%s\0' "$name" "$split" "$capture" "$flags"; done
done <"$list" | xargs -0 -n 4 -P "${JOBS:-3}" bash -c 'one "$@"' one

python3 - "$ROWS" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
columns = sorted({(r["capture"], r["split"]) for r in rows})
at = {(r["name"], r["capture"], r["split"]): r for r in rows}
print("| recipe |" + "".join(f" {c}, {s} |" for c, s in columns))
print("|---|" + "---|" * len(columns))
for name in sorted({r["name"] for r in rows}):
    cells = [at.get((name, c, s)) for c, s in columns]
    print(f"| {name} |" + "".join(f" {r['psnr']:.2f} {r['ssim']:.4f}, {r['seconds']} s, {r['splats'] // 1000}k |"
                                  if r else " |" for r in cells))
PY

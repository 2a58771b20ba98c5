#!/usr/bin/env bash
# screen.sh LIST CAPTURE...: trains every CAPTURE by every line of the file LIST, and prints a table of the scores of
# held-out photos. A line is NAME SPLIT [FLAGS...] of train. SPLIT says what is held out, in the order of file names:
#   std      every 8th photo, as train does                 dev      every 8th, beginning with the 5th
#   sparse   all but every 4th photo                         stretch  the third quarter of the photos
#   few:K    all but K photos, at even distances
# Recipes are chosen on dev, sparse and stretch, and looked at on std at the end. VKSPLAT is the program (default:
# vksplat), DEVICE the device (default: 0), JOBS the runs at a time (default: 3; with 1, seconds mean something), ROWS
# the file that gets a row of JSON for each run (default: rows.jsonl).
set -euo pipefail
list=$1
shift
export VKSPLAT=${VKSPLAT:-vksplat} DEVICE=${DEVICE:-0} ROWS=${ROWS:-rows.jsonl}

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
		--downscale 1 --progress none $flags >"$work/log" 2>&1; then
		python3 - "$name" "$split" "$capture" "$work/out" >>"$ROWS" <<'PY'
import json, os, statistics, sys
name, split, capture, out = sys.argv[1:]
views = json.load(open(out + "/per_view.json"))
views = views[max(views, key=lambda k: int(k.split("_")[-1]))]
stats, psnr = json.load(open(out + "/stats.json")), views["PSNR"].values()
print(json.dumps(dict(name=name, split=split, capture=os.path.basename(capture), psnr=round(statistics.mean(psnr), 3),
    ssim=round(statistics.mean(views["SSIM"].values()), 4), low=round(min(psnr), 2),
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

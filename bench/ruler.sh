#!/usr/bin/env bash
# ruler.sh LIST RECIPES SEEDS [--some]: trains every scene of LIST (choosing.txt, judging.txt) by every recipe with
# every seed, and has vksplat eval judge the exported PLY alone, in an empty folder, with the scene's capture. RECIPES
# and SEEDS are separated by commas; a recipe is a name in recipes.txt or a preset. Each run appends a row of JSON to
# ROWS; runs that have one are skipped. At the end ruler.py prints the table.
#
#     DATA=captures bench/ruler.sh bench/choosing.txt default,nohuber 42,1 && bench/ruler.py --against default nohuber
#
# ruler.sh --parts LIST: prints PART, a tab, and a file below DATA, for each file of the scenes. A part has at most
# PART_MIB (35): copy part after part to DATA on the machine that measures, or one at a time with --some.
#
# SPLITS (std,stretch,even) are the photos that are held out, in the order of names:
#   std      every 8th, as train --eval does; where the capture names photos of its own these, and no other split
#   stretch  the third quarter                       even     as many as stretch, at even distances
#   dev      every 8th, beginning with the 5th       sparse   all but every 4th
#   few:K    all but K, at even distances
#
# Where training changed cameras, those that stand beside the model judge it.
#
# ruler.sh --held-out SPLIT CAPTURE [FLAGS of train]: prints the names of these photos, as --test-list reads them.
#
# A scene that is missing or incomplete in DATA is reported, and an error unless --some is given. A failed run prints
# the end of its log; the others go on, and the exit code is 1.
#
# DATA        the folder of the scenes (.)                 ROWS         the file of rows (ruler.jsonl)
# VKSPLAT     the program (vksplat)                        JUDGE        the program that evaluates (VKSPLAT)
# DOWNSCALE   of the photos, in train and eval (1)         ARGS         more flags of train, for every recipe
# RECIPES     the file of recipes (recipes.txt here)       LPIPS        file for eval --lpips-weights
# DEVICE      index of the first device (0)                GPUS         n devices take a run each at a time (1)
# TAKEN       1: scores are of whole photos as they were taken, drawn through their lenses, as train's are
# KEEP        a folder that gets the runs, as SCENE-SPLIT-RECIPE-SEED (none is kept); none is replaced
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export DATA=${DATA:-.} ROWS=${ROWS:-ruler.jsonl} DOWNSCALE=${DOWNSCALE:-1} DEVICE=${DEVICE:-0}
export LPIPS=${LPIPS:-} VKSPLAT=${VKSPLAT:-vksplat} KEEP=${KEEP:-} TAKEN=${TAKEN:-}
recipes=${RECIPES:-$here/recipes.txt}
usage() { sed -n '2,5s/^# //p' "$0" >&2 && exit 2; }

# lines FILE: its lines without comments.
lines() { grep -Ev '^[[:space:]]*(#|$)' "$1"; }

# parts LIST: which part each file travels in. Scenes stay whole where they fit into one.
parts() {
	cd "$DATA"
	lines "$1" | while read -r scene flags; do
		[[ -d $scene ]] || { echo "ruler.sh: $scene is not in $DATA" >&2 && continue; }
		find -L "$scene" -type f -printf '%s\t%p\n' | LC_ALL=C sort -k 2 |
			awk -F '\t' -v OFS='\t' -v scene="$scene" -v flags="$flags" \
				'$2 !~ /\/images_[0-9]+\// || index(flags, "images_") { print scene, $0 }'
	done | awk -F '\t' -v OFS='\t' -v limit=$((${PART_MIB:-35} * 1048576)) '
		{ scene[NR] = $1; size[NR] = $2; path[NR] = $3; total[$1] += $2 }
		END {
			for (i = 1; i <= NR; i++) {
				whole = total[scene[i]] <= limit
				if (i == 1 || whole && scene[i] != scene[i - 1] && used + total[scene[i]] > limit ||
					!whole && used + size[i] > limit) {
					part++
					used = 0
				}
				used += size[i]
				print part, path[i]
			}
		}'
}

check_split() {
	[[ $1 =~ ^(std|stretch|even|dev|sparse|few:[1-9][0-9]*)$ ]] || { echo "ruler.sh: no split $1" >&2 && exit 2; }
}

# held_out SPLIT CAPTURE FLAGS: the names of the photos that a split holds out. A panorama is six cameras, PHOTO/FACE.
held_out() {
	local names
	# shellcheck disable=SC2086
	names=$("$VKSPLAT" inspect "$2" --quick --json $3 |
		python3 -c 'import json, os, sys
for c in json.load(sys.stdin)["cameras"]:
    print(os.path.dirname(c["name"]) if c["lens"] == "EQUIRECTANGULAR" else c["name"])' | LC_ALL=C sort -u)
	awk -v n="$(wc -l <<<"$names")" -v split_="${1%:*}" -v k="${1#*:}" '
		# spread is true for k of n photos, at even distances.
		function spread(k) { return int((NR * k + int(n / 2)) / n) > int(((NR - 1) * k + int(n / 2)) / n) }
		split_ == "std" && NR % 8 == 1 || split_ == "stretch" && NR > int(n / 2) && NR <= int(3 * n / 4) ||
		split_ == "even" && spread(int(3 * n / 4) - int(n / 2)) ||
		split_ == "dev" && NR % 8 == 5 || split_ == "sparse" && NR % 4 != 1 ||
		split_ == "few" && !spread(k)' <<<"$names"
}

# shellcheck disable=SC2329 # xargs calls it
# one SCENE CAPTURE_FLAGS SPLIT RECIPE FLAGS SEED BUILD: one run and its row. SLOT is the number of the device.
one() {
	local scene=$1 view=$2 split=$3 recipe=$4 flags=$5 seed=$6 build=$7 capture held=() weights=() device kept judged
	capture=$(realpath "$DATA/$scene") device=$((DEVICE + SLOT))
	kept=$KEEP/$scene-$split-$recipe-$seed
	if [[ $KEEP && -e $kept ]]; then
		echo "ruler.sh: $kept is there from an earlier run: move it, or set another KEEP" >&2
		return 1
	fi
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	if [[ $split != std ]]; then
		held_out "$split" "$capture" "$view" >"$work/held"
		held=(--test-list "$work/held")
	fi
	[[ -z $LPIPS ]] || weights=(--lpips-weights "$(realpath "$LPIPS")")
	mkdir "$work/alone"
	judged=$view${TAKEN:+ --native-lens}
	# shellcheck disable=SC2086,SC2046
	if "$VKSPLAT" train "$capture" -m "$work/out" --eval "${held[@]}" --device "$device" --downscale "$DOWNSCALE" \
		--strict --checkpoint-every 0 --progress none $view $flags --seed "$seed" >"$work/log" 2>&1 &&
		cp "$work"/out/point_cloud/iteration_*/point_cloud.ply "$work/alone/model.ply" &&
		if [[ -d $work/out/sparse ]]; then cp -r "$work/out/sparse" "$work/alone"; fi &&
		(cd "$work/alone" && "$JUDGE" eval model.ply --capture "$capture" "${held[@]}" --device "$device" \
			--downscale "$DOWNSCALE" "${weights[@]}" $judged $([[ ! -d sparse ]] || echo --cameras sparse/0) \
			-o scores) >>"$work/log" 2>&1 &&
		python3 - "$work" "$ROWS" "$scene" "$judged" "${@:3}" >>"$work/log" 2>&1 <<'PY'; then
import json, os, statistics, sys
work, rows, scene, view, split, recipe, flags, seed, build = sys.argv[1:]
def scores(path):
    of = json.load(open(path))  # ours_7000, ours_30000_as_taken
    return of[max(of, key=lambda method: int(method.split("_")[1]))]
file, printed = scores(work + "/alone/scores/per_view.json"), scores(work + "/out/per_view.json")
stats = json.load(open(work + "/out/stats.json"))
of = {k: file[k] for k in ("PSNR", "SSIM", "LPIPS", "cc_psnr", "nearest_degrees", "nearest_distance") if k in file}
views = {name: {k.lower(): v[name] for k, v in of.items() if v.get(name) is not None} for name in sorted(of["PSNR"])}
row = dict(scene=scene, split=split, recipe=recipe, seed=int(seed), flags=flags, capture_flags=view,
           downscale=int(os.environ["DOWNSCALE"]), build=build, device=stats["device"],
           seconds=round(stats["loop_seconds"], 3), splats=stats["splats"], train_photos=stats["train_images"],
           mib=round(os.path.getsize(work + "/alone/model.ply") / 2**20, 2),
           peak_gib=round(stats["peak_device_bytes"] / 2**30, 3))
row.update({k.lower(): statistics.mean(v.values()) for k, v in of.items() if not k.startswith("nearest")})
# what the file does not hold and train alone measures
row.update({k: statistics.mean(printed[k].values()) for k in ("lens_psnr", "aligned_psnr") if k in printed})
size = lambda of: of.get("drawn", {}).get("photos")
if size(file) == size(printed):  # the largest difference of a view's PSNR from train's
    row["worst_difference"] = max(abs(printed["PSNR"][k] - v) for k, v in file["PSNR"].items())
row["views"] = views
line = json.dumps(row).encode() + b"\n"
with open(rows, "a+b", buffering=0) as f:  # one write: rows of several devices do not mix
    if f.seek(0, 2) and (f.seek(-1, 2), f.read(1))[1] != b"\n":  # a row that was cut short stays alone
        line = b"\n" + line
    f.write(line)
PY
		[[ -z $KEEP ]] || mv "$work/out" "$kept"
		echo "$scene $split $recipe $seed: done"
	else
		echo "ruler.sh: $scene $split $recipe $seed failed:" >&2
		tail -5 "$work/log" >&2
		return 1
	fi
}
export -f held_out one

args=() some=
for arg in "$@"; do
	case $arg in
	--some) some=1 ;;
	--parts)
		[[ $# == 2 ]] || usage
		parts "$(realpath "$2")"
		exit
		;;
	--held-out)
		[[ $# -ge 3 ]] || usage
		check_split "$2"
		"$VKSPLAT" inspect "$3" --quick --json "${@:4}" >/dev/null
		held_out "$2" "$3" "${*:4}"
		exit
		;;
	-*) usage ;;
	*) args+=("$arg") ;;
	esac
done
[[ ${#args[@]} == 3 ]] || usage
if [[ $KEEP ]]; then
	mkdir -p "$KEEP" && KEEP=$(realpath "$KEEP")
fi
list=${args[0]}
IFS=, read -ra names <<<"${args[1]}"
IFS=, read -ra seeds <<<"${args[2]}"
IFS=, read -ra splits <<<"${SPLITS:-std,stretch,even}"

program() { realpath "$(command -v "$1" || { echo "ruler.sh: no program $1" >&2 && exit 1; })"; }
VKSPLAT=$(program "$VKSPLAT")
JUDGE=$(program "${JUDGE:-$VKSPLAT}")
export VKSPLAT JUDGE

# Two builds without a version differ by their bytes.
build=$("$VKSPLAT" version | awk 'NR == 1 { print $2 }')
[[ $build != devel ]] || build=devel-$(sha256sum <"$VKSPLAT" | cut -c1-12)
declare -A flags
for name in "${names[@]}"; do
	flags[$name]=$(lines "$recipes" | awk -v name="$name" '$1 == name { $1 = ""; print substr($0, 2); found = 1 }
		END { exit !found }') || flags[$name]="--preset $name"
	flags[$name]+=${ARGS:+ $ARGS}
	# shellcheck disable=SC2086
	"$VKSPLAT" train --print-config ${flags[$name]} >/dev/null
done
for split in "${splits[@]}"; do check_split "$split"; done
[[ ${GPUS:-1} =~ ^[1-9][0-9]*$ ]] || { echo "ruler.sh: GPUS=$GPUS: want 1 or more" >&2 && exit 2; }
[[ -z $LPIPS || -f $LPIPS ]] || { echo "ruler.sh: no file $LPIPS" >&2 && exit 1; }
touch "$ROWS"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
jobs=$scratch/jobs
: >"$jobs"
rc=0
while read -r scene view; do
	# shellcheck disable=SC2086
	if ! "$VKSPLAT" inspect "$DATA/$scene" --quick --strict --json $view >"$scratch/scene" 2>"$scratch/why"; then
		echo "ruler.sh: $scene is missing:" >&2
		cat "$scratch/why" >&2
		[[ $some ]] || rc=1
		continue
	fi
	for split in "${splits[@]}"; do
		[[ $split == std ]] || ! grep -q '"held_out": true' "$scratch/scene" || continue
		for name in "${names[@]}"; do
			for seed in "${seeds[@]}"; do
				printf '%s\0' "$scene" "$view" "$split" "$name" "${flags[$name]}" "$seed" "$build" >>"$jobs"
			done
		done
	done
done < <(lines "$list")
if [[ $rc != 0 ]]; then
	echo "ruler.sh: nothing was measured; --some measures without them" >&2
	exit 1
fi
set -m # the runs get a process group, which ends with this script
python3 - "$ROWS" "$jobs" <<'PY' |
import json, os, sys
rows, jobs = sys.argv[1:]
there = set()
for line in open(rows) if os.path.exists(rows) else []:
    try:
        r = json.loads(line)
    except ValueError:  # a row that was cut short
        continue
    if "lpips" in r or not os.environ["LPIPS"]:
        there.add((r["scene"], r["capture_flags"], r["split"], r["recipe"], r["flags"], str(r["seed"]), r["build"],
                   r["downscale"]))
cells = open(jobs).read().split("\0")[:-1]
judged = " --native-lens" if os.environ["TAKEN"] else ""
for job in zip(*[iter(cells)] * 7):
    if (job[0], job[1] + judged, *job[2:], int(os.environ["DOWNSCALE"])) not in there:
        print(*job, sep="\0", end="\0")
PY
	xargs -0 -r -n 7 -P "${GPUS:-1}" --process-slot-var=SLOT bash -c 'set -euo pipefail; one "$@"' one &
runs=$(jobs -p)
trap 'kill -TERM -- -"$runs"; exit 143' TERM INT
wait %1 || rc=1
set +m
python3 "$here/ruler.py" "$ROWS"
exit "$rc"

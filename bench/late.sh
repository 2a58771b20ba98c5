#!/usr/bin/env bash
# late.sh COMMAND...: as vksplat, but train ends with other settings: the last fifth of its steps has LATE
# (--ssim-lambda 0.4). As the VKSPLAT of a ruler it measures what a setting is worth near the end:
#
#     echo late >late.txt
#     VKSPLAT=bench/late.sh JUDGE=vksplat RECIPES=late.txt bench/ruler.sh bench/choosing.txt late 42,1
#
# loop_seconds of stats.json are those of the last fifth. PROGRAM is the program (vksplat).
set -euo pipefail
program=${PROGRAM:-vksplat}
[[ ${1-} == train && " $* " != *" --print-config "* ]] || exec "$program" "$@"
[[ ${3-} == -m && ${4-} ]] || { echo "late.sh: write train SCENE -m OUT, then the flags" >&2 && exit 2; }
scene=$2 out=$4
flags=("${@:5}")
steps=$("$program" train "$scene" --print-config "${flags[@]}" | sed -n 's/^iterations = //p')
at=$((steps * 4 / 5))
"$program" train "$scene" -m "$out" "${flags[@]}" --checkpoint-every $at --keep-checkpoints 2
# shellcheck disable=SC2086
"$program" train "$scene" -m "$out" "${flags[@]}" --resume="$out/checkpoints/step_$at.safetensors" --overwrite \
	--accept-changes ${LATE:---ssim-lambda 0.4}

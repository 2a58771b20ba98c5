#!/usr/bin/env bash
# scores.sh NAME CAPTURE [FLAGS...]: trains CAPTURE with --eval and FLAGS, copies the PLY alone to an empty folder, and
# has vksplat eval judge it there with the capture. Prints a line of JSON: seconds of the loop, splats, the mean PSNR
# that train printed and that of the file, also after colour correction (cc), with --vignetting that
# of train through the lens, the largest difference of a view, the median, views more than 5 dB below it.
# VKSPLAT is the program (default: vksplat), DEVICE the device (default: 0).
set -euo pipefail
name=$1 capture=$(realpath "$2")
shift 2
vksplat=${VKSPLAT:-vksplat} device=${DEVICE:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/alone"
"$vksplat" train "$capture" -m "$work/out" --eval --device "$device" --downscale 1 \
	--progress none "$@" >"$work/log" 2>&1 || {
	cat "$work/log" >&2
	exit 1
}
cp "$work"/out/point_cloud/iteration_*/point_cloud.ply "$work/alone/model.ply"
(cd "$work/alone" &&
	"$vksplat" eval model.ply --capture "$capture" --device "$device" --downscale 1 -o scores >log 2>&1)
python3 - "$name" "$work" <<'EOF'
import json, statistics, sys
name, work = sys.argv[1:]
def views(path):
    scores = json.load(open(path))
    return scores[max(scores)]
printed, file = views(work + "/out/per_view.json"), views(work + "/alone/scores/per_view.json")
stats = json.load(open(work + "/out/stats.json"))
psnr = file["PSNR"]
median = statistics.median(psnr.values())
print(json.dumps(dict(
    name=name, seconds=round(stats["loop_seconds"], 2), splats=stats["splats"],
    printed=round(statistics.mean(printed["PSNR"].values()), 3),
    file=round(statistics.mean(psnr.values()), 3), cc=round(statistics.mean(file["cc_psnr"].values()), 3),
    ssim=round(statistics.mean(file["SSIM"].values()), 4), median=round(median, 2),
    **({"lens": round(statistics.mean(printed["lens_psnr"].values()), 3)} if "lens_psnr" in printed else {}),
    worst_difference=max(abs(printed["PSNR"][k] - psnr[k]) for k in psnr),
    peak_gib=round(stats["peak_device_bytes"] / 2**30, 2),
    low={k: round(v, 2) for k, v in psnr.items() if v < median - 5}, device=stats["device"])))
EOF

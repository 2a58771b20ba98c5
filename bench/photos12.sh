#!/usr/bin/env bash
# 300 photos of 12 megapixels with --max-ram 1GB, and without: speeds, peaks, equal bytes. From the repository's folder,
# with bin/vksplat built.
# WORK (build/photos12), STEPS (1200), EXTRA (more flags for both, as "--photo-vram 200MB"), PHOTOS, W, H, SYNTH (the
# built tools/synthcapture)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=${BIN:-$PWD/bin/vksplat}
work=${WORK:-build/photos12}
steps=${STEPS:-1200}
mkdir -p "$work"
test -f "$work/cap/sparse/0/points3D.bin" ||
	${SYNTH:-go run ./tools/synthcapture} -photos "${PHOTOS:-300}" -width "${W:-4000}" -height "${H:-3000}" \
		-points 100000 -out "$work/cap"
cd "$work"
for run in unlimited limited; do
	limit=
	if [ $run = limited ]; then limit="--max-ram 1GB"; fi
	rm -rf out_$run
	# shellcheck disable=SC2086
	"$here/sample.sh" $run "$bin" train cap -m out_$run --preset 3dgs --iterations "$steps" --downscale 1 \
		--checkpoint-every 0 --progress none ${EXTRA:-} $limit | tail -1
	grep -E '^  "(loop_seconds|peak_rss_bytes|peak_device_bytes|splats)"' out_$run/stats.json
done
cmp out_{un,}limited/point_cloud/iteration_"$steps"/point_cloud.ply && echo "same bytes"

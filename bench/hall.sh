#!/usr/bin/env bash
# 600 photos and 4 million points under --max-vram 6GB --max-ram 2GB, evaluated, without and with --init-grid. From the
# repository's folder, with bin/vksplat built. WORK (build/hall), STEPS (2000), GRID (0.02, in the capture's units: the
# scene is 14 wide), EXTRA (more flags), PHOTOS, POINTS, SYNTH
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=${BIN:-$PWD/bin/vksplat}
work=${WORK:-build/hall}
steps=${STEPS:-2000}
mkdir -p "$work"
test -f "$work/cap/sparse/0/points3D.bin" ||
	${SYNTH:-go run ./tools/synthcapture} -photos "${PHOTOS:-600}" -width 1600 -height 1200 \
		-points "${POINTS:-4000000}" -out "$work/cap"
cd "$work"
for run in ${RUNS:-all grid}; do
	grid=
	if [ $run = grid ]; then grid="--init-grid ${GRID:-0.02}"; fi
	rm -rf out_$run
	# shellcheck disable=SC2086
	"$here/sample.sh" $run "$bin" train cap -m out_$run --preset 3dgs --max-vram 6GB --max-ram 2GB \
		--iterations "$steps" --eval --progress plain ${EXTRA:-} $grid | tail -4
	grep -E '^  "(loop_seconds|process_seconds|peak_rss_bytes|peak_device_bytes|splats|test_images|psnr)"' \
		out_$run/stats.json
done

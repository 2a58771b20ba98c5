#!/usr/bin/env bash
# A flight over a city of 50 million splats, drawn level by level within 8 GB of device memory: trains a model for some
# seconds, makes the city of its copies, and draws the flight without and with writing pictures. Prints pictures a
# second, splats drawn, the peaks of memory and when the first picture was there. From the repository's folder:
#
#     go build -o bin/city ./tools/city; SCENE=my_scene bench/flight.sh
#
# SCENE, a capture, or MODEL, a model whose up is -y, in its place; BIN (bin/vksplat), CITY (bin/city), WORK
# (build/flight), SPLATS (50000000), SECONDS_OF_TRAINING (5), VRAM (8GB), SIZE (1920x1080), FRAMES (0-299), FORMATS
# (none jpg), EXTRA (more flags of render).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$(realpath "${BIN:-bin/vksplat}")
city=$(realpath "${CITY:-bin/city}")
work=${WORK:-build/flight}
mkdir -p "$work"
model=${MODEL:-$work/one.ply}
if [ ! -e "$model" ]; then
	"$bin" train "$SCENE" -m "$work/one" --time-limit "${SECONDS_OF_TRAINING:-5}s" --progress plain | tail -3
	"$bin" convert "$work/one" "$model" --orient up
fi
if [ ! -e "$work/city/lod-meta.json" ]; then
	began=$(date +%s)
	"$city" -splats "${SPLATS:-50000000}" -out "$work/city" "$model"
	echo "city: $(($(date +%s) - began)) s, $(du -sm "$work/city" | cut -f1) MB on disk"
fi
cd "$work"
"$bin" info city/lod-meta.json
for format in ${FORMATS:-none jpg}; do
	rm -rf "frames_$format"
	to="-o frames_$format"
	if [ "$format" = none ]; then to=; fi
	# shellcheck disable=SC2086
	"$here/sample.sh" "flight_$format" "$bin" render city/lod-meta.json --trajectory city/flight.json \
		--size "${SIZE:-1920x1080}" --frames "${FRAMES:-0-299}" --max-vram "${VRAM:-8GB}" --format "$format" $to \
		${EXTRA:-}
done

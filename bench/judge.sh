#!/usr/bin/env bash
# judge.sh MODEL CAPTURE [VIEW] [DOWNSCALE]: PSNR of the held-out views of a splat file (PLY, SOG) by vksplat eval and
# by a third-party renderer, that of @playcanvas/splat-transform, which npm installs: as it is released, and without
# its edge compensation. VIEW is a photo's name, "" for all. Then, of VIEW or else the first, PSNR of what vksplat
# view shows in a browser against vksplat render, at the size of the photos of training, twice and four times that.
# Wanted: Go, node, npm, and a Vulkan driver that is enough for WebGPU (a GPU's, Mesa 23.1 or newer, or Chromium's
# SwiftShader); for the browser, Chromium and the Python package playwright.
set -euo pipefail
model=$(realpath "$1") capture=$(realpath "$2")
cd "$(dirname "$0")/.."
go test -count=1 -timeout 60m -v ./cmd/vksplat -run 'TestForeignRenderer|TestPlayDrawn' -args \
	-judge-model="$model" -judge-capture="$capture" -judge-view="${3:-}" -judge-downscale="${4:-1}" |
	sed -n 's/^    [a-z]*_test.go:[0-9]*: //p; /^\(ok\|FAIL\)/p; s/^ *\(--- SKIP.*\)/\1/p'

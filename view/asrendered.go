package view

import (
	"bytes"
	"fmt"
)

// viewerEdit replaces a text of the viewer's program, which stands there a known number of times.
type viewerEdit struct {
	was, is string
	times   int
}

// viewerEdits make the viewer draw what vksplat render draws; each is for WebGL (GLSL) and for WebGPU (WGSL). The
// viewer's shaders measure in half pixels, focal too, so that its low-pass filter of 0.3 is a quarter of what splats
// were trained with, and leaves holes between small ones. The other edits let large splats be as large as they are,
// bound where the projection is linearised, so that splats beside the picture reach into it as in training, and take
// Gaussians as they are, without a step at their edge. Focal is scene.TrainedFocal's.
func viewerEdits(focal float64) []viewerEdit {
	perFocal := 0.0
	if focal > 0 {
		perFocal = 0.3 / (focal * focal)
	}
	filter := fmt.Sprintf(" + max(1.2, %e * focal * focal)", perFocal)
	const low = " + 0.3"
	return []viewerEdit{
		{"cov[0][0]" + low, "cov[0][0]" + filter, 4},
		{"cov[1][1]" + low, "cov[1][1]" + filter, 4},
		{"aRaw" + low, "aRaw" + filter, 1},
		{"cRaw" + low, "cRaw" + filter, 1},
		{"vmin = min(1024.0, ", "vmin = max(16384.0, ", 5}, // twice as much is still a half float
		{"vec2 J2 = -J1 / vp.z * vp.xy;", "vec2 edge = 1.3 / focal * viewport_size.xy; " +
			"vec2 J2 = -J1 * clamp(vp.xy / vp.z, -edge, edge);", 1},
		{"let J2 = -J1 / vp.z * vp.xy;", "let edge = 1.3 / focal * uniform.viewport_size.xy; " +
			"let J2 = -J1 * clamp(vp.xy / vp.z, -edge, edge);", 1},
		{"let J2 = -J1 / vz * v.xy;", "let edge = 1.3 / focal * vec2f(viewportWidth, viewportHeight); " +
			"let J2 = -J1 * clamp(v.xy / vz, -edge, edge);", 1},
		{"return (exp(x * -4.0) - EXP4) * INV_EXP4;", "return exp(x * -4.0);", 2},
		{"return (exp(x * half(-4.0)) - EXP4) * INV_EXP4;", "return exp(x * half(-4.0));", 1},
	}
}

// viewerScript is the embedded viewer, edited for a model that was trained at a focal length; 0: not known.
func viewerScript(focal float64) []byte {
	script := mustUnpacked("supersplat/index.js.gz")
	for _, e := range viewerEdits(focal) {
		script = bytes.ReplaceAll(script, []byte(e.was), []byte(e.is))
	}
	return script
}

package live

import (
	"math"
	"strings"
	"testing"

	"vksplat/internal/run/train"
	"vksplat/pipeline"
)

func TestViewerFlags(t *testing.T) {
	for address, want := range map[string]string{
		"x": "no port", "70000": "no port", "-1": "no port", "10.0.0.1:80": "not a loopback address", "0": "",
		"127.0.0.1:8080": "", "[::1]:8080": "", "localhost:80": "", ":80": "",
	} {
		o := train.ViewerOptions{Address: address}
		if _, err := resolve(&o); err == nil != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	o := train.ViewerOptions{Address: "0"}
	o.Server.CertFile = "x"
	if _, err := resolve(&o); err == nil {
		t.Error("a certificate without a key passes")
	}
}

func TestViewerHistory(t *testing.T) {
	var h history
	for step := 1; step <= 10000; step++ {
		h.add(pipeline.Progress{Step: step, Loss: float32(step), MSE: 0.01, Splats: step})
	}
	list := h.moments()
	if len(list) < mostMoments/2 || len(list) >= mostMoments {
		t.Errorf("%d moments", len(list))
	}
	last := 0
	for _, m := range list {
		if mean := float64(last+1+m.Step) / 2; math.Abs(m.Loss-mean) > 1e-9 || math.Abs(m.PSNR-20) > 1e-4 {
			t.Fatalf("steps %d to %d: %+v, want %v", last+1, m.Step, m, mean)
		}
		last = m.Step
	}
}

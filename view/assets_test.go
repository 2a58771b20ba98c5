package view

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestEmbedded compares the embedded files with the hashes that tools/supersplat recorded when it had checked where
// they come from.
func TestEmbedded(t *testing.T) {
	sums := new(bytes.Buffer)
	entries := must.Get(assetFiles.ReadDir("supersplat"))(t)
	for _, e := range entries {
		path := "supersplat/" + e.Name()
		if e.Name() == "SHA256SUMS" || e.Name() == "VERSION" {
			continue
		}
		data := mustAsset(path)
		if strings.HasSuffix(path, ".gz") {
			data = mustUnpacked(path)
		}
		fmt.Fprintf(sums, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	if want := string(mustAsset("supersplat/SHA256SUMS")); sums.String() != want {
		t.Errorf("the files are\n%swanted are\n%sbring them anew: go run ./tools/supersplat", sums, want)
	}
	if !strings.Contains(string(mustAsset("supersplat/LICENSE")), "Permission is hereby granted, free of charge") {
		t.Error("the licence is not there")
	}
}

// TestPolicyKnowsHandlers wants the policy to allow the event handlers in the viewer's markup, and no other text.
func TestPolicyKnowsHandlers(t *testing.T) {
	handlers := map[string]bool{}
	for _, m := range regexp.MustCompile(`\son[a-z]+=\\"([^"\\]*)\\"`).FindAllSubmatch(viewerScript(0), -1) {
		handlers[string(m[1])] = true
	}
	if len(handlers) != 1 || !handlers["event.stopPropagation()"] {
		t.Fatalf("event handlers in the viewer's markup: %v", handlers)
	}
	for text := range handlers {
		sum := sha256.Sum256([]byte(text))
		if want := "'unsafe-hashes' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; handlerHash != want {
			t.Errorf("the policy allows %s, the viewer has %s", handlerHash, want)
		}
	}
}

// TestViewerHosts lists the machines that the viewer's text names, so that a new one is noticed: links for the user,
// namespaces and comments, and one place that models of VR controllers come from, which the policy keeps out.
func TestViewerHosts(t *testing.T) {
	var hosts []string
	for _, m := range regexp.MustCompile(`(?:https?|wss?)://([a-zA-Z0-9.-]+)`).FindAllSubmatch(append(viewerScript(0),
		viewerStyle()...), -1) {
		hosts = append(hosts, string(m[1]))
	}
	slices.Sort(hosts)
	want := []string{"cdn.jsdelivr.net", "floyd.lbl.gov", "github.com", "registry.khronos.org",
		"www.graphics.cornell.edu", "www.w3.org"}
	if got := slices.Compact(hosts); !slices.Equal(got, want) {
		t.Errorf("the viewer names %v, known are %v", got, want)
	}
}

// TestViewerEdits wants every text that is replaced in the viewer where it is known to be, so that another version of
// the viewer is looked at, and the low-pass filter that splats were trained with: 0.3 px^2 up to the focal length of
// training, of which it keeps its share in larger pictures. In the viewer's shaders a pixel counts two.
func TestViewerEdits(t *testing.T) {
	plain := mustUnpacked("supersplat/index.js.gz")
	for _, e := range viewerEdits(0) {
		if n := bytes.Count(plain, []byte(e.was)); n != e.times {
			t.Errorf("%q is there %d times, known are %d", e.was, n, e.times)
		}
	}
	for focal, share := range map[float64]float64{0: 0, 86: 0.3 / (86 * 86)} {
		edited := viewerScript(focal)
		filter := regexp.MustCompile(`\[0\] \+ max\(1\.2, ([-+0-9.e]+) \* focal \* focal\)`)
		filters := filter.FindAllSubmatch(edited, -1)
		for _, f := range filters {
			if got, err := strconv.ParseFloat(string(f[1]), 64); err != nil || math.Abs(got-share) > 1e-6*share {
				t.Errorf("focal length %g: the filter grows by %s, want %g, %v", focal, f[1], share, err)
			}
		}
		if len(filters) != 4 || bytes.Contains(edited, []byte("cov[0][0] + 0.3")) {
			t.Errorf("focal length %g: %d filters", focal, len(filters))
		}
	}
}

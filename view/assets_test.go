package view

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEmbedded compares the embedded files with the hashes that tools/supersplat recorded when it had checked where
// they come from.
func TestEmbedded(t *testing.T) {
	sums := new(bytes.Buffer)
	entries, err := assetFiles.ReadDir("supersplat")
	if err != nil {
		t.Fatal(err)
	}
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

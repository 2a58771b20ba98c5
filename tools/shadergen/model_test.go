package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

const (
	meansLine = "means mean 3 identity lr_means f32 yes split,noise # centres\n"
	shLines   = "sh0 sh 1x3 identity lr_sh0 f16 yes -\nshN sh Kx3 identity lr_shn f16 yes -\n"
)

// TestModelOutputs compares what the schema of this repository gives with the committed files; no compiler is needed.
func TestModelOutputs(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	m, err := readModel(root)
	if err != nil || m == nil {
		t.Fatalf("schema %v, error %v", m, err)
	}
	out := must.Get(m.outputs())(t)
	for rel, want := range out {
		if have, err := os.ReadFile(filepath.Join(root, rel)); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what %s gives (error %v): run `go generate ./shaders`", rel, modelSchema, err)
		}
	}
}

// TestModelWidths prints tensors of every width: three numbers move at once, the others one by one.
func TestModelWidths(t *testing.T) {
	more := "pair two 2 identity lr_pair f32 no -\nfour of4 4 exp lr_means f32 yes carve\n"
	m := must.Get(parseModel("# a comment\n" + meansLine + more + shLines))(t)
	out := must.Get(m.outputs())(t)
	for rel, wants := range map[string][]string{
		"shaders/model/model_rows.glsl": {"ROW_PAIR = 3u;", "ROW_FOUR = 5u;", "ROW_SH = 9u;"},
		"shaders/model/geometry.glsl": {
			"vec2 two = vec2(row(r + ROW_PAIR, i), row(r + ROW_PAIR + 1u, i));", "put(r + ROW_PAIR + 1u, i, x.two.y);",
			"put3(r + ROW_FOUR, i, x.of4.xyz);", "put(r + ROW_FOUR + 3u, i, x.of4.w);",
		},
		"shaders/model/moment_words.glsl": {
			"uint two;", "uint two_y;", "d.two.y = adam(m.two_y, ROW_PAIR + 1u, g.two.y, params[0].lr_pair);",
		},
		"shaders/layout/model_gen.go": {"case row < 5:\n\t\treturn false",
			"case row < 9:\n\t\treturn c&(ChangeCarve) != 0",
			"if 3 <= row && row < 5 {\n\t\treturn false"},
		"scene/splats_gen.go": {"Pair  []float32", `{"four", 4, &s.Four}`, `{"pair", 2, s.Pair, false}`,
			"Row: 12, Width: 3 * k"},
		// Two tensors share a rate, which is set once.
		"pipeline/ref/params_gen.go": {"Means, Pair, SH0, SHN float64", "{r.Means, r.Pair, r.Means}"},
	} {
		for _, want := range wants {
			if !strings.Contains(string(out[rel]), want) {
				t.Errorf("%s lacks %q:\n%s", rel, want, out[rel])
			}
		}
	}
}

func TestModelRefusals(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "must be sh0 and shN"},
		{shLines, "behind at least one other"},
		{shLines + meansLine, "must be sh0 and shN"},
		{meansLine + meansLine + shLines, "model.schema:2: tensor means: another one"},
		{"means mean 3\n" + shLines, "3 columns, want 8"},
		{strings.Replace(meansLine, " 3 ", " 5 ", 1) + shLines, "5 numbers"},
		{strings.Replace(meansLine, " 3 ", " x ", 1) + shLines, "x numbers"},
		{strings.Replace(meansLine, "f32", "f16", 1) + shLines, "f16 in mixed precision"},
		{strings.Replace(meansLine, "split", "splits", 1) + shLines, `changed by "splits"`},
		{strings.Replace(meansLine, "means ", "Means ", 1) + shLines, "names are lower case"},
		{strings.Replace(meansLine, "means ", "shade ", 1) + shLines, "do not begin with sh"},
		{meansLine + strings.Replace(shLines, "1x3", "3", 1), "tensor sh0: 3 numbers"},
		{strings.Replace(meansLine, "yes", "maybe", 1) + shLines, `drawn is "maybe"`},
		{meansLine + strings.Replace(shLines, "yes", "no", 1), `tensor sh0: drawn is "no"`},
	} {
		if _, err := parseModel(tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %q", tt.text, err, tt.want)
		}
	}
}

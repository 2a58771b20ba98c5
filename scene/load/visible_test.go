package load_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/scenetest"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 写真 \u00e9":  "plain ä 写真 é",
		"a\x1b[31mb":         `a\x1b[31mb`,
		"a\nb\tc":            "a\nb\tc",
		"a\rb\x00\x7f":       `a\rb\x00\x7f`,
		"bad \xff\xfe":       `bad \xff\xfe`,
		"turned \u202egpj.a": `turned \u202egpj.a`,
		"sign \ufffd":        "sign \ufffd",
		`back\slash "quote"`: `back\slash "quote"`,
		"":                   "",
	} {
		if got := wording.PrintableLines(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"a b.jpg": "a b.jpg", "a\nb": `"a\nb"`, "\xff": `"\xff"`,
		"sign \ufffd": "sign \ufffd"} {
		if got := wording.Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Names and contents of files are shown as escapes, wherever they stand in a message.
func TestMessagesAreVisible(t *testing.T) {
	const evil = "e\x1b[2Jvi\xffl\nl\u202e"
	said := []string{
		(&fault.Error{Op: "read", Path: evil, Err: errors.New(evil)}).Error(),
		fmt.Sprint(scene.Warning{Text: evil, Names: []string{evil}, Count: 1}),
		inspect.Problem{Text: evil, Names: []string{evil}, Count: 1}.String(),
	}
	if runtime.GOOS == "linux" { // other systems refuse such names
		root := loadtest.TinyCapture(t)
		bad := filepath.Join(root, evil)
		must.Do(t, os.Mkdir(bad, 0o777))
		_, err := load.Capture(bad, loadtest.AnyModel())
		said = append(said, err.Error())
		top := scenetest.TinyTop()
		top["frames"].([]scenetest.JsonObject)[0]["mask_path"] = evil
		scenetest.PutJSON(t, filepath.Join(root, "transforms.json"), top)
		o := loadtest.AnyModel()
		o.Format, o.Strict = scene.FormatTransforms, true
		if _, err = load.Capture(root, o); err == nil {
			t.Fatal("a missing mask is not an error")
		}
		said = append(said, err.Error())
	}
	for _, text := range said {
		if strings.ContainsAny(text, "\x1b\n") || strings.ToValidUTF8(text, "") != text ||
			strings.Contains(text, "\u202e") || !strings.Contains(text, "vi") {
			t.Errorf("%q", text)
		}
	}
}

package view

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"os"
	"strings"
	"text/template"
)

// handlerHash is the hash of the one text, event.stopPropagation(), that the viewer has as event handlers in its
// markup.
const handlerHash = "'unsafe-hashes' 'sha256-jHF5hTIlMDyGZRAsNK0HO/WFYrwPvI2I1q0o1xKKB6I='"

// pagePolicy lets pages use this server and what they make themselves, and nothing else: workers come from the viewer's
// own text.
const pagePolicy = "default-src 'none'; script-src 'self' " + handlerHash +
	"; style-src 'self'; img-src 'self' data: blob:; media-src 'self'; connect-src 'self'; " +
	"worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type Scene struct {
	Title       string
	Start       Start
	Background  [3]float32 // 0..1
	Antialiased bool       // drawn with the compensation of Mip-Splatting
	Focal       float64    // of the photos that the model was trained on, as scene.TrainedFocal has it
	MaxSplats   int        // of a streamed model that are drawn at most; 0: as the viewer chooses
}

// sceneJSON is the data for boot.js.
type sceneJSON struct {
	Content     string         `json:"content"`  // the model's address; its end tells the format
	Rotation    [4]float64     `json:"rotation"` // x, y, z, w: from the model's frame to the viewer's, whose up is y
	Picture     [2]float64     `json:"picture"`  // width and height of the photo at distance 1
	Antialiased bool           `json:"antialiased"`
	Budget      float64        `json:"budget,omitempty"` // millions of splats of a streamed model that are drawn
	Settings    viewerSettings `json:"settings"`
}

// viewerSettings are the viewer's, version 2 of its own format.
type viewerSettings struct {
	Version     int              `json:"version"`
	Tonemapping string           `json:"tonemapping"`
	Precise     bool             `json:"highPrecisionRendering"`
	Background  viewerBackground `json:"background"`
	Effects     viewerEffects    `json:"postEffectSettings"`
	Tracks      []struct{}       `json:"animTracks"`
	Cameras     []viewerCamera   `json:"cameras"`
	Annotations []struct{}       `json:"annotations"`
	StartMode   string           `json:"startMode"`
}

type viewerBackground struct {
	Color [3]float32 `json:"color"`
}

type viewerEffects struct {
	Sharpness viewerEffect `json:"sharpness"`
	Bloom     viewerEffect `json:"bloom"`
	Grading   viewerEffect `json:"grading"`
	Vignette  viewerEffect `json:"vignette"`
	Fringing  viewerEffect `json:"fringing"`
}

type viewerEffect struct {
	Enabled bool `json:"enabled"`
}

type viewerCamera struct {
	Initial viewerPose `json:"initial"`
}

type viewerPose struct {
	Position [3]float64 `json:"position"`
	Target   [3]float64 `json:"target"`
	FOV      float64    `json:"fov"` // degrees; boot.js knows the window and puts another
}

// encode is the scene for boot.js. JSON escapes what could end the element that it stands in.
func (s *Scene) encode(content string) ([]byte, error) {
	return json.Marshal(sceneJSON{
		Content: content, Rotation: s.Start.Rotation, Picture: s.Start.Picture, Antialiased: s.Antialiased,
		Budget: float64(s.MaxSplats) / 1e6,
		Settings: viewerSettings{Version: 2, Tonemapping: "linear", Background: viewerBackground{s.Background},
			Tracks: []struct{}{}, Annotations: []struct{}{},
			Cameras: []viewerCamera{{viewerPose{s.Start.Position, s.Start.Target, 60}}}, StartMode: "default"},
	})
}

// pageParts fill in index.html. All are ready to stand there.
type pageParts struct {
	Title, Policy, Style, Scene, Model, Script string
	License, Version                           string // of the viewer, whose copies come with it
}

var pageTemplate = template.Must(template.New("page").Parse(string(mustAsset("page/index.html"))))

func (p pageParts) execute(w io.Writer) error {
	p.License, p.Version = string(mustAsset("supersplat/LICENSE")), viewerVersion()
	return pageTemplate.Execute(w, p)
}

func Show(s *Server, what Scene, model *Model) error {
	data, err := what.encode(model.name)
	if err != nil {
		return err
	}
	page := new(bytes.Buffer)
	if err := (pageParts{Title: html.EscapeString(what.Title), Scene: string(data)}).execute(page); err != nil {
		return err
	}
	s.Handle("", bytesHandler("index.html", page.Bytes()))
	s.Handle("page.css", bytesHandler("page.css", mustAsset("page/page.css")))
	s.Handle("boot.js", bytesHandler("boot.js", mustAsset("page/boot.js")))
	s.Handle("index.css", packedHandler("index.css", viewerStyle()))
	s.Handle("index.js", packedHandler("index.js", viewerScript(what.Focal)))
	model.handle(s)
	return nil
}

// importLine is the first line of boot.js, which has no place where the viewer stands before it in the same script.
const importLine = "import { createViewer } from './index.js';\n"

// WritePage writes a page that holds the viewer, the scene and the model, and needs nothing else.
func WritePage(w io.Writer, what Scene, model *Model) error {
	if err := model.checkPage(); err != nil {
		return err
	}
	content, err := os.ReadFile(model.path)
	if err != nil {
		return err
	}
	data, err := what.encode(model.name)
	if err != nil {
		return err
	}
	boot, found := strings.CutPrefix(string(mustAsset("page/boot.js")), importLine)
	if !found {
		return fmt.Errorf("write page: boot.js does not begin with %q", importLine)
	}
	script := string(viewerScript(what.Focal)) + "\n" + boot
	style := string(viewerStyle()) + "\n" + string(mustAsset("page/page.css"))
	if strings.Contains(script, "</script") || strings.Contains(style, "</style") {
		return fmt.Errorf("write page: the viewer %s holds what would end the element that it stands in",
			viewerVersion())
	}
	policy := fmt.Sprintf("default-src 'none'; script-src '%s' %s; style-src '%s'; img-src data: blob:; worker-src "+
		"blob:; base-uri 'none'; form-action 'none'",
		sourceHash(script), handlerHash, sourceHash(style))
	parts := pageParts{Title: html.EscapeString(what.Title), Policy: policy, Style: style, Scene: string(data),
		Script: script,
		Model:  base64.StdEncoding.EncodeToString(content)}
	return parts.execute(w)
}

// sourceHash names an element's text in a policy.
func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

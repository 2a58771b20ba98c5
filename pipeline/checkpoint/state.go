package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"vksplat/scene/safetensors"
	"vksplat/vk"
)

// State is all of a trainer's state: that of its devices, one after the other. Files know of no devices but in their
// header.
type State []*Share

// fields lists the tensors of the splats.
func (s State) fields() []field { return splatFields(s[0].Rows) }

// splats is how many there are in all.
func (s State) splats() (n int) {
	for _, share := range s {
		n += share.N
	}
	return n
}

// BytesOf returns the size of the state with n splats.
func (s State) BytesOf(n int) int64 {
	one := *s[0]
	one.N = n
	return one.bytes()
}

// free gives a copy's memory back.
func (s State) free() (err error) {
	for _, share := range s {
		err = errors.Join(err, share.free())
	}
	return err
}

// stage makes staging memory on every device.
func (s State) stage(kind vk.MemoryKind) (list []*staging, err error) {
	widest := 1
	for _, f := range s.fields() {
		widest = max(widest, f.width)
	}
	for _, share := range s {
		g, err := share.newStaging(kind, widest)
		if err != nil {
			return nil, errors.Join(err, freeStaging(list))
		}
		list = append(list, g)
	}
	return list, nil
}

func freeStaging(list []*staging) (err error) {
	for _, g := range list {
		err = errors.Join(err, g.free())
	}
	return err
}

func (s State) infos() (list []safetensors.TensorInfo) {
	for _, x := range s.tensors(nil, 0) {
		list = append(list, x.TensorInfo)
	}
	return list
}

// save writes a file; some of its splats may be non-finite.
func (s State) save(path string, metadata map[string]string, strays int) error {
	g, err := s.stage(vk.Readback)
	if err != nil {
		return err
	}
	return errors.Join(safetensors.Write(path, metadata, s.tensors(g, strays)), freeStaging(g))
}

// tensors lists the tensors for a file; their bytes pass through g. Nothing may change the state meanwhile.
func (s State) tensors(g []*staging, strays int) (list []safetensors.TensorData) {
	for _, f := range s.fields() {
		list = append(list, safetensors.TensorData{TensorInfo: f.tensorOf(s.splats()), Write: func(w io.Writer) error {
			if _, parameter := activations[f.name]; parameter {
				w = &finiteWriter{w, f, strays}
			}
			for i, share := range s {
				if err := share.writeField(w, f, g[i]); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	for _, x := range s[0].Extra {
		tables := s.tables(x)
		list = append(list, safetensors.TensorData{TensorInfo: tensorOf(tables), Write: func(w io.Writer) error {
			for _, t := range tables {
				if err := s[t.share].writeExtra(w, t.Extra, g[t.share]); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return list
}

type table struct {
	share int
	Extra
}

// tables lists the first device's table x and what the others have under its name.
func (s State) tables(x Extra) []table {
	list := []table{{0, x}}
	for i, share := range s[1:] {
		for _, other := range share.Extra {
			if other.Name == x.Name {
				list = append(list, table{i + 1, other})
			}
		}
	}
	return list
}

// tensorOf describes the tensor that tables make one below the other.
func tensorOf(tables []table) safetensors.TensorInfo {
	t := tables[0].tensor()
	t.Shape = slices.Clone(t.Shape)
	for _, other := range tables[1:] {
		t.Shape[0] += other.Shape[0]
	}
	return t
}

// readTables fills tables from their tensor.
func (s State) readTables(c *File, tables []table, g []*staging) error {
	x := &tables[0]
	want := tensorOf(tables)
	have, ok := c.file.Lookup(x.Name)
	if ok && x.AnyRows && len(have.Shape) == len(x.Shape) && have.Shape[0] > 0 {
		want.Shape[0] = have.Shape[0]
	}
	if err := c.expect(want); err != nil {
		return err
	}
	var r io.Reader
	next := 0 // row of the file
	for _, t := range tables {
		width := t.Data.N() / t.Shape[0]
		for row := 0; row < t.Shape[0]; {
			if next == 0 {
				r = c.file.Reader(x.Name)
			}
			n := min(t.Shape[0]-row, want.Shape[0]-next)
			part := Extra{Name: x.Name, Data: t.Data.At(row*width, n*width)}
			if err := s[t.share].readExtra(r, part, g[t.share]); err != nil {
				return fmt.Errorf("tensor %s: %w", x.Name, err)
			}
			row, next = row+n, (next+n)%want.Shape[0]
		}
	}
	return nil
}

// run is a part of the state on one of the devices.
type run struct {
	share int
	Part
}

// runs lists all parts, one device's after the other's.
func (s State) runs() (list []run) {
	for i, share := range s {
		for _, p := range share.Parts {
			list = append(list, run{i, p})
		}
	}
	return list
}

// Splats of a run, of which each device gets one in turn if other devices wrote the file. Neighbours in a file have
// much in common: the more runs there are, the more alike are the shares.
const (
	longestRun  = 4096
	shortestRun = 64
)

// dealtRuns lists the parts in runs, one of each device in turn and as long as its share goes with, wherever their
// chunks end.
func (s State) dealtRuns() (list []run) {
	all := s.splats()
	size := min(max(all/(64*len(s)), shortestRun), longestRun)
	at := make([]int, len(s))   // part of a share
	done := make([]int, len(s)) // columns of it
	for left := all; left > 0; {
		for i, share := range s {
			for turn := max(1, size*len(s)*share.N/all); turn > 0 && at[i] < len(share.Parts); {
				p := share.Parts[at[i]]
				n := min(turn, p.Count-done[i])
				list = append(list, run{i, Part{p.Rows.At(done[i], p.Rows.N()-done[i]), n, p.Stride}})
				if done[i] += n; done[i] == p.Count {
					at[i], done[i] = at[i]+1, 0
				}
				turn, left = turn-n, left-n
			}
		}
	}
	return list
}

// Read fills the state, which is where training has it, from a checkpoint. dealt says that other devices
// wrote it: each device gets a run of splats in turn.
func (s State) Read(c *File, dealt bool) (err error) {
	runs := s.runs()
	if dealt {
		runs = s.dealtRuns()
	}
	kind := vk.Upload
	if s[0].Rows.Mixed {
		kind = vk.Readback // what shares words with it is read, too
	}
	g, err := s.stage(kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, freeStaging(g)) }()
	known := map[string]bool{}
	for _, f := range s.fields() {
		known[f.name] = true
		r := c.file.Reader(f.name)
		for _, x := range runs {
			if err := s[x.share].readPart(r, f, g[x.share], x.Part); err != nil {
				return readError(c.path, fmt.Errorf("tensor %s: %w", f.name, err))
			}
		}
	}
	for _, x := range s[0].Extra {
		known[x.Name] = true
		if err := s.readTables(c, s.tables(x), g); err != nil {
			return readError(c.path, err)
		}
	}
	for _, t := range c.file.Tensors {
		if !known[t.Name] {
			return readError(c.path, fmt.Errorf("it holds the tensor %s, which this run does not train", t.Name))
		}
	}
	return nil
}

package pipeline

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"vksplat/scene/safetensors"
	"vksplat/vk"
)

// wholeState is all of a trainer's state: that of its devices, one after the other. Files know of no devices but in
// their header.
type wholeState []*state

// ShareRecord is what a checkpoint says of one of several devices.
type ShareRecord struct {
	Device DeviceRecord `json:"device"`
	Splats int          `json:"splats"` // its own; those of the first device come first in the tensors, and so on
	Most   int          `json:"most"`   // its part of the ceiling; 0 in files of versions that divided that equally
}

// splats is how many there are in all.
func (s wholeState) splats() (n int) {
	for _, share := range s {
		n += share.n
	}
	return n
}

// bytesOf returns the size of the state with n splats.
func (s wholeState) bytesOf(n int) int64 {
	one := *s[0]
	one.n = n
	return one.bytes()
}

// free gives a copy's memory back.
func (s wholeState) free() (err error) {
	for _, share := range s {
		err = errors.Join(err, share.free())
	}
	return err
}

// stage makes staging memory on every device.
func (s wholeState) stage(kind vk.MemoryKind) (list []*staging, err error) {
	for _, share := range s {
		g, err := share.newStaging(kind)
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

// infos lists the tensors of a file.
func (s wholeState) infos() (list []safetensors.TensorInfo) {
	for _, x := range s.tensors(nil, 0) {
		list = append(list, x.TensorInfo)
	}
	return list
}

// save writes a file; so many of its splats may be no finite numbers.
func (s wholeState) save(path string, metadata map[string]string, strays int) error {
	g, err := s.stage(vk.Readback)
	if err != nil {
		return err
	}
	return errors.Join(safetensors.Write(path, metadata, s.tensors(g, strays)), freeStaging(g))
}

// tensors lists the tensors for a file; their bytes pass through g. Nothing may change the state meanwhile.
func (s wholeState) tensors(g []*staging, strays int) (list []safetensors.TensorData) {
	for _, f := range s[0].fields {
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
	for _, x := range s[0].extra {
		list = append(list, safetensors.TensorData{TensorInfo: x.tensor(),
			Write: func(w io.Writer) error { return s[0].writeExtra(w, x, g[0]) }})
	}
	return list
}

// readState fills the models from a checkpoint.
func (t *Trainer) readState(c *Checkpoint) error {
	if err := t.each(func(m *member) error { return m.e.model.reserve(m.splats) }); err != nil {
		return err
	}
	live := t.liveState(t.extra)
	runs := live.runs()
	if len(t.members) > 1 && !slices.Equal(c.Header.deal(len(t.members)).splats, t.shares()) {
		runs = live.dealtRuns()
	}
	if err := live.read(c, runs); err != nil {
		return err
	}
	return t.carryExposures(len(t.cams))
}

// run is a part of the state on one of the devices.
type run struct {
	share int
	part
}

// runs lists all parts, one device's after the other's.
func (s wholeState) runs() (list []run) {
	for i, share := range s {
		for _, p := range share.parts {
			list = append(list, run{i, p})
		}
	}
	return list
}

// Splats of a run, of which each device gets one in turn where the devices are others than those that wrote a file.
// Neighbours in a file have much in common: the more runs there are, the more alike are the shares.
const (
	longestRun  = 4096
	shortestRun = 64
)

// dealtRuns lists the parts in runs, one of each device in turn and as long as its share goes with, wherever their
// chunks end.
func (s wholeState) dealtRuns() (list []run) {
	all := s.splats()
	size := min(max(all/(64*len(s)), shortestRun), longestRun)
	at := make([]int, len(s))   // part of a share
	done := make([]int, len(s)) // columns of it
	for left := all; left > 0; {
		for i, share := range s {
			for turn := max(1, size*len(s)*share.n/all); turn > 0 && at[i] < len(share.parts); {
				p := share.parts[at[i]]
				n := min(turn, p.count-done[i])
				list = append(list, run{i, part{p.rows.At(done[i], p.rows.N()-done[i]), n, p.stride}})
				if done[i] += n; done[i] == p.count {
					at[i], done[i] = at[i]+1, 0
				}
				turn, left = turn-n, left-n
			}
		}
	}
	return list
}

// read fills the state, which is where training has it, from a checkpoint, run by run.
func (s wholeState) read(c *Checkpoint, runs []run) (err error) {
	kind := vk.Upload
	if s[0].mixed {
		kind = vk.Readback // what shares words with it is read, too
	}
	g, err := s.stage(kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, freeStaging(g)) }()
	known := map[string]bool{}
	for _, f := range s[0].fields {
		known[f.name] = true
		r := c.file.Reader(f.name)
		for _, x := range runs {
			if err := s[x.share].readPart(r, f, g[x.share], x.part); err != nil {
				return checkpointError(c.path, fmt.Errorf("tensor %s: %w", f.name, err))
			}
		}
	}
	for _, x := range s[0].extra {
		known[x.name] = true
		if err := c.expect(x.tensor()); err != nil {
			return checkpointError(c.path, err)
		}
		if err := s[0].readExtra(c.file.Reader(x.name), x, g[0]); err != nil {
			return checkpointError(c.path, fmt.Errorf("tensor %s: %w", x.name, err))
		}
	}
	for _, t := range c.file.Tensors {
		if !known[t.Name] {
			return checkpointError(c.path, fmt.Errorf("it holds the tensor %s, which this run does not train", t.Name))
		}
	}
	return nil
}

// deal returns what each of n devices had of the splats when the checkpoint was written, if they were so many, and not
// one.
func (h *CheckpointHeader) deal(n int) (d deal) {
	if len(h.Team) != n {
		return d
	}
	for _, s := range h.Team {
		d.splats, d.ceilings = append(d.splats, s.Splats), append(d.ceilings, s.Most)
	}
	if slices.Contains(d.ceilings, 0) {
		d.ceilings = nil
	}
	return d
}

// devices returns those that ran the steps before the checkpoint.
func (h *CheckpointHeader) devices() (list []DeviceRecord) {
	for _, s := range h.Team {
		list = append(list, s.Device)
	}
	if list == nil {
		list = []DeviceRecord{h.Device}
	}
	return list
}

// checkTeam compares the shares with the number of splats.
func (h *CheckpointHeader) checkTeam() error {
	sum, most := 0, 0
	for _, s := range h.Team {
		if s.Splats < 0 || s.Splats > h.Splats || s.Most < 0 || s.Most > h.SplatCeiling || s.Most > 0 &&
			s.Most < s.Splats {
			return fmt.Errorf("a device has %d of %d splats under %d of a ceiling of %d", s.Splats, h.Splats, s.Most,
				h.SplatCeiling)
		}
		sum, most = sum+s.Splats, most+s.Most
	}
	if most != 0 && most != h.SplatCeiling {
		return fmt.Errorf("%d devices have %d of a ceiling of %d together", len(h.Team), most, h.SplatCeiling)
	}
	if h.Team != nil && sum != h.Splats {
		return fmt.Errorf("%d devices have %d splats together, there are %d", len(h.Team), sum, h.Splats)
	}
	return nil
}

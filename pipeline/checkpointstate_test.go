package pipeline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/vk"
)

// mustSave writes a checkpoint.
func mustSave(t *testing.T, tr *Trainer, path string) *checkpoint.Write {
	t.Helper()
	w := must.Get(tr.SaveCheckpoint(path, false))(t)
	return w
}

// TestCheckpointAfterShortage lets a device run out of memory while the model grows, saves what there is before
// anything is given up for that, and goes on elsewhere to the undisturbed end.
func TestCheckpointAfterShortage(t *testing.T) {
	smallChunks(t, 1<<20)
	d := testDevice(t)
	dir := t.TempDir()
	tr, _, cfg := checkpointTrainer(t, d, nil)
	must.Do(t, tr.RunTo(context.Background(), 5, nil))
	saved(t, tr, filepath.Join(dir, "early"))
	must.Do(t, tr.Run(context.Background(), nil))
	if tr.pressure.lastGrowth == 0 {
		t.Fatal("nothing grew: the test proves too little")
	}
	want := saved(t, tr, filepath.Join(dir, "end"))

	small, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE"), MaxVRAM: "48MiB"})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	var short *Trainer
	pressed := 0
	options := TrainerOptions{OnPressure: func(int) {
		if pressed++; pressed == 1 {
			contents(t, mustSave(t, short, filepath.Join(dir, "short")))
		}
	}}
	short = resumedWith(t, small, filepath.Join(dir, "early"), cfg, options)
	defer short.Close()
	// What is free now is taken, but for a little that saving needs.
	var hogs []vk.View
	for {
		hog, err := small.dev.Alloc(vk.DeviceLocal, 1<<20, "hog")
		if errors.Is(err, vk.ErrOutOfMemory) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		hogs = append(hogs, hog)
	}
	if err = short.Run(context.Background(), nil); err != nil && !IsShortage(err) {
		t.Fatal(err)
	}
	t.Logf("%d MiB of 48 were taken by others; step %d of %d: %v", len(hogs), short.Step(), cfg.Iterations, err)
	if pressed == 0 || err == nil && (short.pressure.limited == 0 || len(short.Deviations()) != 1) {
		t.Fatalf("pressed %d times, not reproducible from step %d, deviations %v", pressed, short.pressure.limited,
			short.Deviations())
	}
	last := resumed(t, d, filepath.Join(dir, "short"), cfg)
	defer last.Close()
	must.Do(t, last.Run(context.Background(), nil))
	if got := saved(t, last, filepath.Join(dir, "end2")); !bytes.Equal(got, want) {
		t.Error("the run ends with other bytes")
	}
}

// TestOtherDevice goes on with what another driver trained: it works, and from then on checkpoints say so.
func TestOtherDevice(t *testing.T) {
	d := testDevice(t)
	tr, _, cfg := checkpointTrainer(t, d, nil)
	h := tr.saver.header()
	h.Device.Driver = "another"
	path := filepath.Join(t.TempDir(), "x")
	content := checkpoint.Content{Header: h, State: tr.shards.state(tr.saver.extra)}
	must.Get(tr.saver.writer.Save(path, content, time.Now(), false))(t)
	other := resumed(t, d, path, cfg)
	defer other.Close()
	saved(t, other, path)
	c := must.Get(checkpoint.Open(path))(t)
	defer c.Close()
	if got := c.Header.Deviations; len(got) != 1 || !strings.Contains(got[0].Reason, "another -> ") ||
		c.Header.Device != checkpoint.RecordOf(d.dev) {
		t.Errorf("deviations %v, device %v", got, c.Header.Device)
	}
	got := checkpoint.RecordOf(d.dev)
	card := checkpoint.DeviceRecord{Name: got.Name, UUID: "another card", Driver: got.Driver,
		DriverVersion: got.DriverVersion}
	if !got.Same(card) {
		t.Error("two cards of one model are taken for two models")
	}
}

// TestAside gives back the caller's text of the moment of the checkpoint, and writes none where there is none.
func TestAside(t *testing.T) {
	tr, _, _ := checkpointTrainer(t, testDevice(t), nil)
	path, text := filepath.Join(t.TempDir(), "x"), ""
	tr.saver.record.Aside = func() string { return text }
	plain := saved(t, tr, path)
	for _, text = range []string{`{"n":3}`, ""} {
		data := saved(t, tr, path)
		c := must.Get(checkpoint.Open(path))(t)
		must.Do(t, c.Close())
		if got := c.Aside(); got != text {
			t.Errorf("%q came back, want %q", got, text)
		}
		if (text == "") != bytes.Equal(data, plain) {
			t.Errorf("with %q aside, the file equals one without: %v", text, text != "")
		}
	}
}

// TestExtraState takes a table of another part of the trainer along.
func TestExtraState(t *testing.T) {
	d := testDevice(t)
	withTable := func(tr *Trainer, n int) vk.Slice[float32] {
		table := must.Get(vk.Make[float32](d.dev, vk.Upload, 12*n, "table"))(t)
		t.Cleanup(func() { freed(t, d, table.View) })
		tr.saver.extra = append(tr.saver.extra, checkpoint.Extra{Name: "exposure", Shape: []int{n, 3, 4}, Data: table})
		return table
	}
	tr, views, cfg := checkpointTrainer(t, d, nil)
	table := withTable(tr, len(views))
	for i := range vk.Host(table) {
		vk.Host(table)[i] = float32(i)
	}
	path := filepath.Join(t.TempDir(), "x")
	want := saved(t, tr, path)
	c := must.Get(checkpoint.Open(path))(t)
	defer c.Close()
	if _, err := resumeOn(d, views, c, cfg); err == nil ||
		!strings.Contains(err.Error(), "tensor exposure, which this run does not train") {
		t.Errorf("without the table: %v", err)
	}
	clear(vk.Host(table))
	live := tr.shards.state(tr.saver.extra)
	live[0].Pieces = checkpoint.MinPiece
	must.Do(t, live.Read(c, false))
	if got := saved(t, tr, path); !bytes.Equal(got, want) {
		t.Error("the table did not come back")
	}
	tr.saver.writer.Copies = checkpoint.CopyDevice
	w := must.Get(tr.SaveCheckpoint(path, true))(t)
	if got := contents(t, w); !bytes.Equal(got, want) {
		t.Error("the table's copy is another")
	}
}

func freed(t *testing.T, d *Device, v vk.View) {
	if err := d.dev.Free(v); err != nil {
		t.Error(err)
	}
}

// TestRowsOfDevices reads a table that has a row for each device: of fewer and of more of them than there are.
func TestRowsOfDevices(t *testing.T) {
	d := testDevice(t)
	const width = 7
	tr, _, _ := checkpointTrainer(t, d, nil)
	table := func(rows int) vk.Slice[float32] {
		x := must.Get(vk.Make[float32](d.dev, vk.Upload, rows*width, "table"))(t)
		t.Cleanup(func() { freed(t, d, x.View) })
		tr.saver.extra = []checkpoint.Extra{{Name: "table", Shape: []int{rows, width}, Data: x, AnyRows: true}}
		return x
	}
	for i, x := 0, vk.Host(table(3)); i < len(x); i++ {
		x[i] = float32(i)
	}
	path := filepath.Join(t.TempDir(), "x")
	saved(t, tr, path)
	c := must.Get(checkpoint.Open(path))(t)
	defer c.Close()
	for _, rows := range []int{1, 2, 3, 5, 7} {
		got := vk.Host(table(rows))
		must.Do(t, tr.shards.state(tr.saver.extra).Read(c, false))
		for i := range got {
			if want := float32(i % (3 * width)); got[i] != want {
				t.Fatalf("%d rows of a file that has three: number %d is %g, want %g", rows, i, got[i], want)
			}
		}
	}
	tr.saver.extra[0].Shape, tr.saver.extra[0].Data = []int{3, width - 1}, tr.saver.extra[0].Data.At(0, 3*(width-1))
	if err := tr.shards.state(tr.saver.extra).Read(c, false); err == nil {
		t.Error("rows of another width: no error")
	}
}

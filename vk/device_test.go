package vk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

func TestDevicesAreDescribed(t *testing.T) {
	in := testInstance(t)
	for _, d := range in.Devices() {
		if d.Name == "" || d.Driver == "" || len(d.UUID) != 36 || len(d.Heaps) == 0 ||
			d.Limits.MaxStorageBufferRange < 1<<27 || d.DefaultBudget() <= 0 {
			t.Errorf("incomplete description: %+v", d)
		}
		t.Logf("%d: %s, %s, Vulkan %v, %v, subgroups %d [%d, %d], budget %s", d.Index, d.Name, d.Driver, d.API, d.Type,
			d.Limits.SubgroupSize,
			d.Limits.MinSubgroupSize, d.Limits.MaxSubgroupSize, BytesText(d.DefaultBudget()))
	}
}

func TestSelect(t *testing.T) {
	in := testInstance(t)
	auto, note, err := in.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	if (auto.Type == CPU) != (note != "") {
		t.Errorf("%v device, note %q", auto.Type, note)
	}
	for _, what := range []string{"0", in.devices[0].UUID, strings.ToUpper(in.devices[0].UUID)} {
		if d, _, err := in.Select(what); err != nil || d.UUID != in.devices[0].UUID {
			t.Errorf("Select(%q) = %s, %v", what, d.Name, err)
		}
	}
	for _, what := range []string{"99", "-1", "gpu", "00000000-0000-0000-0000-000000000000"} {
		if _, _, err := in.Select(what); !errors.Is(err, ErrNoDevice) || fault.Hint(err) == "" {
			t.Errorf("Select(%q): error %v", what, err)
		}
	}
	fake := &Instance{devices: []DeviceInfo{{Name: "cpu", Type: CPU}, {Name: "virtual", Type: Virtual},
		{Name: "weak", Type: Discrete, Missing: []string{"x"}}, {Name: "integrated", Type: Integrated}}}
	for _, want := range []string{"integrated", "virtual", "cpu"} {
		d, note, err := fake.Select("auto")
		if err != nil || d.Name != want || (note != "") != (want == "cpu") {
			t.Errorf("selected %q with note %q, %v, want %q", d.Name, note, err, want)
		}
		fake.devices = slices.DeleteFunc(fake.devices, func(d DeviceInfo) bool { return d.Name == want })
	}
	if _, _, err := fake.Select("auto"); !errors.Is(err, errMissingFeature) {
		t.Errorf("only a weak device: error %v", err)
	}
}

// TestNoGPUNote wants the note of a run on the processor only where nobody chose that and no GPU can do the work, in
// whatever order the loader names devices.
func TestNoGPUNote(t *testing.T) {
	for _, v := range visibility {
		t.Setenv(v.name, "")
	}
	cpu := DeviceInfo{Name: "llvmpipe", Type: CPU, UUID: "6d657361"}
	gpu := func(kind DeviceType) DeviceInfo { return DeviceInfo{Name: kind.String(), Type: kind, UUID: "aaaa"} }
	for what, test := range map[string]struct {
		devices []DeviceInfo
		choice  string
		want    string // the note
	}{
		"discrete":         {[]DeviceInfo{cpu, gpu(Discrete)}, "auto", ""},
		"discrete first":   {[]DeviceInfo{gpu(Discrete), cpu}, "", ""},
		"integrated":       {[]DeviceInfo{cpu, gpu(Integrated)}, "auto", ""},
		"virtual":          {[]DeviceInfo{cpu, gpu(Virtual)}, "auto", ""},
		"none":             {[]DeviceInfo{cpu}, "auto", NoGPU("llvmpipe")},
		"chosen":           {[]DeviceInfo{cpu, gpu(Discrete)}, "0", ""},
		"chosen and alone": {[]DeviceInfo{cpu}, "6d657361", ""},
	} {
		for i := range test.devices {
			test.devices[i].Index = i
		}
		d, note, err := (&Instance{devices: test.devices}).Select(test.choice)
		if err != nil || note != test.want {
			t.Errorf("%s: %s with the note %q, %v", what, d.Name, note, err)
		}
		if note != "" && d.Type != CPU {
			t.Errorf("%s: the note is of a %v device", what, d.Type)
		}
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestLimitsFile(t *testing.T) {
	t.Setenv(limitsVariable, writeFile(t,
		`{"maxStorageBufferRange": 1048576, "maxMemoryAllocationSize": 2097152, "minStorageBufferOffsetAlignment": 256,
		"maxComputeWorkGroupSize": [512, 512, 1000000], "maxPushConstantsSize": 100000, "shaderFloat16": false}`))
	in := testInstance(t)
	l := in.devices[0].Limits
	if l.MaxStorageBufferRange != 1<<20 || l.MaxMemoryAllocationSize != 2<<20 ||
		l.MinStorageBufferOffsetAlignment != 256 || l.MaxComputeWorkGroupSize[0] != 512 ||
		l.MaxPushConstantsSize == 100000 || l.MaxComputeWorkGroupSize[2] == 1000000 || in.devices[0].Features.Float16 {
		t.Errorf("limits %+v", l)
	}
	d := openDevice(t, in, DeviceOptions{Budget: 64 << 20})
	if _, err := d.Alloc(DeviceLocal, 3<<20, "large"); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("allocation above maxMemoryAllocationSize: error %v", err)
	}
	for range 8 {
		must.Get(d.Alloc(DeviceLocal, 1<<20, "chunk"))(t)
	}
}

// TestHeapInLimitsFile lets the driver run out of memory far below the budget.
func TestHeapInLimitsFile(t *testing.T) {
	t.Setenv(limitsVariable, writeFile(t, `{"heapBytes": 8388608}`))
	d := openDevice(t, testInstance(t), DeviceOptions{Budget: 64 << 20})
	must.Get(d.Alloc(DeviceLocal, 3<<20, "small"))(t)
	if _, err := d.Alloc(DeviceLocal, 6<<20, "large"); !RefusedByDriver(err) {
		t.Errorf("got %v", err)
	}
}

func TestFloorIsNamed(t *testing.T) {
	cases := map[string]string{
		`{"scalarBlockLayout": false}`:                 "scalarBlockLayout",
		`{"subgroupShuffle": false}`:                   "subgroup shuffle in compute",
		`{"maxPerStageDescriptorStorageBuffers": 8}`:   "16 storage buffers per stage (the device has 8)",
		`{"maxComputeSharedMemorySize": 8192}`:         "16384 bytes of shared memory (the device has 8192)",
		`{"maxComputeWorkGroupInvocations": 128}`:      "256 invocations per workgroup (the device has 128)",
		`{"maxPushConstantsSize": 64}`:                 "128 bytes of push constants (the device has 64)",
		`{"timelineSemaphore": false}`:                 "timelineSemaphore",
		`{"maxSubgroupSize": 2, "minSubgroupSize": 1}`: "a subgroup size of 4 to 64 (the device has 2)",
		`{"subgroupArithmetic": false, "subgroupVote": false}`: "subgroup vote in compute, subgroup arithmetic in " +
			"compute",
	}
	for text, want := range cases {
		t.Setenv(limitsVariable, writeFile(t, text))
		in := testInstance(t)
		_, err := in.NewDevice(in.devices[0], DeviceOptions{})
		if !errors.Is(err, errMissingFeature) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
	for _, text := range []string{`{"maxStorageBufferRang": 1}`, `{`, `[]`, `{"maxStorageBufferRange": "x"}`} {
		t.Setenv(limitsVariable, writeFile(t, text))
		if _, err := Open(InstanceOptions{}); err == nil || fault.Hint(err) == "" {
			t.Errorf("%s: error %v", text, err)
		}
	}
	t.Setenv(limitsVariable, "/nowhere/limits.json")
	if _, err := Open(InstanceOptions{}); err == nil {
		t.Error("a missing limits file was accepted")
	}
}

func TestBudget(t *testing.T) {
	d := openDevice(t, testInstance(t), DeviceOptions{Budget: 10 << 20})
	if _, err := d.Alloc(DeviceLocal, 11<<20, "too large"); !errors.Is(err, ErrOutOfMemory) ||
		!strings.Contains(err.Error(), "10.0 MiB") {
		t.Errorf("error %v, want one that names the budget", err)
	}
	a := must.Get(d.Alloc(DeviceLocal, 6<<20, "a"))(t)
	if _, err := d.Alloc(DeviceLocal, 6<<20, "b"); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("error %v", err)
	}
	if err := d.Free(a); err != nil {
		t.Error(err)
	}
	must.Get(d.Alloc(DeviceLocal, 6<<20, "b"))(t)
	if s := d.Stats(); s.Allocated > s.Budget || s.InUse != 6<<20 || s.AllocCalls == 0 || s.Budget != d.Budget() {
		t.Errorf("stats %+v", s)
	}
	if _, err := d.Alloc(DeviceLocal, -1, "negative"); err == nil {
		t.Error("a negative size was accepted")
	}
}

func TestPipelineCacheFile(t *testing.T) {
	in := testInstance(t)
	info, _, err := in.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "cache")
	compile := func() {
		t.Helper()
		d := must.Get(in.NewDevice(info, DeviceOptions{Budget: 64 << 20, CacheDir: dir}))(t)
		must.Get(d.kernels.pipeline(addBaseKernel, nil))(t)
		must.Do(t, d.Close())
	}
	compile()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v, want one", files, err)
	}
	path := filepath.Join(dir, files[0].Name())
	good := must.Get(os.ReadFile(path))(t)
	if readCacheFile(path) == nil {
		t.Error("a good cache file is not read")
	}
	old := time.Unix(1e9, 0)
	must.Do(t, os.Chtimes(path, old, old))
	compile()
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("a file with nothing new is written again: %v", err)
	}
	damaged := [][]byte{nil, []byte("x"), good[:len(good)-1], append(slices.Clone(good), 0)}
	for _, i := range []int{0, 20, len(good) - 1} {
		b := slices.Clone(good)
		b[i] ^= 1
		damaged = append(damaged, b)
	}
	for i, b := range damaged {
		must.Do(t, os.WriteFile(path, b, 0o644))
		if readCacheFile(path) != nil {
			t.Errorf("damaged file %d was accepted", i)
		}
		compile()
		if readCacheFile(path) == nil {
			t.Errorf("damaged file %d was not replaced", i)
		}
	}
	dir = filepath.Join(writeFile(t, ""), "below a file")
	compile()
}

// TestInSubprocess runs the cases that need another environment from the start. The parent starts this test again with
// caseVariable set.
const caseVariable = "VKSPLAT_TEST_CASE"

func TestInSubprocess(t *testing.T) {
	cases := map[string]struct {
		env  []string
		want error
	}{
		"no loader":  {[]string{loaderVariable + "=libvulkan-that-is-not-there.so.1"}, ErrNoLoader},
		"bad loader": {[]string{loaderVariable + "=libc.so.6"}, ErrNoLoader},
		"no driver":  {[]string{"VK_ICD_FILENAMES=/nowhere.json", "VK_DRIVER_FILES=/nowhere.json"}, ErrNoDevice},
		"no layer":   {[]string{validateVariable + "=1", "VK_LAYER_PATH=/nowhere"}, errNoValidation},
	}
	if name := os.Getenv(caseVariable); name != "" {
		in, err := Open(InstanceOptions{})
		if err == nil {
			_, _, err = in.Select("auto")
		}
		if !errors.Is(err, cases[name].want) || fault.Hint(err) == "" {
			t.Errorf("%s: error %v, hint %q", name, err, fault.Hint(err))
		}
		t.Log(err)
		return
	}
	if _, err := Open(InstanceOptions{}); errors.Is(err, ErrNoLoader) {
		t.Skip("no Vulkan here")
	}
	for name, c := range cases {
		cmd := exec.Command(os.Args[0], "-test.run=^TestInSubprocess$", "-test.v")
		cmd.Env = append(append(os.Environ(), c.env...), caseVariable+"="+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	lost := failed("vkQueueSubmit", "x", deviceLost)
	if !errors.Is(lost, ErrDeviceLost) || errors.Is(lost, ErrOutOfMemory) || fault.Hint(lost) == "" {
		t.Errorf("%v", lost)
	}
	if got := lost.Error(); got != "vkQueueSubmit x: VK_ERROR_DEVICE_LOST" {
		t.Error(got)
	}
	if err := failed("vkAllocateMemory", "x", outOfDevMemory); !errors.Is(err, ErrOutOfMemory) {
		t.Error(err)
	}
	if failed("x", "", notReady) != nil {
		t.Error("VK_NOT_READY is not a failure")
	}
}

// TestValidationSpeaks makes sure that messages arrive at all: a fill of memory that another fill writes, without a
// barrier, is a hazard.
func TestValidationSpeaks(t *testing.T) {
	in, err := Open(InstanceOptions{Validation: true})
	if err != nil {
		t.Skip(err)
	}
	d := openDevice(t, in, DeviceOptions{Budget: 64 << 20})
	v := must.Get(d.Alloc(DeviceLocal, 1024, "v"))(t)
	pool, cbs, _, r := createCommandBuffers(d.h, d.info.family, 1)
	if r < 0 {
		t.Fatal(r)
	}
	beginCommands(cbs[0])
	cmdFill(cbs[0], v.base.block.buffer, v.base.span.off, 1024, 1)
	cmdFill(cbs[0], v.base.block.buffer, v.base.span.off, 1024, 2)
	endCommands(cbs[0])
	destroyCommandPool(d.h, pool)
	if m := in.Messages(); len(m) != 1 || !strings.Contains(m[0], "SYNC-HAZARD-WRITE") {
		t.Errorf("messages %q, want one about a hazard", m)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseOrder(t *testing.T) {
	in := testInstance(t)
	d := must.Get(in.NewDevice(in.devices[0], DeviceOptions{Budget: 64 << 20}))(t)
	if err := in.Close(); err == nil || !strings.Contains(err.Error(), "1 devices are still open") {
		t.Errorf("closing the instance before its device: error %v", err)
	}
	must.Get(d.NewCopier())(t)
	must.Get(d.Alloc(Upload, 100, "never freed"))(t)
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOpenBesideWork opens and closes instances while another goroutine works on a device: the table of entry points is
// the process's, and must not be empty for a moment. Without the validation layer: that of 2022 looks devices up in a
// table of its own, which instances that are opened beside it change under it (1 run of 12 crashed).
func TestOpenBesideWork(t *testing.T) {
	t.Setenv(validateVariable, "")
	d := testDevice(t)
	opened := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 20 && err == nil; i++ {
			var in *Instance
			if in, err = Open(InstanceOptions{}); err == nil {
				err = in.Close()
			}
		}
		opened <- err
	}()
	for {
		select {
		case err := <-opened:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		c := must.Get(d.NewCopier())(t)
		must.Do(t, c.Close())
	}
}

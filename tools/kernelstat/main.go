// Command kernelstat compiles every committed kernel for GPUs that this machine does not have and prints, as a markdown
// table, what their compilers say: registers, spills, scratch, shared memory, occupancy, instructions. A spill is a
// finding. bench/kernels.md is its output.
//
//	go run ./tools/kernelstat                                   AMD families, by the null back end of Mesa's RADV
//	go run ./tools/kernelstat -intel-stub libintel_noop.so      Intel too, by Mesa's ANV over a no-op kernel driver
//	go run ./tools/kernelstat -here                             this machine's device too, if its driver tells
//	go run ./tools/kernelstat -kernels rasterize,sort_scatter   only these
//
// The drivers read the GPU's name from the environment when they load, so each GPU has a child process of its own. The
// AMD driver comes with Debian's mesa-vulkan-drivers. tools/kernelstat/intel_stub.sh builds the no-op driver from the
// source of exactly that Mesa.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/shaders"
	"vksplat/vk"
)

type options struct {
	amd, intel, kernels         string
	amdICD, intelICD, intelStub string
	here, child                 bool
}

// target is one GPU to compile for and the environment in which its driver believes to have it.
type target struct {
	name string
	env  []string
}

// row is one compiled kernel; the child prints them as JSON lines. Error rows have only Kernel, Device and Error.
type row struct {
	Kernel, Device      string
	Workgroup, Subgroup uint32
	Stats               map[string]float64
	Error               string
}

func main() {
	var o options
	flag.StringVar(&o.amd, "amd", "vega10,navi10,navi21,gfx1036,gfx1100",
		"AMD `families` as RADV_FORCE_FAMILY spells them")
	flag.StringVar(&o.amdICD, "amd-icd", "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json", "RADV's driver `file`")
	flag.StringVar(&o.intel, "intel", "skl,icl,tgl,adl,dg2",
		"Intel `platforms` as INTEL_STUB_GPU_PLATFORM spells them; later Mesa knows mtl, lnl and bmg too")
	flag.StringVar(&o.intelICD, "intel-icd", "/usr/share/vulkan/icd.d/intel_icd.x86_64.json", "ANV's driver `file`")
	flag.StringVar(&o.intelStub, "intel-stub", "",
		"Mesa's no-op Intel kernel driver, a shared `library`; without it Intel is left out")
	flag.StringVar(&o.kernels, "kernels", "", "`names` of the kernels to compile, all by default")
	flag.BoolVar(&o.here, "here", false, "compile for the device of this machine too")
	flag.BoolVar(&o.child, "child", false,
		"internal: compile for the one device that the environment offers, print JSON")
	flag.Parse()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kernelstat:", err)
		os.Exit(1)
	}
}

func run(o options, w io.Writer) error {
	kernels, err := choose(o.kernels)
	if err != nil {
		return err
	}
	if o.child {
		return compileAll(kernels, json.NewEncoder(w))
	}
	list, err := targets(o)
	if err != nil {
		return err
	}
	// Mesa 22.3 crashes when asked for the free memory of an integrated GPU that is not there.
	dir, err := os.MkdirTemp("", "kernelstat")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	limits := filepath.Join(dir, "limits.json")
	if err := os.WriteFile(limits, []byte(`{"memoryBudget": false}`), 0o600); err != nil {
		return err
	}
	var rows []row
	for _, t := range list {
		t.env = append(t.env, "VKSPLAT_LIMITS="+limits, "MESA_SHADER_CACHE_DISABLE=true")
		rows = append(rows, measure(t, o.kernels)...)
	}
	_, err = io.WriteString(w, table(rows))
	return err
}

func choose(names string) ([]*vk.Kernel, error) {
	if names == "" {
		return shaders.All, nil
	}
	var list []*vk.Kernel
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(shaders.All, func(k *vk.Kernel) bool { return k.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no kernel %q", name)
		}
		list = append(list, shaders.All[i])
	}
	return list, nil
}

// targets lists the GPUs to compile for.
func targets(o options) ([]target, error) {
	var list []target
	driver := func(icd string) []string {
		return []string{"VK_ICD_FILENAMES=" + icd, "VK_DRIVER_FILES=" + icd}
	}
	if _, err := os.Stat(o.amdICD); err == nil {
		for _, family := range split(o.amd) {
			list = append(list, target{family, append(driver(o.amdICD), "RADV_FORCE_FAMILY="+family)})
		}
	} else {
		fmt.Fprintf(os.Stderr, "kernelstat: AMD is left out: %v (Debian: apt-get install mesa-vulkan-drivers)\n", err)
	}
	if o.intelStub != "" {
		stub, err := filepath.Abs(o.intelStub)
		if err != nil {
			return nil, err
		}
		for _, file := range []string{stub, o.intelICD} {
			if _, err := os.Stat(file); err != nil {
				return nil, err
			}
		}
		for _, platform := range split(o.intel) {
			list = append(list,
				target{platform, append(driver(o.intelICD), "LD_PRELOAD="+stub, "INTEL_STUB_GPU_PLATFORM="+platform)})
		}
	}
	if o.here {
		list = append(list, target{"here", nil})
	}
	return list, nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' })
}

// measure runs the child for one GPU. A driver that crashes costs the rest of its rows and says so.
func measure(t target, kernels string) []row {
	self, err := os.Executable()
	if err != nil {
		return []row{{Device: t.name, Error: err.Error()}}
	}
	cmd := exec.Command(self, "-child", "-kernels", kernels)
	cmd.Env = append(os.Environ(), t.env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return []row{{Device: t.name, Error: err.Error()}}
	}
	var rows []row
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r row
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			r.Device = t.name
			rows = append(rows, r)
		}
	}
	if err := cmd.Wait(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		rows = append(rows, row{Device: t.name, Error: fmt.Sprintf("the driver's process ended: %v: %s", err, line)})
	}
	return rows
}

// compileAll is the child: it compiles every variant of every kernel for the first device and prints a row each.
func compileAll(kernels []*vk.Kernel, out *json.Encoder) error {
	in, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		return err
	}
	list := in.Devices()
	if len(list) == 0 {
		return vk.ErrNoDevice
	}
	compiler, err := in.NewCompiler(list[0])
	if err != nil {
		return err
	}
	defer compiler.Close()
	for _, k := range kernels {
		for _, v := range variants(k, list[0].Limits) {
			r := row{Kernel: v.name}
			c, err := compiler.Compile(k, v.spec)
			if err != nil {
				r.Error = err.Error()
			} else {
				r.Workgroup, r.Subgroup = c.Workgroup[0]*c.Workgroup[1]*c.Workgroup[2], c.SubgroupSize
				r.Stats = map[string]float64{}
				for _, s := range c.Stats {
					r.Stats[s.Name] = s.Value
				}
			}
			if err := out.Encode(r); err != nil {
				return err
			}
		}
	}
	return nil
}

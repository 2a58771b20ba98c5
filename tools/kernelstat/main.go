// Command kernelstat compiles the committed kernels for GPUs that this machine does not have, in the forms in which
// training runs them there, and prints what the compilers say as a page: registers, spills, predicted cycles.
// bench/kernels.md is that page.
//
//	tools/kernelstat/mesa.sh /tmp/mesa                      gets Mesa 26.1.6 from Debian, once
//	go run ./tools/kernelstat -mesa /tmp/mesa               its compilers for AMD, Intel, NVIDIA, Qualcomm and Apple
//	go run ./tools/kernelstat                               AMD alone, by the Mesa of this machine, up to version 25
//	go run ./tools/kernelstat -here                         by the driver of this machine's device, if it tells
//	go run ./tools/kernelstat -kernels rasterize,sort_scan  these kernels
//
// Drivers read from the environment which GPU they have, so each GPU has a child process.
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

	"vksplat/vk"
)

type options struct {
	mesa, gpus, kernels string
	here, child, step   bool
}

// row is one compiled form of a kernel; the child prints them as JSON lines. Error rows have only Name, GPU and Error.
type row struct {
	Name, Vendor, GPU, Driver string
	Step                      bool // training steps run it
	Subgroup                  uint32
	Stats                     map[string]float64
	Error                     string
}

func main() {
	var o options
	flag.StringVar(&o.mesa, "mesa", "", "the `folder` that mesa.sh filled")
	flag.StringVar(&o.gpus, "gpus", "", "compile only for these GPUs, by their `names` in the page")
	flag.StringVar(&o.kernels, "kernels", "", "`names` of the kernels to compile, all by default")
	flag.BoolVar(&o.step, "step", false, "compile only what training steps run")
	flag.BoolVar(&o.here, "here", false, "compile for the device of this machine")
	flag.BoolVar(&o.child, "child", false, "internal: compile for the device that the environment offers, print JSON")
	flag.Parse()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kernelstat:", err)
		os.Exit(1)
	}
}

func run(o options, w io.Writer) error {
	if o.child {
		return compileAll(o, json.NewEncoder(w))
	}
	list, err := targets(o)
	if err != nil {
		return err
	}
	var rows []row
	for _, t := range list {
		rows = append(rows, t.measure(o)...)
	}
	_, err = io.WriteString(w, page(rows))
	return err
}

// measure runs the child for one GPU. A driver that crashes costs the rest of its rows and says so.
func (t *target) measure(o options) (rows []row) {
	failed := func(err error) []row { return append(rows, row{Vendor: t.vendor, GPU: t.gpu, Error: err.Error()}) }
	self, err := os.Executable()
	if err != nil {
		return failed(err)
	}
	// Mesa 22.3 crashes when asked for the free memory of an integrated GPU that is not there.
	dir, err := os.MkdirTemp("", "kernelstat")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	limits := filepath.Join(dir, "limits.json")
	if err := os.WriteFile(limits, []byte(`{"memoryBudget": false}`), 0o600); err != nil {
		return failed(err)
	}
	args := append(slices.Clone(t.command), self, "-child", "-kernels="+o.kernels, fmt.Sprintf("-step=%t", o.step))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), "VKSPLAT_LIMITS="+limits, "MESA_SHADER_CACHE_DISABLE=true"), t.env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return failed(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r row
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			r.Vendor, r.GPU = t.vendor, t.gpu
			rows = append(rows, r)
		}
	}
	if err := cmd.Wait(); err != nil {
		text := strings.TrimSpace(said.String())
		return failed(fmt.Errorf("the driver's process ended: %w: %s", err, text[strings.LastIndex(text, "\n")+1:]))
	}
	return rows
}

// compileAll is the child: it compiles the forms of kernels for the first device and prints a row for each.
func compileAll(o options, out *json.Encoder) error {
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
	forms, err := formsFor(compiler.Device(), o)
	if err != nil {
		return err
	}
	for _, f := range forms {
		r := row{Name: f.name(), Driver: list[0].Driver, Step: f.step}
		c, err := compiler.Compile(f.Kernel, f.Spec)
		if err != nil {
			r.Error = err.Error()
		} else {
			r.Subgroup, r.Stats = c.SubgroupSize, map[string]float64{}
			for _, s := range c.Stats {
				r.Stats[s.Name] = s.Value
			}
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The numbers that drivers report, under the names that RADV, ANV, NVK, Turnip, Honeykrisp and NVIDIA give them.
var (
	registers    = []string{"VGPRs", "Max live registers", "Number of GPRs", "Registers used", "GPRs", "Register Count"}
	spills       = []string{"Spilled VGPRs", "Spilled SGPRs", "Spills", "Spill Count", "Spills to memory", "STP Count"}
	scratch      = []string{"Scratch size", "Scratch Memory Size", "Scratch", "SLM size", "Local Memory Size"}
	instructions = []string{"Instructions", "Instruction Count", "Instruction count"}
	cycles       = []string{"Latency", "Cycles", "Cycle Count", "Static cycle count"}
	busyCycles   = []string{"Inverse Throughput"}
)

// value adds up what a row has under any of names; -1 if it has none.
func (r *row) value(names []string) int {
	sum := -1
	for _, name := range names {
		if v, ok := r.Stats[name]; ok {
			if name == "Local Memory Size" { // NVIDIA's driver 580 has another number in the upper half
				v = float64(uint64(v) & math.MaxUint32)
			}
			sum = max(sum, 0) + int(v)
		}
	}
	return sum
}

// cost is the cycles that the compiler predicts, or the instructions where it predicts none.
func (r *row) cost() int {
	if n := r.value(cycles); n >= 0 {
		return n
	}
	return r.value(instructions)
}

// memory words the registers that a row has spilt, and the bytes of memory that a lane has; "" for none.
func (r *row) memory() string {
	var parts []string
	if n := r.value(spills); n > 0 {
		parts = append(parts, fmt.Sprintf("%d spilt", n))
	}
	if n := r.value(scratch); n > 0 {
		parts = append(parts, fmt.Sprintf("%d B", n))
	}
	return strings.Join(parts, " ")
}

// cell is what the table says of a row.
func (r *row) cell() string {
	text := fmt.Sprintf("%d: %d, %d", r.Subgroup, r.value(registers), r.cost())
	if n := r.value(busyCycles); n >= 0 {
		text += fmt.Sprintf("/%d", n)
	}
	if memory := r.memory(); memory != "" {
		text += ", **" + memory + "**"
	}
	return text
}

// page prints a table of training steps for each driver, and what uses memory or does not compile.
func page(rows []row) string {
	compiled := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.Error != "" })
	text := intro
	for _, vendor := range distinct(compiled, func(r row) string { return r.Vendor }) {
		of := slices.DeleteFunc(slices.Clone(compiled), func(r row) bool { return r.Vendor != vendor })
		text += fmt.Sprintf("\n## %s, %s\n\n%s", vendor, of[0].Driver, stepTable(of))
	}
	var memory, failed []string
	for _, name := range distinct(compiled, func(r row) string { return r.Name }) {
		found := ""
		for _, r := range compiled {
			if m := r.memory(); r.Name == name && m != "" {
				found += fmt.Sprintf(", %s %s", r.GPU, m)
			}
		}
		if found != "" {
			memory = append(memory, "| "+name+" | "+found[2:]+" |\n")
		}
	}
	for _, r := range rows {
		if r.Error != "" {
			failed = append(failed, "- "+strings.TrimSpace(r.GPU+" "+r.Name)+": "+r.Error+"\n")
		}
	}
	if len(memory) > 0 {
		text += "\n## What spills, or has arrays in memory\n\n| kernel | |\n|---|---|\n" + strings.Join(memory, "")
	}
	if len(failed) > 0 {
		text += "\n## What does not compile\n\n" + strings.Join(failed, "")
	}
	return text
}

// distinct lists the values of rows, each once.
func distinct(rows []row, value func(row) string) (list []string) {
	for _, r := range rows {
		if v := value(r); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// stepTable prints the kernels of steps on a vendor's GPUs.
func stepTable(rows []row) string {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !r.Step })
	gpus := distinct(rows, func(r row) string { return r.GPU })
	text := "| kernel | " + strings.Join(gpus, " | ") + " |\n|---|" + strings.Repeat("---|", len(gpus)) + "\n"
	for _, name := range distinct(rows, func(r row) string { return r.Name }) {
		text += "| " + name + " |"
		for _, gpu := range gpus {
			i := slices.IndexFunc(rows, func(r row) bool { return r.Name == name && r.GPU == gpu })
			if i >= 0 {
				text += " " + rows[i].cell()
			}
			text += " |"
		}
		text += "\n"
	}
	return text
}

// intro of the page.
const intro = "# Compiled kernels\n\nMade by `make kernels` for GPUs that were not there. " +
	`The tables have what a training step runs, in the order of
its passes: by 3DGS and MCMC, in full and mixed precision. A cell is the size of subgroups, the registers as the
compiler counts them, and the cycles that it predicts of a subgroup; on AMD alone / while others keep the SIMD busy.
Qualcomm's and Apple's compilers predict none: there it is instructions. Compilers guess how often loops turn, so
compare a kernel with itself, in one size of subgroups. The last table has all other forms of kernels, too.
`

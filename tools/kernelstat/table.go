package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"vksplat/vk"
)

// variant is one choice of specialization constants.
type variant struct {
	name string
	spec []uint32
}

// needed are constants that mean nothing without another, which is switched on with them.
var needed = map[string]string{"PACKED_STATES": "KEEP_STATES"}

// variants lists the forms in which a kernel is worth compiling for a device: its defaults; each constant that is off
// by default switched on, which is how kernels choose between their uses; and both for every subgroup size that the
// device lets a kernel ask for.
func variants(k *vk.Kernel, l vk.Limits) []variant {
	sizes := []uint32{0}
	if slices.ContainsFunc(k.Specs, func(s vk.Spec) bool { return s.Name == "SUBGROUP_SIZE" }) {
		sizes = sizes[:0]
		for n := max(l.MinSubgroupSize, 1); n <= l.MaxSubgroupSize; n *= 2 {
			sizes = append(sizes, n)
		}
	}
	var list []variant
	for _, size := range sizes {
		spec := specFor(k, size)
		list = append(list, variant{k.Name, spec})
		for i, s := range k.Specs {
			if s.Default == 0 {
				on, name := slices.Clone(spec), k.Name
				on[i] = 1
				other := slices.IndexFunc(k.Specs, func(o vk.Spec) bool { return o.Name == needed[s.Name] })
				if other >= 0 {
					on[other], name = 1, name+" "+needed[s.Name]
				}
				list = append(list, variant{name + " " + s.Name, on})
			}
		}
	}
	return list
}

// specFor gives the constants for a subgroup size (0: the kernel names none). What hangs on the size follows by name:
// the number of subgroups of a workgroup, and a workgroup that is one subgroup by default stays one.
func specFor(k *vk.Kernel, subgroup uint32) []uint32 {
	spec := make([]uint32, len(k.Specs))
	group, single := k.Local[0], false
	for _, s := range k.Specs {
		single = single || s.Name == "SUBGROUP_SIZE" && s.Default == k.Local[0]
	}
	if single && subgroup > 0 {
		group = subgroup
	}
	for i, s := range k.Specs {
		spec[i] = s.Default
		switch {
		case subgroup == 0:
		case s.Name == "SUBGROUP_SIZE":
			spec[i] = subgroup
		case s.Name == "N_SUBGROUPS":
			spec[i] = group / subgroup
		case int(s.ID) == k.LocalSpecID:
			spec[i] = group
		}
	}
	return spec
}

// column is one number of the table, under the names that drivers give it (RADV, ANV, NVIDIA); several that a driver
// gives are added.
type column struct {
	title string
	names []string
}

var columns = []column{
	{"vector registers", []string{"VGPRs", "Register Count", "Max live registers"}},
	{"scalar registers", []string{"SGPRs"}},
	{"spilled vector", []string{"Spilled VGPRs", "Spill Count"}},
	{"spilled scalar", []string{"Spilled SGPRs"}},
	{"scratch B", []string{"Scratch size", "Scratch Memory Size", "Local Memory Size"}},
	{"shared B", []string{"LDS size", "Workgroup Memory Size", "Shared Memory Size"}},
	{"subgroups per SIMD", []string{"Subgroups per SIMD"}},
	{"instructions", []string{"Instructions", "Instruction Count"}},
	{"code B", []string{"Code size", "Binary Size"}},
}

// spills and scratch are the columns in which anything but 0 is a finding.
var findings = []string{"spilled vector", "spilled scalar", "scratch B"}

// value looks a column up in a row.
func (r row) value(c column) (sum float64, known bool) {
	for _, name := range c.names {
		if v, ok := r.Stats[name]; ok {
			if name == "Local Memory Size" { // NVIDIA's driver 580 has another number in the upper half
				v = float64(uint64(v) & math.MaxUint32)
			}
			sum, known = sum+v, true
		}
	}
	return sum, known
}

// table prints the rows kernel by kernel, then what is to be looked into.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| kernel | device | workgroup | subgroup |")
	rule := "|---|---|---:|---:|"
	for _, c := range columns {
		b.WriteString(" " + c.title + " |")
		rule += "---:|"
	}
	b.WriteString("\n" + rule + "\n")
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b row) int { return strings.Compare(a.Kernel, b.Kernel) })
	var found, failed []string
	for _, r := range rows {
		if r.Error != "" {
			failed = append(failed, strings.TrimSpace(r.Device+" "+r.Kernel)+": "+r.Error)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d |", r.Kernel, r.Device, r.Workgroup, r.Subgroup)
		for _, c := range columns {
			text := "-"
			if v, known := r.value(c); known {
				text = strconv.FormatFloat(v, 'f', -1, 64)
				if v > 0 && slices.Contains(findings, c.title) {
					found = append(found,
						fmt.Sprintf("%s on %s, subgroup %d: %s %s", r.Kernel, r.Device, r.Subgroup, c.title, text))
				}
			}
			b.WriteString(" " + text + " |")
		}
		b.WriteString("\n")
	}
	list(&b, "Spills and scratch", found)
	list(&b, "Not compiled", failed)
	return b.String()
}

func list(b *strings.Builder, title string, lines []string) {
	b.WriteString("\n" + title + ":")
	if len(lines) == 0 {
		b.WriteString(" none.\n")
		return
	}
	b.WriteString("\n\n")
	for _, l := range lines {
		b.WriteString("- " + l + "\n")
	}
}

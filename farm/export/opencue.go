package export

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"

	"vksplat/farm/spec"
	"vksplat/internal/fault"
)

// Bounds of Cuebot's database and of its reader of specs.
const (
	mostLayers     = 1000
	longestCommand = 4000 // characters
)

// cueName is what Cuebot takes for the names of shows, shots, layers and tags once dashes are underscores.
var cueName = regexp.MustCompile(`^[A-Za-z0-9_.]{3,}$`)

// userForm is the name of a user.
var userForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// cueSpec is a job as Cuebot reads it (CJSL 1.15), as far as jobs need it. The order of fields is that of its DTD.
type cueSpec struct {
	XMLName xml.Name    `xml:"spec"`
	Show    string      `xml:"show"`
	Shot    string      `xml:"shot"`
	User    string      `xml:"user"`
	Job     cueJob      `xml:"job"`
	Depends []cueDepend `xml:"depends>depend"`
}

type cueJob struct {
	Name       string     `xml:"name,attr"`
	MaxRetries int        `xml:"maxretries"`
	Layers     []cueLayer `xml:"layers>layer"`
}

type cueLayer struct {
	Name      string `xml:"name,attr"`
	Type      string `xml:"type,attr"`
	Command   string `xml:"cmd"`
	Range     string `xml:"range"`
	Chunk     int    `xml:"chunk"`
	Cores     string `xml:"cores,omitempty"`
	Memory    string `xml:"memory,omitempty"`
	GPUs      int    `xml:"gpus,omitempty"`
	GPUMemory string `xml:"gpu_memory,omitempty"`
	Timeout   int    `xml:"timeout,omitempty"` // minutes
	Tags      string `xml:"tags,omitempty"`
}

type cueDepend struct {
	Type     string `xml:"type,attr"`
	AnyFrame string `xml:"anyframe,attr"`
	Job      string `xml:"depjob"`
	Layer    string `xml:"deplayer"`
	OnJob    string `xml:"onjob"`
	OnLayer  string `xml:"onlayer"`
}

const cueHead = `<?xml version="1.0"?>
<!DOCTYPE spec PUBLIC "SPI Cue  Specification Language" "http://localhost:8080/spcue/dtd/cjsl-1.15.dtd">
`

// cueFrame and cueSubmit are scripts of the export.
const (
	cueFrame = `#!/bin/bash
# The command of every frame. RQD names a frame's GPUs in CUE_GPU_CORES, by the numbers of nvidia-smi.
[ -n "$CUE_GPU_CORES" ] && export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES="$CUE_GPU_CORES"
` + tryText
	cueSubmit = `#!/usr/bin/env python3
# Submits the job by OpenCue's Python package (opencue_pycue), which finds Cuebot by CUEBOT_HOSTS.
import pathlib

import opencue.api

for job in opencue.api.launchSpecAndWait(pathlib.Path(__file__).with_name("` + OpenCueName + `").read_text()):
    print(job.name())
`
)

// Names of these scripts.
const (
	cueFrameName  = "frame.sh"
	cueSubmitName = "submit.py"
)

// OpenCue writes the job as a spec in Cuebot's XML, a layer for each stage. Frames are counted from 0 in each layer, so
// that those of two layers can be paired. Cuebot would repeat any frame that fails, so the frame's command repeats.
func OpenCue(j *spec.Job, p *spec.Plan, o Options) ([]File, error) {
	if err := o.shared(); err != nil {
		return nil, err
	}
	stages, _, place := stagesOf(p)
	if err := o.checkCue(stages); err != nil {
		return nil, err
	}
	name := cueText(label(j))
	s := cueSpec{Show: o.Show, Shot: o.Shot, User: o.User, Job: cueJob{Name: name}}
	for i := range stages {
		st := &stages[i]
		layer, err := o.layer(st)
		if err != nil {
			return nil, err
		}
		s.Job.Layers = append(s.Job.Layers, layer)
		for _, n := range st.needs {
			how := "LAYER_ON_LAYER"
			if pairs(p, st, &stages[n], place) {
				how = "FRAME_BY_FRAME"
			}
			s.Depends = append(s.Depends, cueDepend{how, "False", name, layer.Name, name, cueText(stages[n].name)})
		}
	}
	data, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write XML: %w", err)
	}
	return []File{document(j), {Name: OpenCueName, Data: []byte(cueHead + string(data) + "\n")},
		{Name: cueFrameName, Data: []byte(cueFrame), Program: true},
		{Name: cueSubmitName, Data: []byte(cueSubmit), Program: true}}, nil
}

// cueText makes a name one of OpenCue's, which have no dashes.
func cueText(name string) string { return strings.ReplaceAll(name, "-", "_") }

func (o *Options) checkCue(stages []stage) error {
	if err := checkPins(stages); err != nil {
		return err
	}
	if len(stages) > mostLayers {
		return usage("", "divide the job",
			"the job has %d stages, OpenCue takes %d layers at most", len(stages), mostLayers)
	}
	for _, v := range []struct{ flag, text string }{{"show", o.Show}, {"shot", o.Shot}} {
		if !cueName.MatchString(v.text) {
			return usage(v.text, "three or more letters A to Z, digits, dots and underscores, with --"+v.flag,
				"this is no %s of OpenCue", v.flag)
		}
	}
	if !userForm.MatchString(o.User) || o.User == "root" {
		return usage(o.User, "say with "+fault.Setting("user")+" who the job belongs to",
			"OpenCue runs no jobs of this user")
	}
	return nil
}

// layer makes the layer of a stage.
func (o *Options) layer(st *stage) (cueLayer, error) {
	dir := o.Dir + "/"
	words := append([]string{"bash", dir + cueFrameName}, append(tryArgs(st.retry), o.Program)...)
	words = append(words, o.runTask(dir+DocumentName)...)
	l := cueLayer{Name: cueText(st.name), Type: "Render", Range: fmt.Sprintf("0-%d", len(st.tasks)-1), Chunk: 1,
		Command: strings.Join(append(words, "--of", rangeText(st.tasks), "--index", "#IFRAME#"), " ")}
	if len(st.tasks) == 1 {
		l.Range = "0"
	}
	if len(l.Command) > longestCommand {
		return l, usage("", "write tasks of one kind after each other, or divide the job",
			"the indices of stage %s are too scattered for a command", st.name)
	}
	if o.CPUs > 0 {
		l.Cores = fmt.Sprintf("%d.0", o.CPUs)
	}
	if o.MemoryGB > 0 {
		l.Memory = fmt.Sprintf("%dg", o.MemoryGB)
	}
	if n := o.gpusOf(st); n > 0 { // Cuebot wants both, and neither 0
		l.GPUs, l.GPUMemory = n, fmt.Sprintf("%dm", max(st.limits.VRAMMinMB, 1024))
	}
	if d := st.limits.TaskTimeout; d > 0 {
		l.Timeout = allAttempts(d, st.retry)
	}
	if st.pool != spec.DefaultPool {
		if l.Tags = cueText(st.pool); !cueName.MatchString(l.Tags) {
			return l, usage(st.pool, "pools become tags, which have three characters or more",
				"this pool is no tag of OpenCue")
		}
	}
	return l, nil
}

// pairs says that each task of a stage needs just the one of the same place in another.
func pairs(p *spec.Plan, st, other *stage, place []int) bool {
	if len(st.tasks) != len(other.tasks) {
		return false
	}
	for at, i := range st.tasks {
		n := 0
		for _, k := range p.Tasks[i].Needs {
			if at2 := place[k]; at2 < len(other.tasks) && other.tasks[at2] == k {
				if n++; at2 != at {
					return false
				}
			}
		}
		if n != 1 {
			return false
		}
	}
	return true
}

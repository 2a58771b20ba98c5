package export

import (
	"bytes"
	"encoding/json"
	"fmt"

	"vksplat/farm/spec"
)

// Bounds of templates (Open Job Description, jobtemplate-2023-09).
const (
	mostSteps     = 100
	longestRange  = 1024 // characters of an expression of indices
	specParameter = "Spec"
)

// A template, as far as jobs need one.
type template struct {
	Version     string      `json:"specificationVersion"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Parameters  []parameter `json:"parameterDefinitions"`
	Steps       []step      `json:"steps"`
}

type parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Object      string `json:"objectType,omitempty"`
	Flow        string `json:"dataFlow,omitempty"`
	Default     string `json:"default"`
	Description string `json:"description"`
}

type step struct {
	Name   string       `json:"name"`
	Needs  []dependency `json:"dependencies,omitempty"`
	Host   *host        `json:"hostRequirements,omitempty"`
	Space  space        `json:"parameterSpace"`
	Script stepScript   `json:"script"`
}

type dependency struct {
	On string `json:"dependsOn"`
}

type host struct {
	Amounts    []amount    `json:"amounts,omitempty"`
	Attributes []attribute `json:"attributes,omitempty"`
}

type amount struct {
	Name string `json:"name"`
	Min  int    `json:"min"`
}

type attribute struct {
	Name  string   `json:"name"`
	AnyOf []string `json:"anyOf"`
}

type space struct {
	Parameters []indexParameter `json:"taskParameterDefinitions"`
}

type indexParameter struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Range string `json:"range"`
}

type stepScript struct {
	Actions actions `json:"actions"`
}

type actions struct {
	OnRun action `json:"onRun"`
}

type action struct {
	Command string       `json:"command"`
	Args    []string     `json:"args"`
	Timeout int          `json:"timeout,omitempty"` // seconds
	Cancel  cancellation `json:"cancelation"`
}

type cancellation struct {
	Mode   string `json:"mode"`
	Notice int    `json:"notifyPeriodInSeconds"`
}

// OpenJD writes the job as a template in JSON, a step for each stage. The job document lies beside it.
func OpenJD(j *spec.Job, p *spec.Plan, o Options) ([]File, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	stages, _, _ := stagesOf(p)
	if err := checkPins(stages); err != nil {
		return nil, err
	}
	if len(stages) > mostSteps {
		return nil, usage("", "divide the job", "the job has %d stages, a template has %d steps at most", len(stages), mostSteps)
	}
	t := template{Version: "jobtemplate-2023-09", Name: label(j), Description: "Made by vksplat farm export; the job itself is in " + DocumentName + ".",
		Parameters: []parameter{
			{Name: specParameter, Type: "PATH", Object: "FILE", Flow: "IN", Default: DocumentName, Description: "the job document"},
			{Name: "Program", Type: "STRING", Default: o.Program, Description: "vksplat on the workers"},
		}}
	for i := range stages {
		s, err := o.step(stages, i)
		if err != nil {
			return nil, err
		}
		t.Steps = append(t.Steps, s)
	}
	data, err := jsonText(t)
	if err != nil {
		return nil, err
	}
	return []File{document(j), {Name: OpenJDName, Data: data}}, nil
}

// step makes the step of a stage.
func (o *Options) step(stages []stage, n int) (step, error) {
	st := &stages[n]
	indices := rangeText(st.tasks)
	if len(indices) > longestRange {
		return step{}, usage("", "write tasks of one kind after each other, or divide the job", "the indices of stage %s are too scattered for a template", st.name)
	}
	s := step{Name: st.name, Space: space{[]indexParameter{{"Index", "INT", indices}}}}
	for _, k := range st.needs {
		s.Needs = append(s.Needs, dependency{stages[k].name})
	}
	var h host
	if st.gpu && o.GPUs > 0 {
		h.Amounts = append(h.Amounts, amount{"amount.worker.gpu", o.GPUs})
		if st.limits.VRAMMinMB > 0 {
			h.Amounts = append(h.Amounts, amount{"amount.worker.gpu.memory", st.limits.VRAMMinMB})
		}
	}
	if o.CPUs > 0 {
		h.Amounts = append(h.Amounts, amount{"amount.worker.vcpu", o.CPUs})
	}
	if st.pool != spec.DefaultPool {
		h.Attributes = append(h.Attributes, attribute{"attr.vksplat.pool", []string{st.pool}})
	}
	if h.Amounts != nil || h.Attributes != nil {
		s.Host = &h
	}
	s.Script.Actions.OnRun = action{Command: "{{Param.Program}}",
		Args:   append(o.runTask("{{Param."+specParameter+"}}"), "--index", "{{Task.Param.Index}}", "--progress", "openjd"),
		Cancel: cancellation{"NOTIFY_THEN_TERMINATE", int(grace.Seconds())}}
	if d := st.limits.TaskTimeout; d > 0 {
		s.Script.Actions.OnRun.Timeout = 60 * minutes(d)
	}
	return s, nil
}

// jsonText writes what kubectl and openjd read as YAML, too: JSON is YAML of which nobody doubts the quotes.
func jsonText(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("export: write JSON: %w", err)
	}
	return b.Bytes(), nil
}

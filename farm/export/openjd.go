package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"vksplat/farm/spec"
)

// Bounds of templates (Open Job Description, jobtemplate-2023-09).
const (
	mostSteps    = 100
	longestRange = 1024 // characters of an expression of indices
)

// Parameters of the job that are paths: job attachments copy them, path mapping rewrites them.
const (
	specParameter    = "Spec"
	inputsParameter  = "Inputs"
	outputsParameter = "Outputs"
)

// resultsName is the folder in the export that Outputs is by default.
const resultsName = "results"

// OpenJD writes the job as a job bundle: a template in JSON with a step for each stage, values for its parameters, and
// the job document.
func OpenJD(j *spec.Job, p *spec.Plan, o Options) ([]File, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Roots != "" {
		return nil, usage(o.Roots, "roots are the parameters Inputs and Outputs: openjd run ... -p Inputs=/srv/scans",
			"an OpenJD job takes no file of roots")
	}
	stages, _, _ := stagesOf(p)
	if err := checkPins(stages); err != nil {
		return nil, err
	}
	if len(stages) > mostSteps {
		return nil, usage("", "divide the job",
			"the job has %d stages, a template has %d steps at most", len(stages), mostSteps)
	}
	var steps []object
	for i := range stages {
		s, err := o.step(j, stages, i)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	t := object{"specificationVersion": "jobtemplate-2023-09", "name": label(j), "steps": steps,
		"parameterDefinitions": o.parameters(j),
		"description":          "Made by vksplat farm export; the job itself is in " + DocumentName + "."}
	data, err := jsonText(t)
	if err != nil {
		return nil, err
	}
	values := []object{{"name": outputsParameter, "value": o.Outputs}}
	if j.Store.Inputs != j.Store.Outputs {
		values = append([]object{{"name": inputsParameter, "value": o.Inputs}}, values...)
	}
	bundle, err := jsonText(object{"parameterValues": values})
	if err != nil {
		return nil, err
	}
	return []File{document(j), {Name: OpenJDName, Data: data}, {Name: "parameter_values.json", Data: bundle}}, nil
}

// parameters returns those of the job. Inputs has no default: a template may only name folders below its own. A job
// whose inputs and results share one root has Outputs alone.
func (o *Options) parameters(j *spec.Job) []object {
	path := func(name, what, flow, text string) object {
		return object{"name": name, "type": "PATH", "objectType": what, "dataFlow": flow, "description": text}
	}
	document := path(specParameter, "FILE", "IN", "the job document")
	document["default"] = DocumentName
	results := path(outputsParameter, "DIRECTORY", "INOUT",
		"folder for results, the root "+j.Store.Outputs+" of the job")
	results["default"] = resultsName
	list := []object{document}
	if j.Store.Inputs != j.Store.Outputs {
		results["dataFlow"] = "OUT"
		list = append(list, path(inputsParameter, "DIRECTORY", "IN",
			"folder of the captures, the root "+j.Store.Inputs+" of the job"))
	}
	return append(list, results,
		object{"name": "Program", "type": "STRING", "default": o.Program, "description": "vksplat on the workers"})
}

// rootsTable is the file of roots that a session writes, from the paths on its worker. Between three quotes TOML knows
// no escapes, so backslashes stand for themselves.
func rootsTable(j *spec.Job) string {
	line := func(root, name string) string { return fmt.Sprintf("%q = '''{{Param.%s}}'''\n", root, name) }
	text := line(j.Store.Outputs, outputsParameter)
	if j.Store.Inputs != j.Store.Outputs {
		text = line(j.Store.Inputs, inputsParameter) + text
	}
	return text
}

// step makes the step of a stage.
func (o *Options) step(j *spec.Job, stages []stage, n int) (object, error) {
	st := &stages[n]
	indices := rangeText(st.tasks)
	if len(indices) > longestRange {
		return nil, usage("", "write tasks of one kind after each other, or divide the job",
			"the indices of stage %s are too scattered for a template", st.name)
	}
	worker := Options{Roots: "{{Task.File.Roots}}", Work: cmp.Or(o.Work, "{{Session.WorkingDirectory}}/work")}
	args := append([]string{"{{Task.File.Try}}"}, append(tryArgs(st.retry), "{{Param.Program}}")...)
	args = append(args, worker.runTask("{{Param."+specParameter+"}}")...)
	args = append(args, "--index", "{{Task.Param.Index}}", "--progress", "openjd")
	onRun := object{"command": "bash", "args": args,
		"cancelation": object{"mode": "NOTIFY_THEN_TERMINATE", "notifyPeriodInSeconds": int(grace.Seconds())}}
	if d := st.limits.TaskTimeout; d > 0 {
		onRun["timeout"] = 60 * allAttempts(d, st.retry)
	}
	file := func(name, as, text string) object {
		return object{"name": name, "filename": as, "type": "TEXT", "data": text}
	}
	s := object{"name": st.name,
		"parameterSpace": object{"taskParameterDefinitions": []object{{"name": "Index", "type": "INT",
			"range": indices}}},
		"script": object{"actions": object{"onRun": onRun},
			"embeddedFiles": []object{file("Roots", "roots.toml", rootsTable(j)), file("Try", "try.sh", tryText)}}}
	var needs []object
	for _, k := range st.needs {
		needs = append(needs, object{"dependsOn": stages[k].name})
	}
	if needs != nil {
		s["dependencies"] = needs
	}
	if h := o.host(st); len(h) > 0 {
		s["hostRequirements"] = h
	}
	return s, nil
}

// host says what a worker must have for the tasks of a stage.
func (o *Options) host(st *stage) object {
	h := object{}
	var amounts []object
	least := func(name string, n int) {
		if n > 0 {
			amounts = append(amounts, object{"name": "amount.worker." + name, "min": n})
			h["amounts"] = amounts
		}
	}
	if n := o.gpusOf(st); n > 0 {
		least("gpu", n)
		least("gpu.memory", st.limits.VRAMMinMB)
	}
	least("vcpu", o.CPUs)
	least("memory", 1024*o.MemoryGB)
	if st.pool != spec.DefaultPool {
		h["attributes"] = []object{{"name": "attr.vksplat.pool", "anyOf": []string{st.pool}}}
	}
	return h
}

// jsonText writes JSON, which kubectl and openjd read as the YAML that it is.
func jsonText(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return b.Bytes(), nil
}

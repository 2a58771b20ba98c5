package export

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vksplat/farm/spec"
	"vksplat/internal/fault"
)

// Bounds of Indexed Jobs, and what their pods see.
const (
	mostFailed    = 10_000  // failed indices, where there are more than that
	longestList   = 100_000 // characters of a list of tasks: an argument has 128 KiB at most
	documentMount = "/job"
	rootsMount    = "/roots"
	workMount     = "/work"
	documentMap   = "00-document.json"
)

// finalCodes are exit codes after which another attempt cannot succeed: run-task's own, that of a program that fails
// without saying why, and the two of one that cannot be started. Kubernetes has no way to say "all but 75 and signals".
var finalCodes = []int{1, 2, 65, 78, 126, 127}

// imageForm is what names an image, and domainForm what names objects.
var (
	imageForm  = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._/:@-]*$`)
	domainForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	gpuForm    = regexp.MustCompile(`^[a-z0-9.-]+/[A-Za-z0-9._-]+$`)
)

// object is one of Kubernetes'.
type object map[string]any

// kube is what the manifests of a job share.
type kube struct {
	*Options
	job    *spec.Job
	label  string
	stages []*stage
	roots  []string
}

// Kubernetes writes the document as a ConfigMap and each stage as an Indexed Job, in JSON, and a script that creates
// each Job once those that it needs are complete: Kubernetes itself knows no order among Jobs.
func Kubernetes(j *spec.Job, p *spec.Plan, o Options) ([]File, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	k := &kube{Options: &o, job: j, label: label(j), roots: []string{j.Store.Inputs}}
	if j.Store.Outputs != j.Store.Inputs {
		k.roots = append(k.roots, j.Store.Outputs)
	}
	k.stages = stagesOf(p)
	if err := k.check(); err != nil {
		return nil, err
	}
	files := []File{manifest(documentMap, k.configMap())}
	for _, st := range k.stages {
		files = append(files, manifest(st.name+".json", k.indexedJob(st)))
	}
	return append(files, File{Name: SubmitName, Data: k.submit(), Program: true}), nil
}

// name is that of a stage's Job.
func (k *kube) name(st *stage) string { return k.label + "-" + st.name }

// claim is what a root is mounted from.
func (k *kube) claim(root string) string {
	if c := k.Claims[root]; c != "" {
		return c
	}
	return root
}

func (k *kube) check() error {
	if err := checkPins(k.stages); err != nil {
		return err
	}
	if !imageForm.MatchString(k.Image) {
		return usage(k.Image, "as in "+fault.Setting("image")+" registry.example.org/vksplat:1.0",
			"a container image is needed")
	}
	if !gpuForm.MatchString(k.GPUResource) {
		return usage(k.GPUResource, "as in nvidia.com/gpu or amd.com/gpu", "not the name of a Kubernetes resource")
	}
	if k.Queue != "" && !domainForm.MatchString(k.Queue) {
		return usage(k.Queue, "", "not a queue name: only lower-case letters, digits, dots and dashes are allowed")
	}
	for root := range k.Claims {
		if !slices.Contains(k.roots, root) {
			return usage(root, "the job's roots are "+strings.Join(k.roots, " and "),
				"the job has no root of this name")
		}
	}
	for _, root := range k.roots {
		if c := k.claim(root); !domainForm.MatchString(c) {
			return usage(c, "name it with "+fault.Setting("claim")+" "+root+"=CLAIM",
				"not a valid name for a PersistentVolumeClaim")
		}
	}
	for _, st := range k.stages {
		if n := len(rangeText(st.tasks)); n > longestList {
			return usage("", "list tasks of one kind together, or split the job",
				"the task indices of stage %s have too many gaps", st.name)
		}
	}
	return nil
}

// labels mark all objects of the job.
func (k *kube) labels() object {
	return object{"app.kubernetes.io/name": "vksplat", "vksplat/job": k.label}
}

// configMap holds the document, and where pods see the roots.
func (k *kube) configMap() object {
	var roots strings.Builder
	for i, root := range k.roots {
		fmt.Fprintf(&roots, "%q = \"file://%s/%d\"\n", root, rootsMount, i)
	}
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": k.label, "labels": k.labels()},
		"data": object{DocumentName: string(k.job.Canonical()), "roots.toml": roots.String()}}
}

// indexedJob is the Job of a stage: a pod for each task, which is tried again until its attempts are used up, while
// those of others go on.
func (k *kube) indexedJob(st *stage) object {
	n := len(st.tasks)
	parallel := k.Parallel
	if parallel == 0 || parallel > n {
		parallel = n
	}
	failed := 0
	if st.retry.KeepGoing {
		failed = min(n, mostFailed)
	}
	labels := k.labels()
	if k.Queue != "" {
		labels["kueue.x-k8s.io/queue-name"] = k.Queue
	}
	return object{"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": k.name(st), "labels": labels},
		"spec": object{
			"completionMode": "Indexed", "completions": n, "parallelism": parallel,
			"backoffLimitPerIndex": st.retry.MaxAttempts - 1, "maxFailedIndexes": failed,
			"podReplacementPolicy": "Failed", "suspend": k.Queue != "",
			"podFailurePolicy": object{"rules": []object{
				{"action": "Ignore", "onPodConditions": []object{{"type": "DisruptionTarget", "status": "True"}}},
				{"action": "FailIndex",
					"onExitCodes": object{"containerName": "task", "operator": "In", "values": finalCodes}},
			}},
			"template": object{"metadata": object{"labels": k.labels()}, "spec": k.pod(st)},
		}}
}

// pod is one attempt of a task.
func (k *kube) pod(st *stage) object {
	resources, requests := object{}, object{}
	if k.CPUs > 0 {
		requests["cpu"] = strconv.Itoa(k.CPUs)
	}
	if k.MemoryGB > 0 {
		requests["memory"] = fmt.Sprintf("%dGi", k.MemoryGB)
	}
	if gb := st.limits.DiskMinGB; gb > 0 {
		requests["ephemeral-storage"] = fmt.Sprintf("%dGi", gb)
	}
	if len(requests) > 0 {
		resources["requests"] = requests
	}
	if n := k.gpusOf(st); n > 0 {
		resources["limits"] = object{k.GPUResource: strconv.Itoa(n)}
	}
	mounts := []object{{"name": "document", "mountPath": documentMount, "readOnly": true},
		{"name": "work", "mountPath": workMount}}
	volumes := []object{{"name": "document", "configMap": object{"name": k.label}},
		{"name": "work", "emptyDir": object{}}}
	for i, root := range k.roots {
		name := fmt.Sprintf("root-%d", i)
		readOnly := root != k.job.Store.Outputs
		mounts = append(mounts,
			object{"name": name, "mountPath": fmt.Sprintf("%s/%d", rootsMount, i), "readOnly": readOnly})
		volumes = append(volumes, object{"name": name,
			"persistentVolumeClaim": object{"claimName": k.claim(root), "readOnly": readOnly}})
	}
	o := Options{Roots: documentMount + "/roots.toml", Work: workMount}
	pod := object{"restartPolicy": "Never", "terminationGracePeriodSeconds": int(grace.Seconds()), "volumes": volumes,
		"containers": []object{{
			"name": "task", "image": k.Image,
			"command":   append([]string{k.Program}, o.runTask(documentMount+"/"+DocumentName)...),
			"args":      []string{"--of", rangeText(st.tasks), "--index", "$(JOB_COMPLETION_INDEX)"},
			"env":       []object{{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,graphics,utility"}},
			"resources": resources, "volumeMounts": mounts,
		}}}
	if st.pool != spec.DefaultPool {
		pod["nodeSelector"] = object{"vksplat/pool": st.pool}
	}
	return pod
}

// submit writes the script that creates the Jobs in their order.
func (k *kube) submit() []byte {
	var b strings.Builder
	var jobs []string
	for _, st := range k.stages {
		jobs = append(jobs, k.name(st))
	}
	fmt.Fprintf(&b, kubeText, k.label, documentMap, strings.Join(jobs, " \\\n\t"))
	for i, st := range k.stages {
		fmt.Fprintf(&b, "stage %s.json %s", st.name, jobs[i])
		for _, n := range st.needs {
			fmt.Fprintf(&b, " %s", jobs[n])
		}
		b.WriteString(" &\nstages+=($!)\n")
	}
	b.WriteString("code=0\nfor stage in \"${stages[@]}\"; do\n\twait \"$stage\" || code=1\ndone\nexit $code\n")
	return []byte(b.String())
}

const kubeText = `#!/bin/bash
# Creates job %s stage by stage and waits for its end. It can be stopped and started again: stages that are there
# already stay, except those that failed, which run again. What follows the name of this script goes to every kubectl,
# as in --namespace=lab.
cd "$(dirname "$0")" || exit
kubectl=(kubectl "$@")
"${kubectl[@]}" apply -f %s || exit

# conditions JOB prints those of a Job that hold, nothing if there is no such Job.
conditions() {
	"${kubectl[@]}" get job "$1" --ignore-not-found -o 'jsonpath={.status.conditions[?(@.status=="True")].type}'
}

# Before anything waits: a Job that failed earlier says nothing about this run. Its pods end before new ones begin.
for job in %s
do
	how=$(conditions "$job") || exit
	case " $how " in
	*" Failed "*) "${kubectl[@]}" delete job "$job" --cascade=foreground || exit ;;
	esac
done

# ended JOB waits for the end of a Job, and fails if it did.
ended() {
	while :; do
		[ -e "$left_out/$1" ] && return 1
		case " $(conditions "$1") " in
		*" Complete "*) return 0 ;;
		*" Failed "*) return 1 ;;
		esac
		sleep 10
	done
}

# stage FILE JOB NEEDS... creates a Job when those that it needs are complete, and waits for its end.
stage() {
	local file=$1 job=$2 need
	shift 2
	for need in "$@"; do
		ended "$need" || { echo "$job is left out: $need is not complete" >&2; : >"$left_out/$job"; return 1; }
	done
	"${kubectl[@]}" get job "$job" >/dev/null 2>&1 || "${kubectl[@]}" create -f "$file" ||
		{ : >"$left_out/$job"; return 1; }
	ended "$job" || { echo "$job failed" >&2; return 1; }
}

left_out=$(mktemp -d) || exit
trap 'rm -r "$left_out"' EXIT
stages=()
`

// manifest is a file of JSON, which kubectl reads as the YAML that it is.
func manifest(name string, v object) File {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // it is made of texts, numbers and lists
	}
	return File{Name: name, Data: append(data, '\n')}
}

package page

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// MetricsType is the form of the text that Metrics serves.
const MetricsType = "text/plain; version=0.0.4; charset=utf-8"

// Metrics serves the farm's numbers to Prometheus.
func Metrics(farm Farm) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are known here", http.StatusMethodNotAllowed)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), lookTimeout)
		defer cancel()
		var m metrics
		if err := m.collect(ctx, farm); err != nil {
			http.Error(w, scene.ErrorText(err), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", MetricsType)
		_, _ = w.Write(m.Bytes()) // what cannot be written, nobody waits for
	})
}

// metrics writes Prometheus' text.
type metrics struct{ bytes.Buffer }

// gauge begins a family.
func (m *metrics) gauge(name, help string) {
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// sample writes a value. Labels are pairs of names and values.
func (m *metrics) sample(name string, value float64, labels ...string) {
	m.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		fmt.Fprintf(m, `%s%s="%s"`, []string{"{", ","}[min(i, 1)], labels[i], labelEscapes.Replace(strings.ToValidUTF8(labels[i+1], "?")))
	}
	if len(labels) > 0 {
		m.WriteByte('}')
	}
	fmt.Fprintf(m, " %g\n", value)
}

func (m *metrics) collect(ctx context.Context, farm Farm) error {
	jobs, err := farm.List(ctx)
	if err != nil {
		return err
	}
	nodes, err := farm.Nodes(ctx)
	if err != nil {
		return err
	}
	m.jobs(jobs)
	m.outlook(jobs)
	m.nodes(nodes)
	m.devices(nodes)
	return nil
}

func (m *metrics) jobs(jobs []queue.JobStatus) {
	states, tasks := map[queue.JobState]int{}, map[queue.State]int{}
	for _, s := range queue.States {
		tasks[s] = 0
	}
	for _, j := range jobs {
		states[j.State]++
		for s, n := range j.Counts {
			tasks[s] += n
		}
	}
	m.gauge("vksplat_farm_jobs", "Jobs by state.")
	for _, s := range slices.Sorted(maps.Keys(states)) {
		m.sample("vksplat_farm_jobs", float64(states[s]), "state", string(s))
	}
	m.gauge("vksplat_farm_tasks", "Tasks of all jobs by state.")
	for _, s := range queue.States {
		m.sample("vksplat_farm_tasks", float64(tasks[s]), "state", string(s))
	}
	m.gauge("vksplat_farm_job_tasks", "Tasks of a job that has not ended, by state.")
	for _, j := range jobs {
		if j.State.Ended() {
			continue
		}
		for _, s := range queue.States {
			if n := j.Counts[s]; n > 0 {
				m.sample("vksplat_farm_job_tasks", float64(n), "job", j.Name, "owner", j.Owner, "state", string(s))
			}
		}
	}
}

func (m *metrics) nodes(nodes []queue.NodeStatus) {
	for _, family := range []struct {
		name, help string
		value      func(*queue.NodeStatus) float64
	}{
		{"vksplat_farm_node_devices", "Devices of a node.", func(n *queue.NodeStatus) float64 { return float64(len(n.Devices)) }},
		{"vksplat_farm_node_tasks", "Tasks that a node works on.", func(n *queue.NodeStatus) float64 { return float64(len(n.Tasks)) }},
		{"vksplat_farm_node_drained", "1 for a node that takes no more tasks.", func(n *queue.NodeStatus) float64 { return truth(n.Drain || n.Quarantine != "") }},
		{"vksplat_farm_node_heartbeat_seconds", "When a node was seen last, in Unix time.", func(n *queue.NodeStatus) float64 { return float64(n.Heartbeat.Unix()) }},
	} {
		m.gauge(family.name, family.help)
		for i := range nodes {
			m.sample(family.name, family.value(&nodes[i]), "node", nodes[i].Node, "version", cmp.Or(nodes[i].Version, "unknown"))
		}
	}
}

// outlook writes how fast jobs are that have not ended, and for how long they go on.
func (m *metrics) outlook(jobs []queue.JobStatus) {
	m.gauge("vksplat_farm_job_rate_per_second", "What the running tasks of a job do, by unit: steps of training, pictures of renders.")
	for _, j := range jobs {
		for _, unit := range slices.Sorted(maps.Keys(j.Rates)) {
			m.sample("vksplat_farm_job_rate_per_second", j.Rates[unit], "job", j.Name, "owner", j.Owner, "unit", unit)
		}
	}
	m.gauge("vksplat_farm_job_remaining_seconds", "Guess of the time until a job's last task is done.")
	for _, j := range jobs {
		if j.Left > 0 && !j.State.Ended() {
			m.sample("vksplat_farm_job_remaining_seconds", time.Duration(j.Left).Seconds(), "job", j.Name, "owner", j.Owner)
		}
	}
}

// devices writes what the devices of nodes do, as far as it is known.
func (m *metrics) devices(nodes []queue.NodeStatus) {
	for _, family := range []struct {
		name, help string
		value      func(*queue.DeviceUse) (value float64, known bool)
	}{
		{"vksplat_farm_device_busy_ratio", "Share of the time for which a device is busy, 0 to 1.", func(u *queue.DeviceUse) (float64, bool) {
			if u.Busy == nil {
				return 0, false
			}
			return *u.Busy, true
		}},
		{"vksplat_farm_device_memory_used_bytes", "Memory of a device that is taken.", func(u *queue.DeviceUse) (float64, bool) { return float64(u.Bytes), u.Bytes > 0 }},
		{"vksplat_farm_device_memory_budget_bytes", "Memory of a device that may be taken.", func(u *queue.DeviceUse) (float64, bool) { return float64(u.Budget), u.Budget > 0 }},
		{"vksplat_farm_device_tasks", "Tasks that a device works on.", func(u *queue.DeviceUse) (float64, bool) { return truth(u.Job != ""), true }},
	} {
		m.gauge(family.name, family.help)
		for _, n := range nodes {
			for i := range n.Use {
				if value, known := family.value(&n.Use[i]); known {
					m.sample(family.name, value, "node", n.Node, "device", n.Use[i].Device, "name", n.Use[i].Name)
				}
			}
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

package worker

import (
	"testing"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
)

// TestJobPlan wants the queue to see what the document says of priorities and pools.
func TestJobPlan(t *testing.T) {
	job, err := spec.Parse("job.toml", []byte(`version = 1
name = "j"
priority = "low"
pool = "big.gpus"
[[task]]
kind = "demo"
id = "made"
[[task]]
kind = "train"
id = "model"
source = "@made"
priority = "high"
[[task]]
kind = "convert"
id = "small"
model = "@model"
to = "sog"
pool = "cpu"
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := JobPlan(job, "ann")
	if err != nil || p.Priority != queue.Low || len(p.Tasks) != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, want := range []queue.Task{{Pool: "big.gpus"}, {Pool: "big.gpus" + spec.DevicePool, Limit: "big.gpus", Priority: queue.High}, {Pool: "cpu"}} {
		if got := p.Tasks[i]; got.Pool != want.Pool || got.Limit != want.Limit || got.Priority != want.Priority {
			t.Errorf("task %d: %+v, want %+v", i, got, want)
		}
	}
	if spec.PoolOf(p.Tasks[1].Pool) != "big.gpus" {
		t.Error(spec.PoolOf(p.Tasks[1].Pool))
	}
}

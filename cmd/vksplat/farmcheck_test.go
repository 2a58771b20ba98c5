package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vksplat/farm/spec/spectest"
)

// TestCheckMany looks at a matrix of 90,000 trainings in seconds, and finds the one value in it that is wrong.
func TestCheckMany(t *testing.T) {
	numbers := func(from, to int) string {
		var list []string
		for i := from; i < to; i++ {
			list = append(list, fmt.Sprint(i))
		}
		return strings.Join(list, ", ")
	}
	for last, wrong := range map[string]string{"3": "", "9": "sh_degree"} {
		job, plan := spectest.Job(t, "version = 1\nname = \"j\"\n[[task]]\nkind = \"train\"\nsource = \"garden\"\n"+
			"matrix.iterations = ["+numbers(600, 750)+"]\nmatrix.seed = ["+numbers(0, 300)+"]\n"+
			"matrix.sh_degree = [2, "+last+"]\n")
		began := time.Now()
		err := checkTasks(job, plan.Tasks)
		if len(plan.Tasks) != 90_000 || (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(),
			"job.toml:") {
			t.Errorf("%d tasks with sh_degree %s: %v", len(plan.Tasks), last, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
	}
}

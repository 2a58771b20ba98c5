package pipeline

import (
	"context"
	"fmt"
	"os"
	"sort"
	"testing"

	"vksplat/pipeline/ref"
	"vksplat/vk"
)

// TestPassTimes prints where a step's time goes, for `go test -run PassTimes -v`.
func TestPassTimes(t *testing.T) {
	if os.Getenv("VKSPLAT_TIMES") == "" {
		t.Skip("set VKSPLAT_TIMES=1 to print times of the device's passes")
	}
	g, err := ref.LoadGolden("testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	c := g.Trains[0]
	c.Order = c.Order[:30]
	d := testDevice(t)
	tr := trainerOf(t, d, c)
	defer tr.Close()
	sums := map[string]int64{}
	n := 0
	err = tr.Run(context.Background(), func(p Progress) {
		for _, x := range tr.e.frames[0].programs[unitStep].Timings(nil) {
			sums[x.Name] += x.Nanoseconds
		}
		n++
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(n, "steps", tr.progress)
	type row struct {
		name string
		ns   int64
	}
	var rows []row
	for k, v := range sums {
		rows = append(rows, row{k, v})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].ns > rows[j].ns })
	for _, r := range rows {
		fmt.Printf("%-24s %8.3f ms\n", r.name, float64(r.ns)/1e6/float64(n))
	}
	_ = vk.PassTime{}
}

package spec

import (
	"fmt"
	"slices"
	"strconv"
)

// kindPartition makes a plan of blocks of a capture. Its [[task]] also has a task for each block, and one
// that merges them.
var kindPartition = &Kind{
	Name:  "partition",
	About: "train a large capture in blocks",
	fields: keys("partition",
		plain("source", typeInput, "the capture").need(),
		number("blocks", typeInts, 1, maxBlocks, "columns along the longer side, and blocks of each").list(2, 0).need(),
		"overlap", "up", "eval", "test_every",
		oneOf("preset", "settings of the blocks to start from", option("train", "preset").Words...),
		set("settings of the blocks"),
		number("finetune", typeInt, 1, 10_000_000, "steps of the merged scene on all photos"),
		"downscale", "images", "masks", "strict"),
	Makes:   "a model",
	Takes:   "a capture",
	Silent:  true,
	count:   (*planner).countBlocks,
	fill:    (*planner).fillBlocks,
	Command: "partition",
	Args: func(c *Call) []string {
		grid := fmt.Sprintf("--blocks=%dx%d", c.Task.Blocks[0], c.Task.Blocks[1])
		return slices.Concat(c.Device, c.Flags(), []string{grid, "--output=" + c.Output, "--", c.Source})
	},
}

// partitionMakes says how to write the kinds that come of a partition.
const partitionMakes = `write kind = "partition", which makes the blocks and merges them`

// kindBlock makes a model of a block of a plan.
var kindBlock = &Kind{
	Name:        "block",
	instead:     partitionMakes,
	NeedsDevice: true,
	Trains:      true,
	Command:     "train",
	Args: func(c *Call) []string {
		return slices.Concat(c.training(), []string{"--block=" + strconv.Itoa(c.Task.Block), "--", c.Plan})
	},
}

// KindMerge makes one model of those of blocks.
var KindMerge = &Kind{
	Name:        "merge",
	instead:     partitionMakes,
	NeedsDevice: true,
	Silent:      true,
}

// countBlocks is how many tasks a partition has: of the plan, of each block, and the merge.
func (p *planner) countBlocks(e *expanded, v *variant) (int, error) {
	grid := listOf[int64](e.field(v, "blocks"))
	if len(grid) != 2 || grid[0]*grid[1] > maxBlocks {
		return 0, p.wrong(path{"task", e.at, "blocks"}, "", "there are %v blocks, %d are allowed",
			e.field(v, "blocks"), maxBlocks)
	}
	return int(grid[0]*grid[1]) + 2, nil
}

// fillBlocks makes the tasks of a partition.
func (p *planner) fillBlocks(e *expanded, v *variant, tasks []Task) error {
	grid := listOf[int64](e.field(v, "blocks"))
	plan, merge := &tasks[0], &tasks[len(tasks)-1]
	name := plan.Name
	plan.Name, plan.Blocks = name+"/partition", [2]int{int(grid[0]), int(grid[1])}
	training := e.training(v)
	if preset, given := e.field(v, "preset").(string); given {
		training = append([]Flag{{"preset", preset}}, training...)
	}
	made := Input{Tasks: []int{plan.Index}}
	var all []int
	for n := 1; n < len(tasks)-1; n++ {
		t := &tasks[n]
		t.Kind, t.Name, t.Block = kindBlock, fmt.Sprintf("%s/block-%d", name, n-1), n-1
		t.Plan, t.Flags = made, training
		if err := p.need(t, made.Tasks, 0); err != nil {
			return err
		}
		all = append(all, t.Index)
		merge.Models = append(merge.Models, Model{Input: Input{Tasks: []int{t.Index}}})
	}
	merge.Kind, merge.Name, merge.Plan, merge.Flags = KindMerge, name+"/merge", made, nil
	if n, given := e.field(v, "finetune").(int64); given {
		merge.Finetune = int(n)
	}
	return p.need(merge, append(all, plan.Index), 0)
}

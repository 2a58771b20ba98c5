package main

import (
	"os"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/run/train"
)

// stepFloorVariable holds the least time of a training step, such as 15ms. Scripts that disturb a training midway set
// it: however fast the machine, some of the training is left then. Child processes inherit it.
const stepFloorVariable = "VKSPLAT_TEST_STEP"

// The commands of scripts are this program, as main.
func init() {
	text := os.Getenv(stepFloorVariable)
	if text == "" {
		return
	}
	floor, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	alsoObserve = append(alsoObserve, func(*train.Options, *cli.Console) (train.Observer, error) {
		var last time.Time
		return train.Observe(func(e train.Event) error {
			if _, ok := e.(*train.Stepped); ok {
				time.Sleep(time.Until(last.Add(floor)))
				last = time.Now()
			}
			return nil
		}), nil
	})
}

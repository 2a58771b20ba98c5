package recipe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Change is a value that differs from the checkpoint's.
type Change struct {
	Key, Old, New string
}

func (c Change) String() string { return fmt.Sprintf("%s: %s -> %s", c.Key, c.Old, c.New) }

// Changes lists what differs between a configuration and a later one. More iterations are no change.
func (c Config) Changes(now Config) (list []Change) {
	before, after := jsonValues(c), jsonValues(now)
	if c.NumDownscales == 0 && now.NumDownscales == 0 {
		// it says nothing, and checkpoints of versions that did not know it have that of no --steps-scaler
		delete(after, "resolution_schedule")
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if before[key] != after[key] && !(key == "iterations" && now.Iterations > c.Iterations) {
			list = append(list, Change{key, before[key], after[key]})
		}
	}
	return list
}

// jsonValues returns the values of a configuration by key.
func jsonValues(c Config) map[string]string {
	text, err := json.Marshal(c)
	var raw map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(text, &raw)
	}
	if err != nil {
		return map[string]string{"configuration": err.Error()} // of a NaN, which Validate refuses
	}
	values := map[string]string{}
	for k, v := range raw {
		values[k] = string(v)
	}
	return values
}

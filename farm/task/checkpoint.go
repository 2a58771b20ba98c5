package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vksplat/farm/store"
)

// unfinish discards finished but outdated results. No command can resume from them: their texts have changed.
func (c *committer) unfinish() error {
	if _, err := os.Stat(c.finishedFile()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := emptied(c.out); err != nil {
		return err
	}
	return os.RemoveAll(c.finishedFile())
}

// resume fetches the newest checkpoint, unless this machine has a newer one, and notes a change of device.
func (c *committer) resume(ctx context.Context) error {
	c.say("looking for a checkpoint", true)
	if err := c.readState(); err != nil {
		return err
	}
	step, err := c.fetch(ctx, c.newest())
	if err != nil {
		return err
	}
	c.from = step
	now := c.Selected
	if step > 0 && (now.Name != c.state.Device || now.Driver != c.state.Driver) {
		c.state.Mixed = true
		c.state.Notes = append(c.state.Notes,
			fmt.Sprintf("from step %d on %s (%s), before on %s (%s)", step, now.Name, now.Driver, c.state.Device,
				c.state.Driver))
	}
	c.state.Device, c.state.Driver = now.Name, now.Driver
	c.state.Inputs, c.state.Generation = c.given, c.generation
	if step > 0 {
		c.step(step, 0, false)
		c.say(fmt.Sprintf("continuing from step %d", step), true)
	}
	return c.saveState(c.out)
}

// readState reads who made the local files, and removes them if they are unknown, outdated, or made from other inputs.
func (c *committer) readState() error {
	file := filepath.Join(c.out, stateFile)
	data, err := os.ReadFile(file)
	if err == nil && json.Unmarshal(data, &c.state) == nil && c.state.Inputs == c.given &&
		c.state.Generation >= c.since {
		return nil
	}
	c.state = store.Made{}
	if c.newest() > 0 {
		c.say("discarding local work of an earlier attempt: its inputs have changed, or it is outdated", true)
	}
	// The state first: without it the rest is not used.
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return emptied(c.out)
}

// fetch replaces the local files by a newer checkpoint from the store, with its state and atomically, and returns the
// step to resume from.
func (c *committer) fetch(ctx context.Context, local int) (step int, err error) {
	fresh, old := filepath.Join(c.dir, "fetched"), filepath.Join(c.dir, "old")
	if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(old), os.MkdirAll(fresh, 0o777)); err != nil {
		return 0, err
	}
	to, err := os.OpenRoot(fresh)
	if err != nil {
		return 0, err
	}
	m, err := store.Fetch(ctx, c.outputs, c.key, to, c.made(0), local)
	if err := errors.Join(err, to.Close()); err != nil {
		return 0, err
	}
	if m == nil {
		return local, os.RemoveAll(fresh)
	}
	c.state = m.Made
	if err := errors.Join(c.saveState(fresh), os.Rename(c.out, old), os.Rename(fresh, c.out)); err != nil {
		return 0, err
	}
	c.stored = m.Step
	return m.Step, os.RemoveAll(old)
}

// saveState writes into a folder who made its files.
func (c *committer) saveState(dir string) error {
	data, err := json.Marshal(&c.state)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, stateFile), data, 0o666)
}

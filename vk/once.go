package vk

import "errors"

// RunOnce builds, runs and frees a list of passes, and waits for it.
func (d *Device) RunOnce(r *Recorder, name string) (err error) {
	pool := d.NewScratchPool()
	defer func() { err = errors.Join(err, pool.Close()) }()
	p, err := r.Build(name, pool, BuildOptions{NoTimings: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	s := d.NewSubmission()
	s.Add(p)
	t, err := d.Submit(s)
	if err != nil {
		return err
	}
	return d.Wait(t)
}

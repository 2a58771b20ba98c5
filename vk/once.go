package vk

// RunOnce builds, runs and frees a list of passes without scratch buffers, and waits for it.
func (d *Device) RunOnce(r *Recorder, name string) error {
	pool := d.NewScratchPool()
	defer pool.Close()
	p, err := r.Build(name, pool, BuildOptions{NoTimings: true})
	if err != nil {
		return err
	}
	defer p.Close()
	s := d.NewSubmission()
	s.Add(p)
	t, err := d.Submit(s)
	if err != nil {
		return err
	}
	return d.Wait(t)
}

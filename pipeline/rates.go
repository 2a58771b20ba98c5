package pipeline

import (
	"errors"
	"time"

	"vksplat/pipeline/bench"
	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/vk"
)

const (
	mostCopied   = 1 << 30 // bytes: far above any cache
	leastCopied  = 1 << 20
	copiedOfHeap = 16 // part of the budget that each of the two buffers takes at most
	fmaLanes     = 1 << 20
	longRun      = 5 * time.Millisecond   // runs are long enough when they take that; the clock's grain is below 1 us
	rateRuns     = 8                      // of which the fastest counts
	clocksUp     = 200 * time.Millisecond // of work, after which a device that was idle runs at its full clock
	ratesTime    = time.Second            // in which all runs of one rate should be over, on a CPU
)

// MeasureRates measures. The device should have nothing else to do, and memory is taken from it meanwhile.
func (d *Device) MeasureRates() (r bench.Rates, err error) {
	if r.CopyBytes, err = d.copyRate(); err != nil {
		return r, err
	}
	r.Instructions, err = d.fmaRate()
	return r, err
}

// copyRate returns the bytes that a copying kernel reads and writes in a second.
func (d *Device) copyRate() (rate float64, err error) {
	l := d.dev.Info().Limits
	size := max(leastCopied, min(mostCopied, d.Budget()/copiedOfHeap, l.MaxStorageBufferRange, l.MaxBufferSize,
		l.MaxMemoryAllocationSize)&^0xFFFF)
	if d.dev.Info().Type == vk.CPU {
		size = min(size, 1<<26)
	}
	from, err := vk.Make[[4]uint32](d.dev, vk.DeviceLocal, int(size/16), "copy_from")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.dev.Free(from.View)) }()
	to, err := vk.Make[[4]uint32](d.dev, vk.DeviceLocal, int(size/16), "copy_to")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.dev.Free(to.View)) }()
	r := vk.NewRecorder(d.dev)
	r.Fill(from.View, 1)
	if err := runOnce(d.dev, r, "bench copy"); err != nil {
		return 0, err
	}
	best, err := d.fastest(&shaders.BenchCopy{CopyFrom: from, CopyTo: to,
		Push: shaders.BenchCopyPush{N: uint32(from.N())}}, from.N(), clocksUp)
	return 2 * float64(size) / best.Seconds(), err
}

// fmaRate returns the instructions that all lanes together start in a second.
func (d *Device) fmaRate() (rate float64, err error) {
	sums, err := vk.Make[float32](d.dev, vk.DeviceLocal, fmaLanes, "fma_sums")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.dev.Free(sums.View)) }()
	const most = 1 << 20
	run := func(rounds int, least time.Duration) (time.Duration, error) {
		push := shaders.BenchFmaPush{N: fmaLanes, Rounds: uint32(rounds), Scale: 0.5, Shift: 1}
		return d.fastest(&shaders.BenchFma{FmaSums: sums, Push: push}, fmaLanes, least)
	}
	rounds := 1
	for took := time.Duration(0); took < longRun && rounds < most; rounds *= 4 {
		if took, err = run(rounds, 0); err != nil {
			return 0, err
		}
	}
	best, err := run(rounds/4, clocksUp) // of those that took long enough
	return fmaLanes * float64(rounds/4) * ref.FMARound / best.Seconds(), err
}

// fastest runs a pass of n invocations several times, for at least so long, and returns the shortest time.
func (d *Device) fastest(p vk.Pass, n int, least time.Duration) (best time.Duration, err error) {
	r := vk.NewRecorder(d.dev)
	r.Dispatch(p, vk.Items(n, 256))
	pool := d.dev.NewScratchPool()
	defer func() { err = errors.Join(err, pool.Close()) }()
	prog, err := r.Build("bench", pool, vk.BuildOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, prog.Close()) }()
	s := d.dev.NewSubmission()
	s.Add(prog)
	started := time.Now()
	for run := 0; run < rateRuns || time.Since(started) < least; run++ {
		begin := time.Now()
		ticket, err := d.dev.Submit(s)
		if err == nil {
			err = d.dev.Wait(ticket)
		}
		if err != nil {
			return 0, err
		}
		took := time.Since(begin)
		if t := prog.Timings(nil); len(t) == 1 && t[0].Nanoseconds > 0 {
			took = time.Duration(t[0].Nanoseconds)
		}
		if best == 0 || took < best {
			best = max(took, 1)
		}
		if time.Since(started) > ratesTime {
			break
		}
	}
	return best, nil
}

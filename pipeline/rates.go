package pipeline

import (
	"errors"
	"fmt"
	"time"

	"vksplat/pipeline/bench"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

const (
	mostCopied   = 1 << 30 // bytes: far above any cache
	leastCopied  = 1 << 20
	copiedOfHeap = 16 // part of the budget that each of the two buffers takes at most
	rateLanes    = 1 << 20
	ratesLeast   = 16 << 20 // bytes of device memory that measuring takes at most on small devices
	fewLaunches  = 16       // of a list whose time is taken off that of one with moreLaunches more
	moreLaunches = 256
	longRun      = 5 * time.Millisecond   // runs are long enough when they take that; the clock's grain is below 1 us
	rateRuns     = 8                      // of which the fastest counts
	clocksUp     = 200 * time.Millisecond // of work, after which a device that was idle runs at its full clock
	ratesTime    = time.Second            // in which all runs of one rate should be over, on a CPU
)

// MeasureRates measures the device, which should be idle; it allocates memory meanwhile.
func (d *Device) MeasureRates() (r bench.Rates, err error) {
	if least := int64(ratesLeast); d.Budget() < least {
		return r, fmt.Errorf("measure device: %w: %s, and that takes %s", ErrTooSmall, vk.BytesText(d.Budget()),
			vk.BytesText(least))
	}
	m := rateMeter{dev: d.dev}
	if m.sums, err = vk.Make[uint32](d.dev, vk.DeviceLocal, rateLanes, "sums"); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.dev.Free(m.sums.View)) }()
	if r.CopyBytes, err = m.copyRate(); err != nil {
		return r, err
	}
	if r.Instructions, err = m.fmaRate(); err != nil {
		return r, err
	}
	if r.SharedWords, err = m.sharedRate(false); err != nil {
		return r, err
	}
	if r.Shuffles, err = m.sharedRate(true); err != nil {
		return r, err
	}
	r.LaunchSeconds, err = m.launchSeconds()
	return r, err
}

type rateMeter struct {
	dev  *vk.Device
	sums vk.Slice[uint32] // [rateLanes] results of kernels
}

// copyRate returns the bytes that a copying kernel reads and writes in a second.
func (m rateMeter) copyRate() (rate float64, err error) {
	l := m.dev.Info().Limits
	size := max(leastCopied, min(mostCopied, m.dev.Budget()/copiedOfHeap, l.MaxStorageBufferRange, l.MaxBufferSize,
		l.MaxMemoryAllocationSize)&^0xFFFF)
	if m.dev.Info().Type == vk.CPU {
		size = min(size, 1<<26)
	}
	from, err := vk.Make[[4]uint32](m.dev, vk.DeviceLocal, int(size/16), "copy_from")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.dev.Free(from.View)) }()
	to, err := vk.Make[[4]uint32](m.dev, vk.DeviceLocal, int(size/16), "copy_to")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.dev.Free(to.View)) }()
	r := vk.NewRecorder(m.dev)
	r.Fill(from.View, 1)
	if err := m.dev.RunOnce(r, "bench copy"); err != nil {
		return 0, err
	}
	r = vk.NewRecorder(m.dev)
	r.Dispatch(&shaders.BenchCopy{CopyFrom: from, CopyTo: to, Push: shaders.BenchCopyPush{N: uint32(from.N())}},
		vk.Items(from.N(), 256))
	best, err := m.fastest(r, clocksUp, true)
	return 2 * float64(size) / best.Seconds(), err
}

// fmaRate returns the instructions that all lanes together start in a second.
func (m rateMeter) fmaRate() (rate float64, err error) {
	rounds, err := m.roundsPerSecond(func(rounds uint32) vk.Pass {
		return &shaders.BenchFma{FmaSums: vk.Cast[float32](m.sums.View),
			Push: shaders.BenchFmaPush{N: rateLanes, Rounds: rounds, Scale: 0.5, Shift: 1}}
	})
	return rateLanes * layout.FMARound * rounds, err
}

// sharedRate returns the words that all lanes together read from shared memory in a second, or shuffle.
func (m rateMeter) sharedRate(shuffle bool) (rate float64, err error) {
	rounds, err := m.roundsPerSecond(func(rounds uint32) vk.Pass {
		return &shaders.BenchShared{SharedSums: m.sums, Spec: shaders.BenchSharedSpec{Shuffle: shuffle},
			Push: shaders.BenchSharedPush{N: rateLanes, Rounds: rounds, Stride: 33}} // lanes hit different banks
	})
	return rateLanes * layout.SharedRound * rounds, err
}

// roundsPerSecond returns how many rounds a second rateLanes invocations of a pass do, each of them.
func (m rateMeter) roundsPerSecond(pass func(rounds uint32) vk.Pass) (float64, error) {
	const most = 1 << 20
	run := func(rounds int, least time.Duration) (time.Duration, error) {
		r := vk.NewRecorder(m.dev)
		r.Dispatch(pass(uint32(rounds)), vk.Items(rateLanes, 256))
		return m.fastest(r, least, true)
	}
	rounds := 1
	for {
		took, err := run(rounds, 0)
		if err != nil {
			return 0, err
		}
		if took >= longRun || rounds >= most {
			break
		}
		rounds *= 4
	}
	best, err := run(rounds, clocksUp)
	return float64(rounds) / best.Seconds(), err
}

// launchSeconds returns what an indirect dispatch takes that has next to nothing to do and waits for the one before it.
// Timestamps between them would count, so it is the difference between more and fewer of them by the host's clock.
func (m rateMeter) launchSeconds() (seconds float64, err error) {
	args, err := vk.Make[[3]uint32](m.dev, vk.DeviceLocal, 1, "dispatch_args")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.dev.Free(args.View)) }()
	both, err := vk.Make[[4]uint32](m.dev, vk.DeviceLocal, 128, "copy_from")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.dev.Free(both.View)) }()
	r := vk.NewRecorder(m.dev)
	r.Fill(args.View, 1)
	r.Fill(both.View, 1)
	if err := m.dev.RunOnce(r, "bench launches"); err != nil {
		return 0, err
	}
	run := func(launches int) (time.Duration, error) {
		from, to := both.At(0, 64), both.At(64, 64)
		r := vk.NewRecorder(m.dev)
		for range launches {
			r.Dispatch(&shaders.BenchCopy{CopyFrom: from, CopyTo: to, Push: shaders.BenchCopyPush{N: 64}},
				vk.Indirect(args.View))
			from, to = to, from // each reads what the one before has written
		}
		return m.fastest(r, clocksUp, false)
	}
	few, err := run(fewLaunches)
	if err != nil {
		return 0, err
	}
	many, err := run(fewLaunches + moreLaunches)
	return max(many-few, 1).Seconds() / moreLaunches, err
}

// fastest runs a list several times, for at least least, and returns the shortest time: by the device's clock if the
// list is a single pass that is timed, else by the host's.
func (m rateMeter) fastest(r *vk.Recorder, least time.Duration, timed bool) (best time.Duration, err error) {
	pool := m.dev.NewScratchPool()
	defer func() { err = errors.Join(err, pool.Close()) }()
	prog, err := r.Build("bench", pool, vk.BuildOptions{NoTimings: !timed})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, prog.Close()) }()
	s := m.dev.NewSubmission()
	s.Add(prog)
	started := time.Now()
	for run := 0; run < rateRuns || time.Since(started) < least; run++ {
		begin := time.Now()
		ticket, err := m.dev.Submit(s)
		if err == nil {
			err = m.dev.Wait(ticket)
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

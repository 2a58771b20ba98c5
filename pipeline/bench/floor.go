package bench

// Cost is the least that a pass has to do, in all its dispatches. A pass that takes more than its floor waits for
// something else: latency, caches, other passes, uneven work.
type Cost struct {
	Bytes        float64 // between device memory and the chip, when every byte is moved once
	Instructions float64 // of single lanes, idle ones of a busy subgroup among them
	SharedWords  float64 // of four bytes that lanes read from shared memory or write to it
	Shuffles     float64 // words that lanes hand to each other in a subgroup
}

// Rates are what a device does at most, as it was measured: no pass can be faster. Files of earlier versions have the
// first two alone.
type Rates struct {
	// of device memory, read plus written, by a kernel that copies
	CopyBytes float64 `json:"copy_bytes_per_second"`
	// of single lanes: fused multiplications and additions in float32
	Instructions float64 `json:"fma_instructions_per_second"`
	SharedWords  float64 `json:"shared_words_per_second"` // read by lanes, neighbours next to each other
	Shuffles     float64 `json:"shuffles_per_second"`     // of single lanes
	// of an indirect dispatch of one workgroup that has nothing to do, with the barrier before it
	LaunchSeconds float64 `json:"launch_seconds"`
}

// What a floor is made of, by what takes most of it.
const (
	BoundMemory     = "memory"
	BoundArithmetic = "arithmetic"
	BoundShared     = "shared" // shared memory and shuffles, which are one unit's on most GPUs
	BoundLaunch     = "launch"
)

// Floor returns the time below which no pass of this cost comes on a device with the given rates: what its busiest
// resource takes, and so many launches, one after the other. bound says which of these is the longest.
func (c Cost) Floor(r Rates, launches float64) (seconds float64, bound string) {
	launch := launches * r.LaunchSeconds
	longest, bound := launch, BoundLaunch
	for _, x := range []struct {
		bound   string
		seconds float64
	}{
		{BoundMemory, over(c.Bytes, r.CopyBytes)},
		{BoundArithmetic, over(c.Instructions, r.Instructions)},
		{BoundShared, over(c.SharedWords, r.SharedWords) + over(c.Shuffles, r.Shuffles)},
	} {
		seconds = max(seconds, x.seconds)
		if x.seconds > longest {
			longest, bound = x.seconds, x.bound
		}
	}
	return seconds + launch, bound
}

// over is n / rate, and 0 where there is nothing to do.
func over(n, rate float64) float64 {
	if n == 0 {
		return 0
	}
	return n / rate
}

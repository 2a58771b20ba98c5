package pipeline

import (
	"errors"

	"vksplat/pipeline/recipe"
	"vksplat/pipeline/team"
	"vksplat/vk"
)

// programs are the recorded units, and the frames that they run on.
type programs struct {
	setup    *setup
	pool     *vk.ScratchPool
	frames   []*frame
	split    [recipe.NKinds][]int // ops after which a submit of a unit ends
	compiled bool                 // the kernels of all units are
	timeAll  bool                 // any step may have timestamps, and the copy of its photo
	team     *team.Team           // nil: one device alone
	// beforeAlloc has others free what they hold of the device before more of it is allocated
	beforeAlloc func()
}

// slot is the place of one of a frame's programs.
type slot struct {
	program **vk.Program
	frame   *frame
	kind    recipe.Kind
	timed   bool
}

func (p *programs) slots() (list []slot) {
	for i, f := range p.frames {
		for _, k := range p.setup.kinds {
			list = append(list, slot{&f.programs[k], f, k, false})
		}
		if (i == 0 || p.timeAll) && p.setup.has(recipe.Step) {
			list = append(list, slot{&f.timed, f, recipe.Step, true})
		}
	}
	return list
}

// close frees the programs of every frame.
func (p *programs) close() error {
	for _, s := range p.slots() {
		if err := s.clear(); err != nil {
			return err
		}
	}
	return nil
}

func (s slot) clear() (err error) {
	if *s.program != nil {
		err = (*s.program).Close()
		*s.program = nil
	}
	return err
}

// free frees programs and scratch memory, so that an allocation finds all of it free.
func (p *programs) free() error { return errors.Join(p.close(), p.pool.Empty()) }

func (p *programs) built() bool { return *p.slots()[0].program != nil }

// build records the programs of every frame. The device must be idle.
func (p *programs) build() error {
	p.beforeAlloc()
	if err := errors.Join(p.close(), p.compile()); err != nil {
		return err
	}
	// Twice: a program that needs a larger pool makes those before it stale; with the pool at its full size none does.
	for range 2 {
		for _, s := range p.slots() {
			if err := p.refresh(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// refresh records the program of a slot, unless it has one that is not stale.
func (p *programs) refresh(s slot) error {
	if *s.program != nil && !(*s.program).Stale() {
		return nil
	}
	if err := s.clear(); err != nil {
		return err
	}
	r := vk.NewRecorder(p.setup.dev)
	p.setup.record(r, s.frame, s.kind)
	made, err := r.Build(s.kind.String(), p.pool, vk.BuildOptions{SplitAfter: p.split[s.kind], NoTimings: !s.timed})
	*s.program = made
	return err
}

// compile compiles the kernels of all units at once, the first time: later steps would otherwise leave the queue empty
// while theirs are compiled.
func (p *programs) compile() error {
	if p.compiled {
		return nil
	}
	p.compiled = true
	whole := *p.setup
	whole.compare.shrunk = false // as it will be from some step on
	var lists []*vk.Recorder
	for _, k := range p.setup.kinds {
		for _, s := range []*setup{p.setup, &whole} {
			if s == &whole && (k != recipe.Step || !p.setup.compare.shrunk) {
				continue
			}
			r := vk.NewRecorder(s.dev)
			s.record(r, p.frames[0], k)
			lists = append(lists, r)
		}
	}
	return p.setup.dev.Compile(lists...)
}

// submit queues the program of u on f, with timestamps if timed, after the copies of the photo. All params are set but
// the photo's offset.
func (p *programs) submit(f *frame, u recipe.Unit, timed bool, photo *stagedPhoto) (err error) {
	f.unit = u
	f.hostParams.PhotoOffset = photo.offset
	f.photo.reset()
	f.submission.Reset()
	if photo.keep != nil {
		f.submission.Add(photo.keep)
		f.photo.add(photo.keep, photo.kept)
	}
	if !photo.src.IsZero() {
		if err := f.copier.Record(photo.dst, photo.src); err != nil {
			return err
		}
		f.submission.Add(f.copier)
		f.photo.add(f.copier, photo.src.Size())
	}
	f.ran = f.programs[u.Kind]
	if timed {
		f.ran = f.timed
	}
	f.submission.AddGated(f.ran, p.awaits(u.Kind)...)
	if f.ticket, err = p.setup.dev.Submit(f.submission); err == nil {
		p.post(f, u.Kind)
	}
	return err
}

func (p *programs) wait(f *frame) error {
	if f.ticket == 0 {
		return nil
	}
	var err error
	if p.team != nil {
		err = <-f.done
	} else {
		err = p.setup.dev.Wait(f.ticket)
	}
	f.ticket = 0
	return err
}

func (p *programs) waitForAll() error {
	for _, f := range p.frames {
		if err := p.wait(f); err != nil {
			return err
		}
	}
	return nil
}

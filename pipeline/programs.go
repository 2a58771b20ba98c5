package pipeline

import (
	"errors"

	"vksplat/pipeline/recipe"
	"vksplat/vk"
)

// slot is where a frame keeps a program.
type slot struct {
	program **vk.Program
	frame   *frame
	kind    recipe.Kind
	timed   bool
}

// slots lists the places of all programs.
func (e *engine) slots() (list []slot) {
	for i, f := range e.frames {
		for _, k := range e.kinds {
			list = append(list, slot{&f.programs[k], f, k, false})
		}
		if (i == 0 || e.timeAll) && e.has(recipe.Step) {
			list = append(list, slot{&f.timed, f, recipe.Step, true})
		}
	}
	return list
}

// closePrograms frees the programs of every frame.
func (e *engine) closePrograms() error {
	for _, s := range e.slots() {
		if *s.program == nil {
			continue
		}
		if err := (*s.program).Close(); err != nil {
			return err
		}
		*s.program = nil
	}
	return nil
}

// built reports whether there are programs.
func (e *engine) built() bool { return *e.slots()[0].program != nil }

// build records the programs of every frame. The device must be idle.
func (e *engine) build() error {
	if e.yield != nil {
		e.yield()
	}
	if err := errors.Join(e.closePrograms(), e.compile()); err != nil {
		return err
	}
	// Twice: a program that needs a larger pool makes those before it stale; with the pool at its full size none does.
	for range 2 {
		for _, s := range e.slots() {
			if p := *s.program; p != nil && !p.Stale() {
				continue
			} else if p != nil {
				if err := p.Close(); err != nil {
					return err
				}
			}
			r := vk.NewRecorder(e.dev)
			e.record(r, s.frame, s.kind)
			p, err := r.Build(s.kind.String(), e.pool, vk.BuildOptions{SplitAfter: e.split[s.kind],
				NoTimings: !s.timed})
			if err != nil {
				return err
			}
			*s.program = p
		}
	}
	return nil
}

// compile compiles the kernels of all units at once, the first time: also those of later steps, which would find the
// queue empty while they are compiled.
func (e *engine) compile() error {
	if e.compiled {
		return nil
	}
	var lists []*vk.Recorder
	whole := *e
	whole.compare.shrunk = false // as it will be from some step on
	for _, k := range e.kinds {
		r := vk.NewRecorder(e.dev)
		e.record(r, e.frames[0], k)
		lists = append(lists, r)
		if k == recipe.Step && e.compare.shrunk {
			r := vk.NewRecorder(e.dev)
			whole.record(r, e.frames[0], k)
			lists = append(lists, r)
		}
	}
	e.compiled = true
	return e.dev.Compile(lists...)
}

// submit queues the program of u, whose params are set but for the photo's place, on f, with timestamps if timed, after
// the copies that photo asks for.
func (e *engine) submit(f *frame, u recipe.Unit, timed bool, photo *stagedPhoto) (err error) {
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
	f.submission.AddGated(f.ran, e.awaits(u.Kind)...)
	if f.ticket, err = e.dev.Submit(f.submission); err == nil {
		e.post(f, u.Kind)
	}
	return err
}

// wait waits for what is in flight on f.
func (e *engine) wait(f *frame) error {
	if f.ticket == 0 {
		return nil
	}
	var err error
	if e.team != nil {
		err = <-f.done
	} else {
		err = e.dev.Wait(f.ticket)
	}
	f.ticket = 0
	return err
}

package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
)

// Run makes the scene, or the part of it that is missing, and says what came of it.
func Run(console *cli.Console, o *Options) error {
	if err := o.check(); err != nil {
		return err
	}
	o.Out = filepath.Clean(o.Out)
	sources, err := findSources(console, o)
	if err != nil {
		return err
	}
	if err := claimable(o, sources); err != nil {
		return err
	}
	ctx, stop := console.Stoppable(cli.Always("stopping; what is done stays"))
	defer stop()
	r := &running{ctx: ctx, console: console, o: o, sources: sources}
	if r.colmap, err = probeColmap(ctx); err != nil {
		return r.interrupted(err)
	}
	if err := r.programs(); err != nil {
		return err
	}
	release, err := output.Claim(o.Out, true)
	if err != nil {
		return err
	}
	defer release()
	console.OnAbort = release
	defer func() { console.OnAbort = nil }()
	r.state = readState(o.in(stateFile))
	r.written = output.ReadList(o.Out, listFile)
	r.written.By = Name
	r.show = newProgress(console)
	defer console.Follow(nil)
	with := "without CUDA"
	if r.colmap.cuda {
		with = "with CUDA"
	}
	console.Printf("%-9s COLMAP %s %s\n", "tools:", r.colmap.version, with)
	v, err := r.all()
	if err != nil {
		r.show.end()
		return r.interrupted(err)
	}
	v.print(console, o)
	return nil
}

// programs looks for what some inputs need, before the work begins.
func (r *running) programs() error {
	for _, s := range r.sources {
		if s.video {
			for _, program := range []string{"ffmpeg", "ffprobe"} {
				if _, err := need(program, "reading videos"); err != nil {
					return err
				}
			}
		}
		for i := range s.photos {
			if c := conversionOf(s.photos[i]); c != nil {
				if _, err := c.program(s.file(i)); err != nil {
					return err
				}
			}
		}
	}
	if r.o.Masks != "" {
		for _, s := range r.sources {
			if s.video {
				return fault.Usagef("take the frames first, without masks; then give their folder and the masks",
					"%s: the names of a video's frames are not known before", fault.Named("masks"))
			}
		}
	}
	return nil
}

// all does every stage.
func (r *running) all() (*verdict, error) {
	if err := r.takePhotos(); err != nil {
		return nil, err
	}
	videos := 0
	for _, s := range r.sources {
		if s.video {
			if err := r.takeFrames(s, videos); err != nil {
				return nil, err
			}
			videos++
		}
	}
	if len(r.photos) < fewestPhotos {
		return nil, fault.Data("count photos", r.o.in(imagesFolder), "a scene needs at least 3 photos, and is good "+
			"from some 50 on", "there are %s", cli.Count(len(r.photos), "photo"))
	}
	for _, step := range []func() error{r.takeMasks, r.findFeatures, r.matchPhotos, r.findCameras} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	list, err := r.readComponents()
	if err != nil {
		return nil, err
	}
	taken, err := r.o.choose(list)
	if err != nil {
		return nil, err
	}
	if err := r.takeModel(taken); err != nil {
		return nil, err
	}
	return r.judge(list, taken), nil
}

// claimable refuses a folder that holds what this command did not make, and a capture of other inputs.
func claimable(o *Options, sources []*source) error {
	if _, err := os.Lstat(o.in(stateFile)); err == nil {
		return nil // files are looked at one by one
	}
	inPlace := false
	for _, s := range sources {
		inPlace = inPlace || s.inPlace(o)
	}
	if !inPlace && !o.Overwrite {
		if err := output.RefusePlace(o.Out, "output", stateFile); err != nil {
			return err
		}
	}
	for _, name := range []string{imagesFolder, masksFolder, "sparse", componentsFolder, databaseFile, logsFolder} {
		_, err := os.Lstat(o.in(name))
		switch {
		case errors.Is(err, os.ErrNotExist):
		case name == imagesFolder && inPlace, name == masksFolder && o.Masks == "":
		case name == imagesFolder:
			return fault.Usagef("choose another folder, or give that folder of photos as the input",
				"%s is there already", o.in(name))
		case !o.Overwrite:
			return fault.Usagef("choose another folder, or replace it with "+fault.Setting("overwrite"),
				"%s is there already", o.in(name))
		}
	}
	if st, err := os.Stat(o.Out); err == nil && !st.IsDir() {
		return fault.Usagef("choose another folder", "%s: %s is a file", fault.Named("output"), fmt.Sprint(o.Out))
	}
	return nil
}

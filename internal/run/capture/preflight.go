package capture

import (
	"fmt"
	"math"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/internal/wording"
	"vksplat/scene/photo"
)

// preflight finds what would fail after minutes of work: programs, abilities of COLMAP and devices that are missing,
// videos that cannot be read or are sampled too thinly, photos that are broken.
func (r *running) preflight() (err error) {
	if r.own == nil {
		if r.mapper.colmap, err = probeColmap(r.ctx); err != nil {
			return err
		}
		if err := r.able(); err != nil {
			return err
		}
	}
	if err := r.programs(); err != nil {
		return err
	}
	for _, s := range r.sources {
		if s.video {
			if s.film, err = r.probeVideo(s.path); err != nil {
				return err
			}
		}
	}
	if err := r.leaveOut(); err != nil {
		return err
	}
	if err := r.checkPanoramas(); err != nil {
		return err
	}
	if err := checkRig(r); err != nil {
		return err
	}
	if err := r.enough(); err != nil || r.own == nil {
		return err
	}
	return r.own.ready()
}

// able tells whether the installed COLMAP can do what is asked for.
func (r *running) able() error {
	k, err := r.mapper.colmap.call(r.ctx, "feature_extractor")
	if err != nil {
		return err
	}
	if err := r.mapper.featureOptions(k, cameraPlan{share: r.o.Cameras, model: r.o.CameraModel}); err != nil {
		return err
	}
	_, _, err = r.mapper.mapperCommand()
	return err
}

// leaveOut takes photos with odd names, and those that are broken, out of the sources, with a warning: of a file that
// is cut short the half that is there would be seen.
func (r *running) leaveOut() error {
	for _, s := range r.sources {
		why := make([]string, len(s.photos))
		parallel.For(len(why), func(i int) {
			if r.ctx.Err() == nil {
				why[i] = unfit(s.names[i], s.file(i))
			}
		})
		photos, names := s.photos, s.names
		s.photos, s.names = nil, nil
		for i := range photos {
			if why[i] == "" {
				s.photos, s.names = append(s.photos, photos[i]), append(s.names, names[i])
				continue
			}
			was := source{path: s.path, photos: photos}
			r.broken = append(r.broken, Dropped{was.file(i), why[i]})
		}
	}
	if r.ctx.Err() != nil {
		return fault.ErrInterrupted
	}
	for i, b := range r.broken {
		if i == mostNamed && len(r.broken) > mostNamed+1 {
			r.console.Warn(fmt.Sprintf("%d more photos are left out", len(r.broken)-i))
			break
		}
		remedy := "copy it again from the camera or card"
		switch {
		case b.Why == oddName:
			remedy = "rename it"
		case conversionOf(b.Photo) != nil:
			remedy = otherEnding
		}
		r.console.Warn(fmt.Sprintf("%s is left out: %s; %s", wording.Printable(b.Photo), b.Why, remedy))
	}
	return nil
}

// unfit says what is wrong with a photo's name or file, "" for nothing. Of files that are to be converted the first
// bytes are looked at.
func unfit(name, path string) string {
	if isOdd(name) {
		return oddName
	}
	_, _, err := photo.Size(path)
	if c := conversionOf(path); c != nil && err != nil {
		if _, err = c.coder(path); err == nil {
			return ""
		}
	}
	switch {
	case err != nil:
		return err.Error()
	case photo.CutShort(path):
		return "the file is cut short"
	}
	return ""
}

// frames is about how many frames are taken of a video that is as long as it says, and has some.
func (s sampling) frames(v *video) int {
	return max(int(math.Ceil(v.seconds*s.take-1e-6)), 1)
}

// goodNumber is how many frames of a video are worth having.
const goodNumber = 50

// enough refuses too few photos, as far as their number is known.
func (r *running) enough() error {
	photos, frames := 0, 0
	var film *source
	for _, s := range r.sources {
		photos += len(s.photos)
		if !s.video {
			continue
		}
		how, err := r.o.sample(s.film)
		if err != nil {
			return fault.Data("read video", s.path, "give another rate with "+fault.Setting("fps"), "%v", err)
		}
		if film = s; s.film.seconds == 0 {
			return nil // they are counted when they are taken
		}
		frames += how.frames(s.film)
	}
	if photos+frames >= r.o.fewest() {
		return nil
	}
	if film == nil {
		return r.tooFew(photos)
	}
	seconds := fmt.Sprintf("%.3g seconds", film.film.seconds)
	if seconds == "1 seconds" {
		seconds = "1 second"
	}
	why := fmt.Sprintf("a video of %s has %s", seconds, cli.Count(frames, "frame"))
	switch {
	case r.o.Fps > 0:
		return fault.Usagef(r.rateHint(film.film), "%s %g: %s at that rate, and a scene needs %d at least",
			fault.Named("fps"), r.o.Fps, why, fewestPhotos)
	case r.o.Frames > 0:
		return fault.Usagef("give "+fault.Setting("frames")+" "+fmt.Sprint(goodNumber)+" or more",
			"%s %d: %s, and a scene needs %d at least", fault.Named("frames"), r.o.Frames, why, fewestPhotos)
	}
	return fault.Data("count frames", film.path, r.rateHint(film.film), "%s at the usual %g a second, and a scene "+
		"needs %d at least", why, usualRate, fewestPhotos)
}

// rateHint says at which rate a video gives a good number of frames, or all that it has.
func (r *running) rateHint(v *video) string {
	rate := min(math.Ceil(goodNumber/v.seconds), v.rate)
	frames := sampling{take: rate}.frames(v)
	if frames < fewestPhotos {
		return fmt.Sprintf("take a longer video: this one has %s", cli.Count(frames, "frame"))
	}
	return fmt.Sprintf("give %s %.4g: %s", fault.Setting("fps"), rate, cli.Count(frames, "frame"))
}

func (r *running) tooFew(n int) error {
	err := fmt.Errorf("%s found", cli.Count(n, "photo"))
	if k := len(r.broken); k > 0 {
		err = fmt.Errorf("%w, and %d that cannot be read", err, k)
	}
	var places []string
	for _, s := range r.sources {
		if s.path != "" {
			places = append(places, s.path)
		}
	}
	return &fault.Error{Op: "count photos", Path: strings.Join(places, ", "), Err: err,
		Hint: fmt.Sprintf("a scene needs at least %d photos, and %d or more are better", fewestPhotos, goodNumber)}
}

// programs looks for what some inputs need.
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
			c := conversionOf(s.photos[i])
			if c == nil {
				continue
			}
			if _, bad := c.coder(s.file(i)); bad != nil {
				continue // it is read as it is, or left out
			}
			if _, err := c.program(s.file(i)); err != nil {
				return err
			}
		}
	}
	if r.o.Masks != "" {
		for _, s := range r.sources {
			if s.video {
				return fault.Usagef("extract the frames first, without masks; then give their folder and the masks",
					"%s: the names of a video's frames are not known in advance", fault.Named("masks"))
			}
		}
	}
	return nil
}

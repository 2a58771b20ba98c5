package transforms

import (
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// OutsideFiles is the code of warnings about files outside the capture's folder; their names are the files' paths.
const OutsideFiles = "outside-files"

// Finder finds the files that a capture's names mean.
type Finder struct {
	c    *scene.Capture
	tops []string // the capture's folder in full, as it is spelled and without links
	in   *photo.Locator
}

func NewFinder(c *scene.Capture) *Finder {
	f := &Finder{c: c, in: photo.NewLocator(c.Root)}
	if top, err := filepath.Abs(c.Root); err == nil {
		f.tops = append(f.tops, top)
		if real, err := filepath.EvalSymlinks(top); err == nil && real != top {
			f.tops = append(f.tops, real)
		}
	}
	return f
}

// Spell gives a path below the capture's folder as that is spelled, and any other in full.
func (f *Finder) Spell(file string) (path string, inside bool) {
	drive := !filepath.IsAbs(file) && filepath.IsLocal(file) && photo.LeadsOut(file) // of Windows, as in C:/
	if file == "" || drive {
		return file, false
	}
	full, err := filepath.Abs(file)
	if err != nil {
		return file, false
	}
	for _, top := range f.tops {
		if rel, err := filepath.Rel(top, full); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(f.c.Root, rel), true
		}
	}
	return full, false
}

// Find gives the files that paths mean, "" for those that are not there and for "". A path that leads out of the
// capture's folder, as of the machine that made the capture, means the file below it that the longest end of the path
// names, if no other path means that; only where there is none, it means what is there.
func (f *Finder) Find(paths []string) []string {
	found, claims := make([]string, len(paths)), map[string]string{}
	shared, out := map[string]bool{}, map[int]string{}
	for i, file := range paths {
		if file == "" {
			continue
		}
		full, inside := f.Spell(file)
		if inside {
			found[i] = f.in.Find(full)
		} else {
			out[i], found[i] = full, f.in.ByEnd(full)
		}
		if by, taken := claims[found[i]]; taken && by != full {
			shared[found[i]] = true
		}
		claims[found[i]] = full
	}
	for i, full := range out {
		if found[i] == "" || shared[found[i]] {
			found[i] = f.in.Find(full)
			if found[i] != "" {
				found[i], _ = f.Spell(found[i])
			}
		}
	}
	return found
}

// Outside warns of found files, things of a kind, that are outside the capture's folder; strict makes that an error.
func (f *Finder) Outside(found []string, thing string, strict bool) error {
	var out []string
	for _, file := range found {
		if _, inside := f.Spell(file); file != "" && !inside {
			out = append(out, file)
		}
	}
	if len(out) == 0 {
		return nil
	}
	const hint = "copy them into the capture's folder, so that it has all that it needs"
	things := wording.Count(int64(len(out)), thing)
	if strict {
		return fault.Data("read "+filepath.Base(f.c.Model), f.c.Model, hint+", or leave out "+fault.Setting("strict"),
			"%s outside the capture's folder, as in %s", things, wording.Printable(out[0]))
	}
	f.c.Warn(OutsideFiles, "took "+things+" from outside the capture's folder", out)
	f.c.Warnings[len(f.c.Warnings)-1].Remedy = hint
	return nil
}

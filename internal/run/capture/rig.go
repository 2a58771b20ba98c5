package capture

import (
	"path"
	"strings"

	"vksplat/internal/fault"
)

// momentOf names the moment of a photo of a rig: left/12.jpg and right/12.png are of one, morning/left/12.jpg is not.
func momentOf(name string) string {
	return path.Join(path.Dir(path.Dir(name)), strings.TrimSuffix(path.Base(name), path.Ext(name)))
}

// leastMoments are enough to find where the cameras of a rig are.
const leastMoments = 3

// checkRig refuses photos of a rig that do not say which were taken at once.
func checkRig(r *running) error {
	if !r.o.Rig {
		return nil
	}
	photos, taken, several := map[string]int{}, map[string]bool{}, 0
	for _, s := range r.sources {
		if s.video {
			return fault.Usagef("extract frames of the same moments first, with equal names, into a folder for each camera",
				"%s: the sharpest frames of videos are of different moments: %s", fault.Named("rig"), s.path)
		}
		for _, name := range s.names {
			bare := strings.TrimSuffix(name, path.Ext(name))
			if taken[bare] {
				return fault.Usagef("rename one of them", "%s: two photos have the name %s, apart from the extension",
					fault.Named("rig"), bare)
			}
			m := momentOf(name)
			taken[bare] = true
			if photos[m]++; photos[m] == 2 {
				several++
			}
		}
	}
	if several < leastMoments {
		return fault.Usagef("give photos that were taken at once the same name, as left/0001.jpg and right/0001.jpg",
			"%s: %d names are in several folders, at least %d are needed", fault.Named("rig"), several, leastMoments)
	}
	return nil
}

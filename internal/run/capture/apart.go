package capture

import (
	"fmt"

	"vksplat/internal/run/reconstruct"
	"vksplat/internal/wording"
	"vksplat/scene/mapping"
)

// notes is what this program's mapper says of a model.
type notes struct {
	Why   map[string]string  `json:"why"` // photos have no camera, by name
	Apart []string           `json:"apart"`
	Earth *reconstruct.Earth `json:"earth,omitempty"`
}

// leastApart is the size of the smallest group of photos without cameras that is named.
const leastApart = 3

// apart names groups of photos without a camera that hang together, and says what would join them to the others.
func (w *own) apart(missing []mapping.Missing) (list []string) {
	name := func(i int) string { return wording.Printable(w.photos[i].Name) }
	for i := range missing {
		best := &missing[i]
		if best.First != best.Photo || best.Part < leastApart {
			continue
		}
		last := best.Photo
		for k := range missing {
			if m := &missing[k]; m.First == missing[i].Photo {
				if last = m.Photo; m.Matches > best.Matches {
					best = m
				}
			}
		}
		where := "that show parts of both"
		if best.Best >= 0 {
			where = fmt.Sprintf("between %s and %s", name(best.Photo), name(best.Best))
		}
		which := "from"
		if last-missing[i].Photo+1 > best.Part {
			which = "among"
		}
		list = append(list, fmt.Sprintf("%d photos (%s %s to %s) hang together but not with the rest: take photos %s",
			best.Part, which, name(missing[i].Photo), name(last), where))
	}
	return list
}

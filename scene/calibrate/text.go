package calibrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"vksplat/scene"
)

// terms are the distortion terms of raised models, after focal lengths and principal point.
func terms(m scene.LensModel) []string {
	if m == scene.LensOpenCVFisheye {
		return []string{"k1", "k2", "k3", "k4"}
	}
	return []string{"k1", "k2", "p1", "p2"}
}

// Text says in one line what Cameras changes; "" where they change nothing.
func (r *Result) Text() string { return r.text }

// leftOut names training photos among those that stand apart; "" for none.
func leftOut(n *network, apart []int) string {
	apart = slices.DeleteFunc(slices.Clone(apart), func(at int) bool { return n.photos[at].HeldOut })
	return named(n, apart, "1 photo whose pose cannot be right is left out",
		"%d photos whose poses cannot be right are left out")
}

// named is a text with the first names of photos; "" for none.
func named(n *network, photos []int, one, several string) string {
	if len(photos) == 0 {
		return ""
	}
	if len(photos) > 1 {
		one = fmt.Sprintf(several, len(photos))
	}
	list := n.names(photos)
	return scene.Warning{Count: len(list), Names: scene.FirstNames(list), Text: one}.String()
}

// changes says what became of the lens that most photos have, and how many lenses there are.
func (n *network) changes(better *network) string {
	var list []string
	before, after := used(n), used(better)
	if len(after) < len(before) {
		list = append(list, fmt.Sprintf("%d lenses become %d", len(before), len(after)))
	}
	most := 0
	for lens, photos := range after {
		if photos > after[most] || photos == after[most] && lens < most {
			most = lens
		}
	}
	was, _ := n.lenses[most].Raised()
	now, ok := better.lenses[most].Raised()
	if ok {
		if a, b := was.Params[0]+was.Params[1], now.Params[0]+now.Params[1]; a != b {
			list = append(list, fmt.Sprintf("f %.4g to %.4g", a/2, b/2))
		}
		if was.Params[2] != now.Params[2] || was.Params[3] != now.Params[3] {
			list = append(list, fmt.Sprintf("principal point %.4g,%.4g to %.4g,%.4g", was.Params[2], was.Params[3],
				now.Params[2], now.Params[3]))
		}
		for i, name := range terms(now.Model) {
			if a, b := was.Params[4+i], now.Params[4+i]; a != b {
				list = append(list, fmt.Sprintf("%s %.3g to %.3g", name, a, b))
			}
		}
	}
	return cmp.Or(strings.Join(list, ", "), "poses refined")
}

// used counts the photos of each lens that has any.
func used(n *network) map[int]int {
	count := map[int]int{}
	for _, p := range n.photos {
		count[p.Lens]++
	}
	return count
}

// Reason says why Cameras changes nothing; "" where nothing was tried, and where something changes.
func (r *Result) Reason() string {
	if r.Cameras == nil && r.Skipped == "" && r.Rungs != nil {
		return "no other lens or pose surely explains the observations better"
	}
	return r.Skipped
}

// UnplacedText says which held-out photos keep their given poses; "" for none.
func (r *Result) UnplacedText() string {
	if len(r.Unplaced) == 0 {
		return ""
	}
	return scene.Warning{Count: len(r.Unplaced), Names: scene.FirstNames(r.Unplaced),
		Text: "held-out photos that show too few points to be placed keep their given poses"}.String()
}

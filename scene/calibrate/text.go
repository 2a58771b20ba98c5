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
func (r *Result) Text() string {
	if r.Cameras == nil {
		return ""
	}
	var parts []string
	if r.now != nil {
		text := cmp.Or(strings.Join(r.changes(), ", "), "poses refined")
		parts = append(parts, fmt.Sprintf("%s: reprojection %.3f to %.3f px", text, r.mean, r.After.Mean))
	}
	held := map[string]bool{}
	for _, p := range r.was.photos {
		held[p.Name] = p.HeldOut
	}
	out := slices.DeleteFunc(slices.Clone(r.Apart), func(name string) bool { return held[name] })
	if n := len(out); n > 0 {
		text := "1 photo whose pose cannot be right is left out"
		if n > 1 {
			text = fmt.Sprintf("%d photos whose poses cannot be right are left out", n)
		}
		parts = append(parts, scene.Warning{Count: n, Names: scene.FirstNames(out), Text: text}.String())
	}
	return strings.Join(parts, "; ")
}

// changes lists what became of the lens that most photos have, and how many lenses there are.
func (r *Result) changes() (list []string) {
	before, after := r.was.used(), r.now.used()
	if len(after) < len(before) {
		list = append(list, fmt.Sprintf("%d lenses become %d", len(before), len(after)))
	}
	most := 0
	for lens, n := range after {
		if n > after[most] || n == after[most] && lens < most {
			most = lens
		}
	}
	was, _ := raised(r.was.lenses[most])
	now, ok := raised(r.now.lenses[most])
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
	return list
}

// used counts the photos of each lens that has any.
func (n *network) used() map[int]int {
	count := map[int]int{}
	for _, p := range n.photos {
		count[p.Lens]++
	}
	return count
}

// UnplacedText says which held-out photos keep their given poses; "" for none.
func (r *Result) UnplacedText() string {
	if len(r.Unplaced) == 0 {
		return ""
	}
	return scene.Warning{Count: len(r.Unplaced), Names: scene.FirstNames(r.Unplaced),
		Text: "held-out photos that show too few points to be placed keep their given poses"}.String()
}

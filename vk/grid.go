package vk

import "fmt"

// Grid is the number of workgroups of a dispatch.
type Grid struct {
	x, y, z  uint32
	indirect View
	err      error
}

// maxGroups is the most workgroups per dimension that every device takes.
const maxGroups = 65535

// Groups is a grid of at least n workgroups. More than 65535 are folded into rows of equal length, x by y with x*y >=
// n, so a kernel takes gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x as its index and checks it against its
// own count.
func Groups(n int) Grid {
	switch {
	case n < 0 || n > maxGroups*maxGroups:
		return Grid{err: fmt.Errorf("%d workgroups, 0 to %d are allowed", n, maxGroups*maxGroups)}
	case n == 0:
		return Grid{}
	}
	y := (n + maxGroups - 1) / maxGroups
	return Grid{x: uint32((n + y - 1) / y), y: uint32(y), z: 1}
}

// Words are the arguments of an indirect dispatch of this grid.
func (g Grid) Words() [3]uint32 { return [3]uint32{g.x, g.y, g.z} }

// Items is a grid of enough workgroups of local invocations each for n items, folded as Groups does.
func Items(n, local int) Grid {
	if local <= 0 {
		return Grid{err: fmt.Errorf("workgroups of %d invocations", local)}
	}
	if n < 0 {
		return Groups(n)
	}
	return Groups((n + local - 1) / local)
}

// Groups3 is a grid of x by y by z workgroups, each at most 65535.
func Groups3(x, y, z int) Grid {
	for _, n := range [...]int{x, y, z} {
		if n < 0 || n > maxGroups {
			return Grid{err: fmt.Errorf("%d by %d by %d workgroups, at most %d per dimension are allowed", x, y, z,
				maxGroups)}
		}
	}
	if x == 0 || y == 0 || z == 0 {
		return Grid{}
	}
	return Grid{x: uint32(x), y: uint32(y), z: uint32(z)}
}

// Indirect is a grid whose size the device reads from the first 12 bytes of v: x, y, z as uint32, each at most 65535.
func Indirect(v View) Grid {
	if v.IsZero() || v.Size() < 12 {
		return Grid{err: fmt.Errorf("indirect size of %d bytes, 12 are needed", v.Size())}
	}
	return Grid{indirect: v.Slice(0, 12)}
}

// empty reports whether nothing is to be run.
func (g Grid) empty() bool { return g.indirect.IsZero() && g.x == 0 }

// String returns "[x y z]" or the name of the indirect buffer.
func (g Grid) String() string {
	if !g.indirect.IsZero() {
		return "[indirect " + g.indirect.Name() + "]"
	}
	return fmt.Sprintf("[%d %d %d]", g.x, g.y, g.z)
}

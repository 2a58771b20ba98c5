package mapping

import (
	"cmp"
	"math"
	"slices"

	"vksplat/internal/geom"
	"vksplat/internal/parallel"
)

const (
	// mostTurn is by how much a pair's rotation may differ from those of both photos that all pairs agree on.
	mostTurn = 10 * math.Pi / 180
	// mostRough is the same of a pair whose rotation is a guess.
	mostRough = 90 * math.Pi / 180
	// Rotation averaging: rounds with the loss of distances, then with one that hardly counts what is far above
	// turnNoise.
	firstRounds, lastRounds = 10, 20
	leastTurn               = 0.1 * math.Pi / 180
	turnNoise               = 3 * math.Pi / 180
	// likeTurn is by how much three rotations around a triangle of pairs miss the identity if all of them are right,
	// and mostSupport how many such triangles make a pair trusted as much as any.
	likeTurn    = 5 * math.Pi / 180
	mostSupport = 20
	// Conjugate gradients end at this share of the residual, or after a number of steps.
	turnShare, turnSteps = 1e-4, 200
)

// dropContradicting drops pairs whose rotations contradict those that the others agree on, as of repeated structures,
// and pairs that have no relative pose.
func (m *mapper) dropContradicting() {
	turns, group := averageRotations(len(m.in.Photos), m.pairs, m.motions)
	var pairs []*Pair
	var motions []motion
	for i, p := range m.pairs {
		c := m.motions[i]
		most := mostTurn
		if c.rough {
			most = mostRough
		}
		if c.ok && group[p.A] == group[p.B] && geom.Length(turnOff(turns, p, &c)) > most {
			continue
		}
		pairs, motions = append(pairs, p), append(motions, c)
	}
	m.pairs, m.motions = pairs, motions
}

// turnOff returns the rotation by which a pair is off the photos' rotations, as a vector in the world's axes.
func turnOff(turns [][9]float64, p *Pair, c *motion) [3]float64 {
	return geom.VectorFromRotation(geom.Product(geom.Transposed(turns[p.B]), geom.Product(c.r, turns[p.A])))
}

// averageRotations returns rotations of photos, from a world of each part that hangs together to the photo, which agree
// best with the relative ones of pairs: from a spanning tree of the pairs that others confirm most, refined by
// iteratively reweighted least squares, first of distances (L1), then of Geman and McClure's loss (Chatterjee and
// Govindu: Robust Relative Rotation Averaging, 2018).
func averageRotations(photos int, pairs []*Pair, motions []motion) (turns [][9]float64, group []int) {
	turns, group = spanningTree(photos, pairs, motions)
	weights, off := make([]float64, len(pairs)), make([][3]float64, len(pairs))
	for round := range firstRounds + lastRounds {
		for i, p := range pairs {
			c := &motions[i]
			if !c.ok || c.rough {
				continue
			}
			off[i] = turnOff(turns, p, c)
			e := geom.Length(off[i])
			if round < firstRounds {
				weights[i] = leastTurn / max(e, leastTurn)
			} else {
				weights[i] = geom.Square(turnNoise * turnNoise / (turnNoise*turnNoise + e*e))
			}
		}
		var moved float64
		for i, step := range turnStep(photos, pairs, weights, off) {
			turns[i] = geom.Product(turns[i], geom.RotationFromVector(step))
			moved = max(moved, geom.Length(step))
		}
		if moved < 1e-5 && round >= firstRounds {
			break
		}
	}
	return turns, group
}

// confirmed counts for each pair the third photos around which its rotation agrees with two others, up to mostSupport:
// pairs of sides that only look alike close few triangles (Zach, Klopschitz, Pollefeys: Disambiguating Visual Relations
// Using Loop Constraints, 2010).
func confirmed(photos int, pairs []*Pair, motions []motion) []int {
	type edge struct{ to, pair int }
	edges := make([][]edge, photos)
	for i, p := range pairs {
		if motions[i].ok && !motions[i].rough {
			edges[p.A], edges[p.B] = append(edges[p.A], edge{p.B, i}), append(edges[p.B], edge{p.A, i})
		}
	}
	for _, list := range edges {
		slices.SortFunc(list, func(a, b edge) int {
			return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.pair, b.pair))
		})
	}
	turn := func(from int, e edge) [9]float64 {
		if pairs[e.pair].A == from {
			return motions[e.pair].r
		}
		return geom.Transposed(motions[e.pair].r)
	}
	support := make([]int, len(pairs))
	parallel.For(len(pairs), func(i int) {
		p := pairs[i]
		if !motions[i].ok || motions[i].rough {
			return
		}
		a, b := edges[p.A], edges[p.B]
		for len(a) > 0 && len(b) > 0 && support[i] < mostSupport {
			switch {
			case a[0].to < b[0].to:
				a = a[1:]
			case a[0].to > b[0].to:
				b = b[1:]
			default:
				around := geom.Product(geom.Transposed(turn(p.A, a[0])), turn(p.B, b[0]))
				if geom.Length(geom.VectorFromRotation(geom.Product(around, motions[i].r))) < likeTurn {
					support[i]++
				}
				a = a[1:]
			}
		}
	})
	return support
}

// spanningTree returns rotations that follow from the pairs that most others confirm, those with more inliers first.
func spanningTree(photos int, pairs []*Pair, motions []motion) (turns [][9]float64, group []int) {
	var order []int
	for i := range pairs {
		if motions[i].ok && !motions[i].rough {
			order = append(order, i)
		}
	}
	support := confirmed(photos, pairs, motions)
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(support[b], support[a]),
			cmp.Compare(len(pairs[b].Relation.Inliers), len(pairs[a].Relation.Inliers)))
	})
	members := make([][]int, photos)
	turns, group = make([][9]float64, photos), make([]int, photos)
	for i := range photos {
		group[i], members[i], turns[i] = i, []int{i}, geom.Identity
	}
	for _, i := range order {
		p := pairs[i]
		from, to, r := p.A, p.B, motions[i].r
		if group[from] == group[to] {
			continue
		}
		if len(members[group[from]]) < len(members[group[to]]) {
			from, to, r = to, from, geom.Transposed(r)
		}
		// All of the smaller group turn, so that to's rotation is r times that of from.
		turn := geom.Product(geom.Transposed(turns[to]), geom.Product(r, turns[from]))
		old := group[to]
		for _, k := range members[old] {
			turns[k] = geom.Product(turns[k], turn)
			group[k] = group[from]
		}
		members[group[from]] = append(members[group[from]], members[old]...)
		members[old] = nil
	}
	return turns, group
}

// turnStep solves the weighted least squares w_b - w_a = off for all photos, by conjugate gradients.
func turnStep(photos int, pairs []*Pair, weights []float64, off [][3]float64) [][3]float64 {
	x, r, z := make([][3]float64, photos), make([][3]float64, photos), make([][3]float64, photos)
	diagonal, product := make([]float64, photos), make([][3]float64, photos)
	for i, p := range pairs {
		w := weights[i]
		diagonal[p.A] += w
		diagonal[p.B] += w
		r[p.A] = geom.Sub(r[p.A], geom.Scale(off[i], w))
		r[p.B] = geom.Add(r[p.B], geom.Scale(off[i], w))
	}
	precondition := func() (rz float64) {
		for i := range z {
			z[i] = geom.Scale(r[i], 1/max(1e-12, diagonal[i]))
			rz += geom.Dot(r[i], z[i])
		}
		return rz
	}
	rz := precondition()
	direction, goal := slices.Clone(z), turnShare*turnShare*rz
	for range turnSteps {
		if rz <= goal {
			break
		}
		clear(product)
		for i, p := range pairs {
			d := geom.Scale(geom.Sub(direction[p.B], direction[p.A]), weights[i])
			product[p.B], product[p.A] = geom.Add(product[p.B], d), geom.Sub(product[p.A], d)
		}
		var curvature float64
		for i := range direction {
			curvature += geom.Dot(direction[i], product[i])
		}
		if !(curvature > 0) {
			break
		}
		for i := range x {
			x[i] = geom.Add(x[i], geom.Scale(direction[i], rz/curvature))
			r[i] = geom.Sub(r[i], geom.Scale(product[i], rz/curvature))
		}
		next := precondition()
		for i := range direction {
			direction[i] = geom.Add(z[i], geom.Scale(direction[i], next/rz))
		}
		rz = next
	}
	return x
}

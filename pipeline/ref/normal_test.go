package ref

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestNormalGradients compares every parameter's gradient by the normal loss with central differences. Pairs keep the
// weights that they begin with.
func TestNormalGradients(t *testing.T) {
	for _, fisheye := range []bool{false, true} {
		p, v := gradScene(1, 11), gradView(fisheye, !fisheye, 1)
		r := rand.New(rand.NewPCG(4, 5))
		normals := make([][3]float64, v.Width*v.Height)
		for i := range normals {
			if r.IntN(5) > 0 { // towards the camera, and close to each other
				normals[i] = unit(vec3[float64]{0.3 * r.Float64(), 0.2 * r.NormFloat64(), -1})
			}
		}
		render := func() ([][4]float64, []float64) {
			proj, img := Render(p, v, 1)
			l := NewLists(proj, v.Grid())
			return img.Render, RasterizeDepth(proj.Splats, InverseDepths(p, v, proj), l, v, v.Grid())
		}
		proj, _ := Render(p, v, 1)
		colours, sums := render()
		covers := make([]float64, len(sums))
		for i, c := range colours {
			covers[i] = 1 - c[3]
		}
		loss, vSums, vAlphas := NormalLoss(colours, sums, normals, covers, v, 20)
		if !(loss > 0.3) {
			t.Errorf("the loss is %g", loss)
		}
		up := make([][4]float64, len(sums))
		for i, a := range vAlphas {
			up[i] = [4]float64{0, 0, 0, a}
		}
		checkGradients(t, p, BackwardDepth(p, v, proj, up, vSums), func() float64 {
			colours, sums := render()
			loss, _, _ := NormalLoss(colours, sums, normals, covers, v, 20)
			return loss
		})
	}
}

// TestNormalPlane has no loss where a picture shows the plane whose normal is known, however it lies.
func TestNormalPlane(t *testing.T) {
	for _, fisheye := range []bool{false, true} {
		v := gradView(fisheye, false, 0)
		r := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			n := unit(vec3[float64]{0.3 * r.NormFloat64(), 0.3 * r.NormFloat64(), -1})
			other := unit(vec3[float64]{n[0] + 0.3, n[1], n[2]})
			render, sums := make([][4]float64, v.Width*v.Height), make([]float64, v.Width*v.Height)
			normals, others := make([][3]float64, len(sums)), make([][3]float64, len(sums))
			alphas := make([]float64, len(sums))
			for i := range sums {
				alphas[i] = 0.2 + 0.8*r.Float64()
				c := [2]float64{float64(i%v.Width) + 0.5, float64(i/v.Width) + 0.5}
				sums[i], render[i][3] = -alphas[i]*n.dot(v.ray(c))/5, 1-alphas[i]
				normals[i], others[i] = n, other
			}
			loss, _, _ := NormalLoss(render, sums, normals, alphas, v, 1)
			off, _, _ := NormalLoss(render, sums, others, alphas, v, 1)
			if !(math.Abs(loss) < 1e-9) || !(off > 0.01) {
				t.Errorf("normal %v: loss %g, of another one %g", n, loss, off)
			}
		}
	}
}

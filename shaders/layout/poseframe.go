package layout

// PoseFrame is what refine_pose needs to take out what all cameras of a table share.
type PoseFrame struct {
	Inverse float32    // of the number of views
	Turn    [6]float32 // inverse of the sum over views of 1 - [center]^2: xx, xy, xz, yy, yz, zz
	Size    float32    // inverse of the sum of squared centers; 0 where all cameras are in one place
}

// NewPoseFrame returns that of the rows of all views.
func NewPoseFrame(rows []Pose) (f PoseFrame) {
	var a [3][3]float64
	size := 0.0
	for i := range rows {
		c := rows[i].Center
		square := 0.0
		for _, x := range c {
			square += float64(x) * float64(x)
		}
		size += square
		for r := range a {
			a[r][r] += 1 + square
			for k := range a {
				a[r][k] -= float64(c[r]) * float64(c[k])
			}
		}
	}
	// It is symmetric, and at least the number of views in every direction.
	minor := func(r0, r1, c0, c1 int) float64 { return a[r0][c0]*a[r1][c1] - a[r0][c1]*a[r1][c0] }
	xx, xy, xz := minor(1, 2, 1, 2), -minor(1, 2, 0, 2), minor(1, 2, 0, 1)
	det := a[0][0]*xx + a[0][1]*xy + a[0][2]*xz
	for i, x := range [...]float64{xx, xy, xz, minor(0, 2, 0, 2), -minor(0, 2, 0, 1), minor(0, 1, 0, 1)} {
		f.Turn[i] = float32(x / det)
	}
	if f.Inverse = 1 / float32(len(rows)); size > 0 {
		f.Size = float32(1 / size)
	}
	return f
}

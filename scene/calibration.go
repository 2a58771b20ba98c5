package scene

// LensModel is a way in which a physical camera projects: COLMAP's models under COLMAP's ids, and others from 1000 on.
type LensModel int

// The models that callers name.
const (
	LensSimplePinhole   LensModel = 0  // f, cx, cy
	LensPinhole         LensModel = 1  // fx, fy, cx, cy
	LensEquirectangular LensModel = 17 // width, height: the whole sphere, azimuth across and elevation down
	// fx, fy, cx, cy, k1, k2, k3, k4, p1, p2: radial 1 + k1 r² + k2 r⁴ + k3 r⁶ + k4 r⁸, tangential as OpenCV
	LensPolynomial LensModel = 1000
	// fx, fy, cx, cy, k1, k2, k3, k4, p1, p2, skew: as LensPolynomial, with skew times the distorted y added to the
	// column, as Metashape's B2
	LensSkewed        LensModel = 1001
	LensSkewedFisheye LensModel = 1002 // the same of an equidistant fisheye: r is the angle from the axis
)

// The others of COLMAP; f or fx, fy, then cx, cy come first.
const (
	LensSimpleRadial        LensModel = 2  // k
	LensRadial              LensModel = 3  // k1, k2
	LensOpenCV              LensModel = 4  // k1, k2, p1, p2
	LensOpenCVFisheye       LensModel = 5  // k1..k4
	LensFullOpenCV          LensModel = 6  // k1, k2, p1, p2, k3..k6
	LensFOV                 LensModel = 7  // omega
	LensSimpleRadialFisheye LensModel = 8  // k
	LensRadialFisheye       LensModel = 9  // k1, k2
	LensThinPrism           LensModel = 10 // k1, k2, p1, p2, k3, k4, sx1, sy1
	LensRadTanThinPrism     LensModel = 11 // k0..k5, p0, p1, s0..s3
	LensSimpleDivision      LensModel = 12 // k
	LensDivision            LensModel = 13 // k
	LensSimpleFisheye       LensModel = 14
	LensFisheye             LensModel = 15
	LensEUCM                LensModel = 16 // alpha, beta
)

// Calibration is a physical camera: how it projects into the pixels of the photo as calibrated.
type Calibration struct {
	Model         LensModel
	Width, Height int       // of the photo when it was calibrated
	Params        []float64 // as COLMAP orders them for the model; pixel centres are at +0.5
}

// Lens says where Decode finds the pixels of an undistorted camera in its photo.
type Lens struct {
	Calibration Calibration
	// From the camera's axes to those of the lens, row-major: the identity except for the faces of a panorama.
	R [9]float64
	// what the photo is reduced to where it is trained on as taken; as R, it follows from the capture, and fingerprints
	// leave it out
	Width, Height int `json:"-"`
}

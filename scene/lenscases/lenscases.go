package lenscases

import (
	"vksplat/scene"
)

// LensCases are parameters of every model, most of them those of COLMAP's own tests (sensor/models_test.cc), for a photo of 800 x 1000 pixels.
var LensCases = []struct {
	Model  scene.LensModel
	Params []float64
}{
	{scene.LensSimplePinhole, []float64{655.123, 386.123, 511.123}},
	{scene.LensPinhole, []float64{651.123, 655.123, 386.123, 511.123}},
	{scene.LensSimpleRadial, []float64{651.123, 386.123, 511.123, 0.1}},
	{scene.LensSimpleRadial, []float64{651.123, 386.123, 511.123, -0.1}},
	{scene.LensRadial, []float64{651.123, 386.123, 511.123, 0.05, 0.03}},
	{scene.LensOpenCV, []float64{651.123, 655.123, 386.123, 511.123, -0.471, 0.223, -0.001, 0.001}},
	{scene.LensOpenCVFisheye, []float64{651.123, 655.123, 386.123, 511.123, -0.471, 0.223, -0.001, 0.001}},
	{scene.LensFullOpenCV, []float64{651.123, 655.123, 386.123, 511.123, -0.471, 0.223, -0.001, 0.001, 0.001, 0.02, -0.02, 0.001}},
	{scene.LensFOV, []float64{651.123, 655.123, 386.123, 511.123, 0}},
	{scene.LensFOV, []float64{651.123, 655.123, 386.123, 511.123, 0.9}},
	{scene.LensFOV, []float64{651.123, 655.123, 386.123, 511.123, 1e-6}},
	{scene.LensSimpleRadialFisheye, []float64{651.123, 386.123, 511.123, 0.1}},
	{scene.LensRadialFisheye, []float64{651.123, 386.123, 511.123, 0.02, 0.05}},
	{scene.LensThinPrism, []float64{651.123, 655.123, 386.123, 511.123, -0.471, 0.223, -0.001, 0.001, 0.001, 0.02, -0.02, 0.001}},
	{scene.LensRadTanThinPrism, []float64{651.123, 655.123, 386.123, 511.123,
		-0.0232, 0.0924, -0.0591, 0.003, 0.0048, -0.0009, 0.0002, 0.0005, -0.0009, -0.0001, 0.00007, -0.00017}},
	{scene.LensSimpleDivision, []float64{651.123, 386.123, 511.123, 0}},
	{scene.LensSimpleDivision, []float64{651.123, 386.123, 511.123, 0.1}},
	{scene.LensDivision, []float64{651.123, 655.123, 386.123, 511.123, -0.1}},
	{scene.LensSimpleFisheye, []float64{651.123, 386.123, 511.123}},
	{scene.LensFisheye, []float64{651.123, 655.123, 386.123, 511.123}},
	{scene.LensEUCM, []float64{651.123, 655.123, 386.123, 511.123, 0.56, 0.87}},
	{scene.LensEUCM, []float64{400, 400, 400, 400, 0.88, 0.64}},
	{scene.LensEUCM, []float64{651.123, 655.123, 386.123, 511.123, 0, 1}},
	{scene.LensEquirectangular, []float64{800, 1000}},
	{scene.LensPolynomial, []float64{651.123, 655.123, 386.123, 511.123, -0.2, 0.05, -0.01, 0.002, 0.0007, -0.0011}},
}

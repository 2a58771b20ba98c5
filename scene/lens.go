package scene

import (
	"strconv"
	"strings"
)

// lensInfo describes a lens model.
type lensInfo struct {
	name   string
	params int // numbers in Calibration.Params
}

// colmapModels are COLMAP's camera models by id, as in its sensor/models.h.
var colmapModels = [...]lensInfo{
	LensSimplePinhole:   {"SIMPLE_PINHOLE", 3},
	LensPinhole:         {"PINHOLE", 4},
	lensSimpleRadial:    {"SIMPLE_RADIAL", 4},
	lensRadial:          {"RADIAL", 5},
	lensOpenCV:          {"OPENCV", 8},
	lensOpenCVFisheye:   {"OPENCV_FISHEYE", 8},
	lensFullOpenCV:      {"FULL_OPENCV", 12},
	lensFOV:             {"FOV", 5},
	lensSimpleRadialFi:  {"SIMPLE_RADIAL_FISHEYE", 4},
	lensRadialFisheye:   {"RADIAL_FISHEYE", 5},
	lensThinPrism:       {"THIN_PRISM_FISHEYE", 12},
	lensRadTanThinPrism: {"RAD_TAN_THIN_PRISM_FISHEYE", 16},
	lensSimpleDivision:  {"SIMPLE_DIVISION", 4},
	lensDivision:        {"DIVISION", 5},
	lensSimpleFisheye:   {"SIMPLE_FISHEYE", 3},
	lensFisheye:         {"FISHEYE", 4},
	lensEUCM:            {"EUCM", 6},
	LensEquirectangular: {"EQUIRECTANGULAR", 2},
}

// info describes a model; ok is false for one that does not exist.
func (m LensModel) info() (info lensInfo, ok bool) {
	switch {
	case m >= 0 && int(m) < len(colmapModels):
		return colmapModels[m], true
	case m == LensPolynomial:
		return lensInfo{"POLYNOMIAL", 10}, true
	}
	return lensInfo{}, false
}

// String gives COLMAP's name of the model, or a name like it.
func (m LensModel) String() string {
	if info, ok := m.info(); ok {
		return info.name
	}
	return "lens model " + strconv.Itoa(int(m))
}

// NumParams gives the length of Calibration.Params, 0 for a model that does not exist.
func (m LensModel) NumParams() int {
	info, _ := m.info()
	return info.params
}

// LensModelByName finds COLMAP's name of a model, in any case.
func LensModelByName(name string) (m LensModel, ok bool) {
	for m, info := range colmapModels {
		if strings.EqualFold(info.name, name) {
			return LensModel(m), true
		}
	}
	return LensPolynomial, strings.EqualFold(LensPolynomial.String(), name)
}

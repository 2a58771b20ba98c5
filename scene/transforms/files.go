package transforms

// The files of captures that are not COLMAP's.
const (
	TransformsFile = "transforms.json"
	TrainFile      = "transforms_train.json"
	TestFile       = "transforms_test.json"
	ValFile        = "transforms_val.json"
)

package mapping_test

import (
	"context"
	"errors"
	"testing"

	"vksplat/scene"
	"vksplat/scene/mapping"
	"vksplat/scene/twoview"
)

func input() *mapping.Input {
	lens := scene.Calibration{Model: scene.LensSimpleRadial, Width: 100, Height: 80, Params: []float64{90, 50, 40, 0}}
	return &mapping.Input{Lenses: []mapping.Lens{{Calibration: lens}}, Photos: []mapping.Photo{
		{Name: "a", Keypoints: [][2]float32{{1, 2}}}, {Name: "b", Keypoints: [][2]float32{{3, 4}}}}}
}

// Photos that share nothing are no error of the input.
func TestNothing(t *testing.T) {
	for _, in := range []*mapping.Input{{}, input()} {
		if _, err := mapping.Map(context.Background(), in, mapping.Options{}); !errors.Is(err, mapping.ErrNoPair) {
			t.Errorf("error: %v", err)
		}
	}
}

// Indices and lenses that are wrong are refused.
func TestWrong(t *testing.T) {
	pair := func(p mapping.Pair) func(in *mapping.Input) {
		return func(in *mapping.Input) { in.Pairs = append(in.Pairs, p) }
	}
	for name, spoil := range map[string]func(in *mapping.Input){
		"lens of a photo": func(in *mapping.Input) { in.Photos[1].Lens = 1 },
		"focal length":    func(in *mapping.Input) { in.Lenses[0].Params[0] = 0 },
		"moment":          func(in *mapping.Input) { in.Photos[0].Moment = 3 },
		"one moment":      func(in *mapping.Input) { in.Photos[0].Moment, in.Photos[1].Moment = 1, 1 },
		"lens model": func(in *mapping.Input) {
			in.Lenses[0].Model = scene.LensSkewed
			in.Lenses[0].Params = append([]float64{9, 9, 5, 5}, make([]float64, 7)...)
		},
		"one photo":   pair(mapping.Pair{A: 1, B: 1}),
		"no photo":    pair(mapping.Pair{A: 0, B: 2}),
		"no keypoint": pair(mapping.Pair{A: 0, B: 1, Matches: [][2]int32{{0, 1}}}),
		"no match": pair(mapping.Pair{A: 0, B: 1, Matches: [][2]int32{{0, 0}},
			Relation: twoview.Relation{Inliers: []int32{1}}}),
	} {
		in := input()
		spoil(in)
		_, err := mapping.Map(context.Background(), in, mapping.Options{})
		if err == nil || errors.Is(err, mapping.ErrNoPair) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

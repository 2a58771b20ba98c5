package ref

// twin: reset_opacity

// ResetOpacity lowers every logit opacity to the ceiling and zeroes its moments. Published recipes use the logit of
// 0.01.
func ResetOpacity[T Real](model *Model[T], ceiling T) {
	for i, x := range model.LogitOpacities {
		model.LogitOpacities[i] = min(x, ceiling)
	}
	clear(model.M.LogitOpacities)
	clear(model.V.LogitOpacities)
}

package spec

// KindEval measures models: it makes a table of their scores.
var KindEval = &Kind{
	Name:  "eval",
	About: "measure models on held-out photos",
	fields: keys("eval",
		plain("models", typeInputs, "the models, as tasks or keys").list(0, maxEntries).need(),
		plain("source", typeInput, "the capture; of trained models it is known"),
		"split", "protocol", "color_correct", "test_every", "downscale", "images", "masks", "strict"),
	Makes:       "a table",
	Takes:       "a capture",
	NeedsDevice: true,
	Silent:      true,
	Gathers:     true,
	inputs:      (*planner).sources,
	Command:     "eval",
}

// sources gives the models of an eval the capture that they are measured with: their own, unless the task names one.
func (p *planner) sources(e *expanded, _ *variant, t *Task) error {
	for i := range t.Models {
		m := &t.Models[i]
		if !t.Source.None() {
			m.Source = t.Source
		}
		if m.Source.None() {
			return p.wrong(path{"task", e.at}, "add: source", "cannot tell which capture model %d was trained on", i+1)
		}
		if err := p.need(t, m.Source.Tasks, 0); err != nil {
			return err
		}
	}
	return nil
}

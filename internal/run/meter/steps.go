package meter

import (
	"bufio"
	"encoding/json"
	"io"

	"vksplat/scene/results"
)

type ViewLine struct {
	Name string `json:"name"`
	PSNR Exact  `json:"psnr"`
	SSIM Exact  `json:"ssim"`
	results.Extra[*Exact]
}

// ReadSteps returns the step lines of a metrics.jsonl, thinned to about limit: one
// of 2^k, and the last.
func ReadSteps(r io.Reader, limit int) []StepLine {
	var kept []StepLine
	var last StepLine
	n, stride := 0, 1
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		var l StepLine
		if json.Unmarshal(line, &l) != nil || l.Event != EventStep {
			continue
		}
		if last = l; n%stride == 0 {
			kept = append(kept, l)
		}
		if n++; len(kept) > 2*limit {
			for i := range (len(kept) + 1) / 2 {
				kept[i] = kept[2*i]
			}
			kept = kept[:(len(kept)+1)/2]
			stride *= 2
		}
	}
	if len(kept) > 0 && kept[len(kept)-1].Step != last.Step {
		kept = append(kept, last)
	}
	return kept
}

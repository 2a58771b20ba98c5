package merge

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/models"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/results"
)

// worseBy is how many dB a view may lose by the merging before it is named.
const worseBy = 0.3

// SeamReport says how the merged scene does on held-out photos. The name is exported for encoding/json, which otherwise
// cannot fill it.
type SeamReport struct {
	Protocol   string     `json:"protocol"`
	PSNR       float64    `json:"psnr"` // means over all views
	SSIM       float64    `json:"ssim"`
	BorderPSNR float64    `json:"border_psnr"` // mean over the views of several blocks
	BorderLoss float64    `json:"border_loss"` // mean of what these lost against the block that had them best, dB
	Views      []SeamView `json:"views"`
	Worse      []string   `json:"worse"` // views that lost more than 0.3 dB
}

// SeamView is a held-out photo.
type SeamView struct {
	Name      string  `json:"name"`
	Blocks    []int   `json:"blocks"` // that see it: of several, it is near a border
	PSNR      float64 `json:"psnr"`   // of the merged scene
	SSIM      float64 `json:"ssim"`
	BlockPSNR float64 `json:"block_psnr"` // the best of the blocks' own; 0: none measured it
}

// checkSeams measures the held-out photos on the merged scene and compares with what they were in their blocks.
func (m *merger) checkSeams(ctx context.Context) error {
	if len(m.plan.HeldOut) == 0 {
		m.console.Note("no photo was held out: the seams are not checked (" + fault.Command("partition --eval") + ")")
		return nil
	}
	views, err := m.measure(ctx)
	if pipeline.IsShortage(err) {
		m.console.Warn("the merged scene is not measured: " + err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	r := &SeamReport{Protocol: evaluate.ProtocolGsplat, Worse: []string{}}
	blocks := m.inBlocks()
	best := m.blockScores()
	borders, compared := 0, 0
	for _, v := range views {
		s := SeamView{Name: v.Name, Blocks: blocks[v.Name],
			PSNR: min(evaluate.Named(v.Scores, evaluate.PlainNames[0]).Value, meter.MaxPSNR),
			SSIM: evaluate.Named(v.Scores, evaluate.PlainNames[1]).Value, BlockPSNR: best[v.Name]}
		r.Views = append(r.Views, s)
		r.PSNR += s.PSNR / float64(len(views))
		r.SSIM += s.SSIM / float64(len(views))
		if len(s.Blocks) > 1 {
			borders++
			r.BorderPSNR += s.PSNR
			if s.BlockPSNR > 0 {
				compared++
				r.BorderLoss += s.BlockPSNR - s.PSNR
			}
		}
		if s.BlockPSNR-s.PSNR > worseBy {
			r.Worse = append(r.Worse, s.Name)
		}
	}
	r.BorderPSNR /= math.Max(1, float64(borders))
	r.BorderLoss /= math.Max(1, float64(compared))
	m.report.SeamReport = r
	m.printSeams(r)
	return nil
}

// measure renders and compares the held-out photos, as eval does.
func (m *merger) measure(ctx context.Context) ([]results.ViewScores, error) {
	o := &evaluate.Options{Models: []string{m.out}, Split: evaluate.SplitTest, Protocol: evaluate.ProtocolGsplat,
		Correct: evaluate.ColorNone, TestEvery: captured.HeldOutEvery, Load: captured.Options{Model: scene.AnyModel},
		Iteration: m.report.Step, Device: m.Device, Config: pipeline.RenderConfig{Near: recipe.Default().Near},
		Given: func(string) bool { return false }}
	o.Compare = true // the tables are printed here
	if err := models.LimitHeap(m.console, o.Device); err != nil {
		return nil, err
	}
	job, err := evaluate.ModelJob(m.console, *o, m.out)
	if err != nil {
		return nil, err
	}
	if err := evaluate.MeasureAll(m.console, ctx, o, []*evaluate.Job{job}); err != nil {
		return nil, err
	}
	return job.Result.Views, nil
}

// inBlocks returns by view the blocks that see it.
func (m *merger) inBlocks() map[string][]int {
	blocks := map[string][]int{}
	for k := range m.plan.Blocks {
		for _, name := range m.plan.Blocks[k].Cameras {
			blocks[name] = append(blocks[name], k)
		}
	}
	return blocks
}

// blockScores returns by view the best PSNR that a block had at its end. What was measured by another protocol does not
// count.
func (m *merger) blockScores() map[string]float64 {
	best := map[string]float64{}
	for _, b := range m.report.Blocks {
		views, protocol, err := results.ReadViews(m.plan.BlockFolder(b.Block), results.MethodName(b.Step),
			evaluate.PlainNames[0])
		if err != nil || protocol != evaluate.ProtocolGsplat {
			m.console.Warn(fmt.Sprintf("block %d has no scores of its own: its views are not compared", b.Block))
			continue
		}
		for name, psnr := range views {
			best[name] = max(best[name], psnr)
		}
	}
	return best
}

// printSeams prints the views near borders, and those that came out worse.
func (m *merger) printSeams(r *SeamReport) {
	var table evaluate.MarkdownTable
	table.Add("view", "blocks", "PSNR", "in its block")
	for _, v := range r.Views {
		if len(v.Blocks) < 2 {
			continue
		}
		names := make([]string, len(v.Blocks))
		for i, k := range v.Blocks {
			names[i] = strconv.Itoa(k)
		}
		own := "-"
		if v.BlockPSNR > 0 {
			own = fmt.Sprintf("%.2f", v.BlockPSNR)
		}
		table.Add(v.Name, strings.Join(names, " "), fmt.Sprintf("%.2f", v.PSNR), own)
	}
	if len(table.Rows) > 1 {
		m.console.Printf("\nheld-out photos that several blocks see:\n%s\n", &table)
	}
	m.console.Printf("held-out photos: PSNR %.2f dB, SSIM %.4f (mean of %d)\n", r.PSNR, r.SSIM, len(r.Views))
	if len(r.Worse) == 0 {
		return
	}
	m.console.Warn(scene.Warning{Count: len(r.Worse), Names: r.Worse[:min(len(r.Worse), 5)],
		Text: fmt.Sprintf("%s lost more than %g dB against their blocks: look at them, and try %s 2000 or a "+
			"plan with more %s", cli.Count(len(r.Worse), "held-out photo"), worseBy, fault.Setting("finetune"),
			fault.Setting("overlap"))}.String())
}

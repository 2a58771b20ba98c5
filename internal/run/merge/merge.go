package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/itself"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/internal/run/remedy"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

type Options struct {
	Plan     string
	Exports  convert.Exports
	Finetune int
	Check    bool
	Device   pipeline.DeviceOptions
	claimed  bool // the caller has claimed the plan's folder

	Overwrite bool
	resumes   bool // what it exported before may be replaced

	// For --finetune, the flags of train that choose the device, and those that read a capture.
	DeviceFlags []string
	SourceFlags func(rec *captured.Source, dir string) []string
}

type Report struct {
	Version int           `json:"version"`
	Model   string        `json:"model"` // relative to PLAN
	Step    int           `json:"step"`
	Splats  int           `json:"splats"`
	Degree  int           `json:"sh_degree"`
	Blocks  []mergedBlock `json:"blocks"`
	*SeamReport
}

type mergedBlock struct {
	Block  int `json:"block"`
	Step   int `json:"step"`
	Splats int `json:"splats"` // of its own model
	Kept   int `json:"kept"`   // on its core
}

// merger joins the blocks of a plan.
type merger struct {
	*Options
	console *cli.Console
	plan    *plans.Plan
	capture *scene.Capture
	models  convert.OpenedModels
	report  Report
	record  captured.Record // of the blocks' training
	out     string
}

// Run joins the blocks and measures what came of it.
func Run(console *cli.Console, ctx context.Context, o *Options) (err error) {
	defer func() {
		if errors.Is(err, context.Canceled) {
			err = fault.ErrInterrupted
		}
		err = remedy.Memory(err)
	}()
	plan, err := plans.Read(o.Plan)
	if err != nil {
		return err
	}
	if err := allTrained(plan); err != nil {
		return err
	}
	if !o.claimed {
		release, err := output.Claim(plan.Dir, true)
		if err != nil {
			return err
		}
		defer release()
	}
	m := &merger{Options: o, console: console, plan: plan, out: filepath.Join(plan.Dir, plans.MergedFolder)}
	if err := m.refuseForeign(); err != nil {
		return err
	}
	if err := m.join(ctx); err != nil {
		return err
	}
	if o.Check {
		if err := m.checkSeams(ctx); err != nil {
			return err
		}
	}
	if err := output.WriteJSON(filepath.Join(plan.Dir, plans.MergeFile), &m.report); err != nil {
		return err
	}
	console.Printf("merged: %s\nmodel: %s\n", filepath.Join(plan.Dir, plans.MergeFile), m.model())
	if err := m.export(); err != nil {
		return err
	}
	if o.Finetune > 0 {
		return m.finetuned(ctx)
	}
	return nil
}

// refuseForeign refuses to replace what the user made, or changed, where the merged scene goes.
func (m *merger) refuseForeign() error {
	if err := convert.RefuseExports(output.ReadWritten(m.out), m.Exports, "output", m.resumes,
		m.Overwrite); err != nil || m.Overwrite {
		return err
	}
	hint := "move it away, or replace it with " + fault.Setting("overwrite")
	if out := filepath.Join(m.plan.Dir, finetunedFolder); m.Options.Finetune > 0 {
		list, err := output.ListCheckpoints(filepath.Join(out, output.CheckpointFolder))
		if err := errors.Join(err, output.RefuseFormer(out, len(list), hint)); err != nil {
			return err
		}
	}
	own, whole := output.ReadWritten(m.out), output.ReadWritten(m.plan.Dir)
	var beside []string
	paths := append(output.FormerModels(m.out), output.RunPaths(m.out)...)
	if output.IsFile(filepath.Join(m.plan.Dir, plans.MergeFile)) && !own.Known { // of a build that kept no list
		paths = nil
	}
	if whole.Known {
		beside = []string{filepath.Join(m.plan.Dir, plans.MergeFile)}
	}
	return output.RefuseForeign(append(own.Foreign(paths), whole.Foreign(beside)...), "or replace it with "+
		fault.Setting("overwrite"))
}

func (m *merger) export() error {
	own := output.ReadWritten(m.out)
	for _, path := range m.Exports {
		if err := own.Begin(splatfile.Outputs(path)...); err != nil {
			return err
		}
		if err := convert.ExportTo(m.console, m.model(), path); err != nil {
			return fmt.Errorf("export %s: %w", path, err)
		}
	}
	return errors.Join(own.End(), output.AddWritten(m.plan.Dir, filepath.Join(m.plan.Dir, plans.MergeFile)))
}

// list begins the list of what is written to the folder of the merged scene.
func (m *merger) list() error {
	if whole := output.ReadWritten(m.plan.Dir); whole.Known {
		if err := whole.Begin(filepath.Join(m.plan.Dir, plans.MergeFile)); err != nil {
			return err
		}
	}
	own := output.ReadWritten(m.out)
	own.By = output.ByMerge
	return own.Begin(append(output.RunPaths(m.out), m.model())...)
}

// allTrained refuses a plan with blocks that are not trained to their end.
func allTrained(p *plans.Plan) error {
	var missing []string
	for k := range p.Blocks {
		if trainedBlock(p, k) == nil {
			missing = append(missing, strconv.Itoa(k))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	which := "block " + missing[0] + " is"
	if n := len(missing); n > 1 {
		which = "blocks " + strings.Join(missing[:min(n, 8)], ", ") + " are"
		if n > 8 {
			which = fmt.Sprintf("%d blocks are", n)
		}
	}
	return fault.WithHint(fmt.Errorf("merge %s: %w: %s not trained to the end", p.Dir, fault.ErrData, which),
		fault.Command("train "+cli.Quoted(p.Dir))+" trains what is left and merges")
}

func (m *merger) model() string { return filepath.Join(m.plan.Dir, filepath.FromSlash(m.report.Model)) }

// join writes the merged scene and what an OUT has beside a model.
func (m *merger) join(ctx context.Context) (err error) {
	m.console.LimitHeap(convert.Heap)
	load := captured.Options{Model: scene.AnyModel}
	m.plan.Capture.Options(&load, m.plan.Dir, func(string) bool { return false })
	if m.capture, err = m.plan.Load(load.Options()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.models.Close()) }()
	merged, err := m.open(ctx)
	if err != nil {
		return err
	}
	m.report.Version, m.report.Degree, m.report.Splats = plans.Version, merged.Info().Degree, merged.Info().N
	m.report.Model = filepath.ToSlash(filepath.Join(plans.MergedFolder, output.ModelFolder+strconv.Itoa(m.report.Step),
		output.ModelName))
	if m.report.Splats == 0 {
		return plans.PlanError(m.plan.Dir, "look at the blocks' models: vksplat view",
			"no block has a splat in its core")
	}
	if err := m.clear(); err != nil {
		return err
	}
	m.console.Printf("writing %s of %s\n", cli.Count(m.report.Splats, "splat"), cli.Count(len(m.plan.Blocks), "block"))
	lost, err := splatfile.ByName(output.ModelName).Write(m.model(), merged,
		splatfile.WriteOptions{Generator: "vksplat " + cli.Version()})
	if err != nil {
		return err
	}
	for _, text := range lost {
		m.console.Warn(text)
	}
	return m.writeInputs()
}

// clear makes the folder of the merged scene, without the model and the scores of an earlier one.
func (m *merger) clear() error {
	for _, model := range output.FormerModels(m.out) {
		if err := os.Remove(model); err != nil {
			return output.FolderError(m.out, err)
		}
		_ = os.Remove(filepath.Dir(model)) // refused unless empty
	}
	for _, path := range output.PathsIn(m.out, output.ScoreFiles) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return output.FolderError(m.out, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(m.model()), 0o777); err != nil {
		return output.FolderError(m.out, err)
	}
	return m.list()
}

// open makes one model of the blocks' cores.
func (m *merger) open(ctx context.Context) (splatfile.Source, error) {
	var cores []splatfile.Source
	antialiased, steps := []bool{}, []int{}
	for k := range m.plan.Blocks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		st := trainedBlock(m.plan, k)
		if st == nil {
			return nil, plans.PlanError(m.plan.Dir, plans.Hint, "block %d has lost its model", k)
		}
		model, err := splatfile.Open(m.plan.BlockModel(k, st.Step))
		if err != nil {
			return nil, err
		}
		m.models.Parts = append(m.models.Parts, model)
		rect := m.plan.Blocks[k].Core
		core, err := splatfile.Keep(model, func(at [3]float64) bool { return rect.Holds(m.plan.Ground.At(at)) })
		if err != nil {
			return nil, err
		}
		cores = append(cores, core)
		antialiased, steps = append(antialiased, model.Info().Meta.Antialiased), append(steps, st.Step)
		m.report.Blocks = append(m.report.Blocks,
			mergedBlock{Block: k, Step: st.Step, Splats: model.Info().N, Kept: core.Info().N})
	}
	if len(slices.Compact(antialiased)) > 1 {
		return nil, plans.PlanError(m.plan.Dir, "train all blocks with the same settings",
			"some blocks were trained with %s and some were not: no picture of them together is right",
			fault.Setting("antialiased"))
	}
	m.report.Step = slices.Max(steps)
	if slices.Min(steps) != m.report.Step && !m.plan.Follow(steps) {
		m.console.Warn(fmt.Sprintf("some blocks were trained for %s, others for %d",
			cli.Count(slices.Min(steps), "step"), m.report.Step))
	}
	return splatfile.Merge(cores)
}

// writeInputs writes what render, eval and other programs want beside a model.
func (m *merger) writeInputs() error {
	rec, err := captured.ReadRecord(m.plan.BlockFolder(0))
	if err != nil {
		return err
	}
	if rec == nil {
		return plans.PlanError(m.plan.BlockFolder(0), "train the block again with "+fault.Setting("overwrite"),
			"there is no %s", output.CaptureFile)
	}
	m.record = *rec
	m.record.Source, m.record.HeldOut = m.plan.Capture, m.plan.HeldOut
	_, test := m.capture.Split(0)
	w := captured.Inputs{Test: test, Record: m.record, Origin: m.plan.Origin}
	w.Cameras, w.Points = captured.Moved(m.capture, m.plan.Origin)
	load := captured.Options{Model: scene.AnyModel}
	m.plan.Capture.Options(&load, m.plan.Dir, func(string) bool { return false })
	o := &train.Options{Scene: m.plan.Capture.Scene, Out: m.out, Load: load, Eval: len(test) > 0}
	o.Config.SHDegree, o.Config.Background = m.report.Degree, rec.Background
	w.Cfg = o.CfgArgs()
	return errors.Join(load.SaveCameras(m.out, captured.ModelFolder), w.Write(m.out))
}

// finetunedFolder of a plan is the OUT of the merged scene's further training.
const finetunedFolder = "finetuned"

// heldOutList of a plan names the photos that are held out.
const heldOutList = "held_out.txt"

// finetuned trains the merged scene for some steps on the whole capture, in a process of its own: seams close, and no
// splat is added or removed.
func (m *merger) finetuned(ctx context.Context) error {
	list := ""
	if len(m.plan.HeldOut) > 0 {
		list = filepath.Join(m.plan.Dir, heldOutList)
		if err := captured.WriteTestList(list, m.capture); err != nil {
			return err
		}
	}
	args := m.finetuneArgs(list)
	m.console.Printf("training the merged scene: vksplat %s\n", strings.Join(cli.QuotedAll(args), " "))
	if err := itself.Run(m.console, ctx, args); err != nil {
		if ctx.Err() != nil {
			return fault.ErrInterrupted
		}
		return fault.WithHint(fmt.Errorf("finetune %s: %w", m.plan.Dir, err),
			"the merged scene is complete without it: "+m.out)
	}
	return nil
}

// finetuneArgs are the arguments of the further training. The list, if not "", names the photos that are held out.
func (m *merger) finetuneArgs(list string) []string {
	further := itself.Further{Scene: m.plan.Capture.Scene, Out: filepath.Join(m.plan.Dir, finetunedFolder),
		Model: m.model(), Steps: m.Options.Finetune, Degree: m.report.Degree, Background: m.record.Background,
		Origin: m.plan.Origin, TestList: list}
	args := slices.Concat(further.Args(), m.SourceFlags(&m.plan.Capture, m.plan.Dir), m.DeviceFlags)
	if m.Overwrite {
		args = append(args, cli.Switch("overwrite"))
	}
	return args
}

package train

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/convert"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/internal/run/report"
	"vksplat/pipeline"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/depth"
	"vksplat/scene/initial"
	"vksplat/scene/inria"
)

// OfPlan names the flag that wants a plan, "" without one.
func (o *Options) OfPlan() string {
	switch {
	case o.Block != plans.NoBlock:
		return "block"
	case o.ShareSteps:
		return "share-steps"
	}
	return ""
}

// SetBlock makes the options those of a block of the plan.
func (o *Options) SetBlock(plan *plans.Plan) {
	o.Divided, o.Scene = plan, plan.Capture.Scene
	plan.Capture.Options(&o.Load, plan.Dir, func(string) bool { return false })
	o.configure()
	if share := o.stepsShare(); share != 1 {
		o.EvalAt.Scale(share)
		o.Checkpoints.SaveAt.Scale(share)
	}
	if o.Out == "" {
		o.Out = plan.BlockFolder(int(o.Block))
	}
	if at := plan.Origin; o.Origin == "auto" { // the same for all blocks
		o.Origin = captured.OriginFlag(fmt.Sprintf("%g,%g,%g", at[0], at[1], at[2]))
	}
}

// ConfigOf is the configuration of a block's training.
func (o *Options) ConfigOf(plan *plans.Plan, k int) recipe.Config {
	if !o.ShareSteps {
		return o.Config
	}
	return o.Config.ForShare(plan.Share(k))
}

// OfOneBlock refuses flags that only the training of a single block can have.
func (o *Options) OfOneBlock(plan *plans.Plan) error {
	switch {
	case o.TimeLimit > 0:
		return fault.Usagef("give it with "+fault.Setting("block")+", to the training of one",
			"%s: %s is a plan of several blocks, and joins them", fault.Named("time-limit"), plan.Dir)
	case o.Out != "":
		return fault.Usagef("leave it out: blocks go to "+plan.BlockFolder(0)+" and so on; or train one with "+
			fault.Setting("block"), "%s: %s is a plan of several blocks", fault.Named("model-path"), plan.Dir)
	case o.Checkpoints.Resume != "" && o.Checkpoints.Resume != ResumeAuto:
		return fault.Usagef("leave it out: blocks that were started resume; or train one with "+fault.Setting("block"),
			"%s: %s is a plan of several blocks", fault.Named("resume"), plan.Dir)
	}
	return nil
}

// AsTrained refuses to join a block, which is done, with others that are trained otherwise. What a run chooses by its
// photos does not count, unless it was given.
func (o *Options) AsTrained(k int, st *output.Stats, config recipe.Config) error {
	chosen := []string{"iterations"}
	for i := range recipe.Settings {
		if s := &recipe.Settings[i]; followsFactor(o, s, &config) {
			chosen = append(chosen, s.Name)
		}
	}
	if !o.BackgroundChosen() {
		chosen = append(chosen, "background")
	}
	changes := slices.DeleteFunc(st.Config.Changes(config),
		func(c recipe.Change) bool { return slices.Contains(chosen, c.Key) })
	if len(changes) == 0 {
		return nil
	}
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = c.String()
	}
	return fault.Usagef("give the settings that the blocks were started with, "+fault.Setting("overwrite")+
		" to train all of them again, or "+fault.Setting("accept-changes")+" to accept it as it is",
		"block %d was trained with other settings: %s", k, strings.Join(words, "; "))
}

// How many checkpoints stay unless the user says otherwise.
const (
	defaultKeepRunning = 2
	defaultKeepAtEnd   = 1
)

// CheckpointOptions says when checkpoints are written and what a run resumes from.
type CheckpointOptions struct {
	Every     everyFlag
	SaveAt    cli.Steps
	Keep      keepFlag
	Resume    string // "": start; auto: the newest checkpoint, if any; or a file
	Accept    bool   // other settings or photos than the checkpoint's
	Overwrite bool   // replace a run in OUT, and files that are in the way
	Off       bool   // neither written nor looked for
	Demo      bool   // the run is the demo's, which replaces an earlier one of its own
}

// newCheckpointOptions returns the defaults.
func newCheckpointOptions() CheckpointOptions {
	return CheckpointOptions{Every: everyFlag{time: 5 * time.Minute}, Keep: -1}
}

// ResumeAuto is the value of --resume without one.
const ResumeAuto = "auto"

// keepRunning returns how many checkpoints stay while training runs.
func (o *CheckpointOptions) keepRunning() int {
	if o.Keep < 0 {
		return defaultKeepRunning
	}
	return max(int(o.Keep), 1)
}

// keepAtEnd returns how many stay when it is done.
func (o *CheckpointOptions) keepAtEnd() int {
	if o.Keep < 0 {
		return defaultKeepAtEnd
	}
	return int(o.Keep)
}

// everyFlag is a number of steps or a time; both 0: never.
type everyFlag struct {
	steps int
	time  time.Duration
}

var everyForm = regexp.MustCompile(`^\d+(\.\d+)?m$`)

func (f *everyFlag) Type() string { return "N|Nm" }

func (f *everyFlag) String() string {
	if f.time > 0 {
		return strconv.FormatFloat(f.time.Minutes(), 'f', -1, 64) + "m"
	}
	return strconv.Itoa(f.steps)
}

// Set parses a number of steps or, with m, of minutes.
func (f *everyFlag) Set(s string) error {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		*f = everyFlag{steps: n}
		return nil
	}
	minutes, err := strconv.ParseFloat(strings.TrimSuffix(s, "m"), 64)
	if err != nil || !everyForm.MatchString(s) || minutes > maxMinutes {
		return fault.Usagef("give steps as in 1000, or minutes as in 5m", "%q is neither steps nor minutes", s)
	}
	*f = everyFlag{time: time.Duration(minutes * float64(time.Minute))}
	return nil
}

// maxMinutes is more than any run takes, and less than a time.Duration holds.
const maxMinutes = 1e8

// keepFlag is a number of checkpoints, -1 for the default.
type keepFlag int

func (f *keepFlag) Type() string { return "N" }

func (f *keepFlag) String() string { return cli.CountText(*f) }

// Set parses a number from 0 up.
func (f *keepFlag) Set(s string) error {
	return cli.SetCount(f, s, "give a number from 0 up; 0 leaves none at the end", "%q is not a number of checkpoints")
}

// MemoryFlags say how memory is shared out.
type MemoryFlags struct {
	DryRun          bool   // print the plan and stop
	PlanJSON        bool   // as JSON
	ImageCache      string // folder of the disk cache, "": none
	ImageCacheBytes int64  // 0: what all photos take
	PhotoRAM        int64  // decoded photos in RAM, 0: planned
	PhotoVRAM       int64  // decoded photos on the device, 0: planned
}

// CfgArgs returns what INRIA's viewers and scripts read about a run.
func (o *Options) CfgArgs() inria.CfgArgs {
	a := inria.CfgArgs{SHDegree: o.Config.SHDegree, SourcePath: output.Absolute(o.Scene), ModelPath: o.Out,
		Images: o.Load.Images, Resolution: int(o.Load.Downscale),
		WhiteBackground: o.Config.Background == [3]float32{1, 1, 1}, Eval: o.Eval}
	if a.Images == "" {
		a.Images = "images"
	}
	if a.Resolution == 0 {
		a.Resolution = -1 // INRIA's word for auto
	}
	return a
}

// Options is everything that train is asked for. What is no part of
// recipe.Config changes no byte of the model, but for the choice of photos.
type Options struct {
	Scene   string          // the capture's folder
	Block   plans.BlockFlag // of a plan
	Divided *plans.Plan     // that block belongs to; nil without
	// Whether a block is trained as often on each photo as the whole would be, see ConfigOf.
	ShareSteps bool
	Out        string // the folder that is written
	Claimed    bool   // the caller has claimed out already

	Eval      bool
	TestEvery int       // spacing of held-out photos
	TestList  string    // file with the names of those
	EvalAt    cli.Steps // evaluate after these steps too
	Exports   convert.Exports
	Load      captured.Options
	Depth     DepthOptions
	Normal    NormalOptions
	Device    pipeline.DeviceOptions
	Devices   string // that train together; "": one does
	Origin    captured.OriginFlag
	Init      initial.Options
	Config    recipe.Config // what choices gave, once Resolve or the run has asked
	choices   choices
	Factors
	Checkpoints CheckpointOptions
	MemoryFlags

	Preset      string
	unscaledAt  stepsAt // before StepsScaler
	goesOn      bool    // by GoOn: the command has no setting resume
	ConfigFile  string
	StepsScaler float64
	TimeLimit   LimitFlag
	PassedOn    []string // flags for the training of a plan's block
	PrintConfig bool

	Viewer ViewerOptions
	// Observers of the caller, after those of this package.
	Observers    []func(o *Options, console *cli.Console) (Observer, error)
	Preview      PreviewOptions
	Progress     string
	Verbose      bool // details are printed, too
	MetricsEvery int  // steps between lines of metrics.jsonl
	Tensorboard  bool
	Report       bool

	// A device to train on, which stays open; nil: the run opens its own.
	Opened *pipeline.Device
	// When the time limit begins; zero: with the process, or with the run where Opened is given.
	Begun time.Time

	CommandLine
}

// stepsAt are EvalAt and Checkpoints.SaveAt.
type stepsAt struct{ eval, save cli.Steps }

// CommandLine is what a run knows of where its options come from, for the texts that it writes about them. Whoever runs
// it fills that in: the command or the Go API.
type CommandLine struct {
	// Chapters lists all settings for the report; nil: the report has none.
	Chapters func(*Options) []report.Chapter
	// Again words the request for this run with some settings changed: a command to type, or a call.
	Again   func(changes ...Change) string
	Resumed func(o *Options) string // the same in short, to resume the run
}

// Change is a setting that a text advises to give otherwise.
type Change struct {
	Setting string
	Value   string // "": none is needed
	LeftOut bool
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{Load: captured.Options{Model: scene.AnyModel, Cameras: captured.CamerasAuto},
		Origin: "auto", Block: plans.NoBlock,
		Config: recipe.Default(), Depth: DepthOptions{Kind: depth.KindAuto},
		Normal:    NormalOptions{Frame: depth.FrameAuto},
		TestEvery: captured.HeldOutEvery, StepsScaler: 1,
		Checkpoints: newCheckpointOptions(),
		Progress:    meter.Auto, MetricsEvery: 100, Report: true, Preview: PreviewOptions{Every: defaultPreviewEvery},
		CommandLine: CommandLine{Again: func(...Change) string { return "the same training" },
			Resumed: func(*Options) string { return "the same training, resumed" }}}
}

// startsAtPoints says whether training begins at the points of the capture.
func startsAtPoints(o *Options) bool {
	return o.Init.Kind == initial.InitAuto || o.Init.Kind == initial.InitPoints
}

package vksplat

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/train"
	"vksplat/internal/wording"
	"vksplat/pipeline/recipe"
)

// A setting has underscores in configuration files and dashes in the command.
func dashed(key string) string       { return strings.ReplaceAll(key, "_", "-") }
func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// ownSettings are those that are no part of the recipe in recipe.Config.
func ownSettings(o *train.Options) map[string]train.Setting {
	of := func(p any) train.Setting { return cli.VariableOf(p) }
	return map[string]train.Setting{
		"steps-scaler": of(&o.StepsScaler), "splats-factor": of(&o.SplatsFactor),
		"iterations-factor": of(&o.IterationsFactor), "few-photos": of(&o.FewPhotos),
		"init": &train.InitFlag{Of: &o.Init}, "init-points": of(&o.Init.Points), "init-grid": of(&o.Init.Grid),
		"origin": &o.Origin, "test-list": of(&o.TestList), "eval-at": &o.EvalAt,
		"checkpoint-every": &o.Checkpoints.Every, "keep-checkpoints": &o.Checkpoints.Keep,
		"save-at": &o.Checkpoints.SaveAt, "metrics-every": of(&o.MetricsEvery),
		"tensorboard": of(&o.Tensorboard), "report": of(&o.Report), "image-cache": of(&o.ImageCache),
		"depth-loss": of(&o.Depth.Points), "depths": of(&o.Depth.Maps), "depth-kind": of(&o.Depth.Kind),
		"depth-unit": of(&o.Depth.Unit), "depth-points": of(&o.Depth.Cloud),
		"depth-init": of(&o.Depth.Init), "normals": of(&o.Normal.Maps),
		"normal-frame": of(&o.Normal.Frame),
	}
}

// optionOf names the option or function of this package that sets a setting.
var optionOf = map[string]string{
	"images": "CaptureOptions.Images", "masks": "CaptureOptions.Masks", "downscale": "CaptureOptions.Downscale",
	"cameras": "CaptureOptions.Cameras", "format": "CaptureOptions.Format", "strict": "CaptureOptions.Strict",
	"device": "DeviceOptions.Select", "max-vram": "DeviceOptions.MaxVRAM", "max-ram": "DeviceOptions.MaxRAM",
	"eval": "TrainOptions.HoldOut", "test-every": "TrainOptions.HoldOut", "export": "TrainOptions.Export",
	"preset": "TrainOptions.Preset", "iterations": "TrainOptions.Iterations", "seed": "TrainOptions.Seed",
	"time-limit": "TrainOptions.TimeLimit", "progress": "TrainOptions.Progress",
	"overwrite": "TrainOptions.Replace", "resume": "Resume", "model-path": "the argument out",
}

// commandOnly are keys of the command's configuration files that nothing here sets.
var commandOnly = []string{"cameras", "full-photos", "grow-masks", "invert-masks", "model", "undo-applied-transform"}

// unknownHint is the hint for a key that is none of names, the keys of settings.
func unknownHint(key string, names []string) string {
	name := dashed(key)
	if option, is := optionOf[name]; is {
		return "use " + option + " instead"
	}
	if slices.Contains(commandOnly, name) {
		return "only the command vksplat train has it"
	}
	return cli.DidYouMean(key, names, "the keys are: "+strings.Join(names, ", "))
}

// settingOf returns the setting of a name in o, nil if there is none.
func settingOf(o *train.Options, name string) train.Setting {
	if s, own := ownSettings(o)[name]; own {
		return s
	}
	s := recipe.SettingNamed(underscored(name))
	if s == nil {
		return nil
	}
	return cli.VariableOf(s.Of(&o.Config))
}

// settingNames lists the keys of all settings.
func settingNames(o *train.Options) (keys []string) {
	for name := range ownSettings(o) {
		keys = append(keys, underscored(name))
	}
	for i := range recipe.Settings {
		keys = append(keys, recipe.Settings[i].Name)
	}
	slices.Sort(keys)
	return keys
}

// readPreset returns the settings of a preset by name.
func readPreset(name string) (map[string]string, error) {
	data, err := train.Presets.ReadFile(path.Join("presets", name+".toml"))
	if err != nil {
		return nil, fault.Usagef("give "+wording.Or(train.PresetNames()), "unknown preset %q", name)
	}
	var values map[string]any
	if err := toml.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("read preset %s: %w", name, err)
	}
	texts := map[string]string{}
	for key, v := range values {
		texts[dashed(key)] = fmt.Sprint(v)
	}
	return texts, nil
}

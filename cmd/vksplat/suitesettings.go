package main

import (
	"github.com/spf13/pflag"

	"vksplat/internal/run/suite"
)

// settingsForSuite lets a suite read train's settings.
func settingsForSuite() suite.Training {
	return suite.Training{
		Text:    readConfigText,
		Wrong:   func(file string, err error) error { return configError(file, err, nil) },
		Setting: suiteSetting,
		Flags:   suiteFlags,
	}
}

// suiteSetting takes in one key of a suite's file.
func suiteSetting(key string, data any, taken map[string]string) (name, text string, err error) {
	table := trainTable(newTrainOptions())
	v := &settingValue{key: key, option: find(table, canonical(key, aliasesOf(table))), table: table}
	if v.option != nil {
		name = v.option.name
		_, v.twice = taken[name]
	}
	err = v.take(data)
	return name, v.text, err
}

// suiteFlags adds settings to flags, in the order of the table, and checks them as train does.
func suiteFlags(flags []string, settings map[string]string) ([]string, error) {
	o := newTrainOptions()
	for _, g := range trainTable(o) {
		for _, opt := range g.options {
			if text, found := settings[opt.name]; found {
				flags = append(flags, "--"+opt.name+"="+text)
			}
		}
	}
	fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
	register(fs, trainTable(o))
	if err := fs.Parse(flags); err != nil {
		return flags, err
	}
	return flags, resolveSettings(o, fs)
}

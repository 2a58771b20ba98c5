package main

import (
	"vksplat/internal/cli"
	"vksplat/internal/run/train"
	"vksplat/pipeline/recipe"
)

// settingsGroup returns the group of the training settings that have its title, each followed by those of the command's
// own options that are listed under the setting's name.
func settingsGroup(o *train.Options, title string, own map[string][]option) optionGroup {
	g := optionGroup{title: title}
	for i := range recipe.Settings {
		if s := &recipe.Settings[i]; s.Group == title {
			g.options = append(append(g.options, settingOption(s, &o.Config)), own[s.Name]...)
		}
	}
	return g
}

// settingOption makes an option of a training setting, whose value is that in c.
func settingOption(s *recipe.Setting, c *recipe.Config) option {
	name, help := cli.Dashed(s.Name), cli.WithSettings(s.Help)
	o := plain(s.Of(c), name, help)
	if words, is := s.Of(c).(*string); is {
		o = chosen(words, name, help, s.Words...)
	}
	o.source, o.aliases = s.Source, s.Aliases
	o.check = func(name string) error { return s.Check(c, name, s.Asked()) }
	return o
}

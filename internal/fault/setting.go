package fault

// spell is how texts write the name of a setting.
var spell = func(name string) string { return name }

// SpellSettings says how texts write settings: the command has flags for them, other programs need not. It is called
// once, before anything else runs.
func SpellSettings(how func(name string) string) { spell = how }

// Setting names a setting in a text for users, as in Setting("init"): the command writes the flag, "--init".
func Setting(name string) string { return spell(name) }

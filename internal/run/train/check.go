package train

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline/recipe"
)

// Check refuses settings that are out of range, make no sense or contradict each other, before any work.
func (o *Options) Check() error {
	if c := &o.Config; c.MaxSplats > 0 && c.Splats > c.MaxSplats { // Validate, in checkRanges, names no remedy
		return fault.Usagef(fmt.Sprintf("give %s %d or more, or fewer %s", fault.Setting("max-splats"), c.Splats,
			fault.Setting("splats")), "%s: %d splats to end with, the ceiling is %d",
			fault.Named("splats", "max-splats"), c.Splats, c.MaxSplats)
	}
	if err := checkRanges(o); err != nil {
		return err
	}
	return firstOf(append(recipeRules(o), optionRules(o)...))
}

// checkRanges refuses settings that are out of range, all in one error.
func checkRanges(o *Options) error {
	var errs []error
	hint, defaults := "see: "+fault.Command("train --help-all"), recipe.Default()
	for i := range recipe.Settings {
		s := &recipe.Settings[i]
		name := fault.Setting(cli.Dashed(s.Name))
		if err := s.Check(&o.Config, name, s.Asked()); err != nil {
			errs = append(errs, err)
			hint = fmt.Sprintf("as in %s %v; ", name, s.Value(&defaults)) + hint
		}
	}
	for i := range factors {
		f := &factors[i]
		value := f.value(&o.Factors)
		number := value.Convert(reflect.TypeFor[float64]()).Float()
		errs = append(errs, f.in.Check(fault.Setting(cli.Dashed(f.name)), value.Interface(), number))
	}
	if err := cmp.Or(errors.Join(errs...), o.Config.Validate()); err != nil {
		return fault.Usagef(hint, "%w", err)
	}
	return nil
}

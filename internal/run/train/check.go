package train

import (
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
		return fault.Usagef("see: "+fault.Command("train --help-all"), "%w", err)
	}
	return firstOf(append(recipeRules(o), optionRules(o)...))
}

// checkRanges returns the errors of all settings that are out of range.
func checkRanges(o *Options) error {
	var errs []error
	for i := range recipe.Settings {
		s := &recipe.Settings[i]
		errs = append(errs, s.Check(&o.Config, fault.Setting(cli.Dashed(s.Name)), s.Asked()))
	}
	for i := range factors {
		f := &factors[i]
		value := f.value(&o.Factors)
		number := value.Convert(reflect.TypeFor[float64]()).Float()
		errs = append(errs, f.in.Check(fault.Setting(cli.Dashed(f.name)), value.Interface(), number))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return o.Config.Validate()
}

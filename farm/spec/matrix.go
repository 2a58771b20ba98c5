package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// variant is one combination of a task's matrix, together with one variant of each task that it takes a single input
// of: a render of a swept training is as often there as the training.
type variant struct {
	values map[string]any // of the own matrix, by key
	binds  []binding      // own and inherited, in the order of the label
	label  string         // part of the folder's name, "" where there is one variant
}

// binding says which combination of a matrix a variant belongs to.
type binding struct {
	spec int // place in the document of the [[task]] that has the matrix
	own  int
	text string // for the label, safe as part of a folder's name
	lost bool   // characters were replaced for that
}

// maxPairs bounds the work of joining the variants of two inputs.
const maxPairs = 10_000_000

// product is how many combinations a matrix has, most+1 where they are more than most.
func product(axes []Axis, most int) int {
	n := 1
	for _, a := range axes {
		if len(a.Values) > most/n {
			return most + 1
		}
		n *= len(a.Values)
	}
	return n
}

// choose returns the values of a combination, the last axis changing fastest.
func choose(axes []Axis, own int) map[string]any {
	values := make(map[string]any, len(axes))
	for _, a := range slices.Backward(axes) {
		values[a.Key] = a.Values[own%len(a.Values)]
		own /= len(a.Values)
	}
	return values
}

// field returns the value of a key in a variant, nil where it has none.
func (e *expanded) field(v *variant, key string) any {
	if value, own := v.values[key]; own {
		return value
	}
	return e.fields[key]
}

// expand finds the variants of a written task and how many tasks each has.
func (p *planner) expand(e *expanded) error {
	at := path{"task", e.at}
	n := product(e.Matrix, MaxTasks)
	if n > MaxTasks-p.tasks {
		return p.tooMany(at.add("matrix"))
	}
	for own := range n {
		list, err := p.follow(e, own)
		if err != nil {
			return err
		}
		for _, v := range list {
			per := 1
			if e.Kind.count != nil {
				if per, err = e.Kind.count(p, e, &v); err != nil {
					return err
				}
			}
			if len(e.variants) > 0 && per != e.per {
				return p.wrong(at.add("matrix"), "give tasks of their own",
					"the combinations of the matrix have %d and %d tasks", e.per, per)
			}
			if e.per = per; per > MaxTasks-p.tasks {
				return p.tooMany(at)
			}
			p.tasks += per
			e.add(v)
		}
	}
	e.name()
	return nil
}

// add adds a variant.
func (e *expanded) add(v variant) {
	for _, b := range v.binds {
		key := [2]int{b.spec, b.own}
		e.index[key] = append(e.index[key], len(e.variants))
		e.bound[b.spec]++
	}
	e.variants = append(e.variants, v)
}

// follow joins a combination of the own matrix with the variants of the tasks that it takes single inputs of.
func (p *planner) follow(e *expanded, own int) ([]variant, error) {
	values := choose(e.Matrix, own)
	list := []variant{{values: values}}
	for _, f := range e.Kind.fields {
		text, _ := e.field(&list[0], f.Name).(string)
		id, isRef := strings.CutPrefix(text, "@")
		if f.Type != typeInput || !isRef {
			continue
		}
		from, at := p.byID[id], path{"task", e.at, f.Name}
		var all []variant
		for _, a := range list {
			fits, err := p.matching(at, from, a.binds)
			if err != nil {
				return nil, err
			}
			if len(all)+len(fits) > MaxTasks-p.tasks {
				return nil, p.tooMany(at)
			}
			for _, k := range fits {
				binds, _ := join(a.binds, from.variants[k].binds)
				all = append(all, variant{values: values, binds: binds})
			}
		}
		if list = all; len(list) == 0 {
			return nil, p.wrong(path{"task", e.at}, "take inputs that go back to the same tasks",
				"no variant of one input belongs to one of the others")
		}
	}
	if len(e.Matrix) > 0 {
		text, lost := e.label(values)
		for k := range list {
			list[k].binds = append(list[k].binds, binding{e.at, own, text, lost})
		}
	}
	return list, nil
}

// matching returns the variants of a task that contradict none of the bindings. If all variants are bound to a matrix,
// it compares only those with the same combination of it.
func (p *planner) matching(at path, from *expanded, binds []binding) (fits []int, err error) {
	few, all := []int(nil), true
	for _, b := range binds {
		list := from.index[[2]int{b.spec, b.own}]
		if from.bound[b.spec] == len(from.variants) && (all || len(list) < len(few)) {
			few, all = list, false
		}
	}
	n := len(few)
	if all {
		n = len(from.variants)
	}
	if p.pairs += n; p.pairs > maxPairs {
		return nil, p.wrong(at, "split it into several jobs", "there are too many combinations of its inputs")
	}
	for k := range n {
		if !all {
			k = few[k]
		}
		if _, fit := join(binds, from.variants[k].binds); fit {
			fits = append(fits, k)
		}
	}
	return fits, nil
}

// join puts bindings together, if none contradicts another.
func join(a, b []binding) ([]binding, bool) {
	joined := slices.Clone(a)
	for _, x := range b {
		at := slices.IndexFunc(a, func(y binding) bool { return x.spec == y.spec })
		switch {
		case at < 0:
			joined = append(joined, x)
		case a[at].own != x.own:
			return nil, false
		}
	}
	return joined, true
}

// label words the combination of an own matrix, and says whether something of it was lost on the way.
func (e *expanded) label(values map[string]any) (text string, lost bool) {
	words := make([]string, len(e.Matrix))
	for i, a := range e.Matrix {
		value := strings.TrimPrefix(joined(values[a.Key], "x"), "@") // the task's name is enough, see name
		safe := pathSafe(value)
		words[i] = pathSafe(a.Key) + "=" + safe
		lost = lost || safe != value
	}
	return strings.Join(words, ","), lost
}

// joined words a value, the elements of a list with something between them.
func joined(v any, between string) string {
	switch x := v.(type) {
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case []any:
		words := make([]string, len(x))
		for i := range x {
			words[i] = joined(x[i], between)
		}
		return strings.Join(words, between)
	}
	return fmt.Sprint(v)
}

// maxLabel is how many bytes a label has, so that a folder's name has room for it.
const maxLabel = 120

// name gives the variants labels that no two share and that any system takes as names of folders.
func (e *expanded) name() {
	if len(e.variants) == 1 && len(e.variants[0].binds) == 0 {
		return
	}
	taken := map[string]bool{}
	for k := range e.variants {
		v := &e.variants[k]
		words, changed := []string{}, false
		for _, b := range v.binds {
			words, changed = append(words, b.text), changed || b.lost
		}
		text := strings.Join(words, ",")
		for len(text) > maxLabel {
			_, n := utf8.DecodeLastRuneInString(text)
			text, changed = text[:len(text)-n], true
		}
		if changed || taken[fold(text)] {
			text = fmt.Sprintf("%s~%d", text, k+1)
		}
		taken[fold(text)] = true
		v.label = text
	}
}

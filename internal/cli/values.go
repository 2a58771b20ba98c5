package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
)

// ThreeNumbers parses "a,b,c". Only finite numbers pass.
func ThreeNumbers(s string) (v [3]float64, err error) {
	list, err := SomeNumbers(s, len(v))
	copy(v[:], list)
	return v, err
}

// SomeNumbers parses n finite numbers between commas.
func SomeNumbers(s string, n int) ([]float64, error) {
	parts := strings.Split(s, ",")
	if len(parts) != n {
		return nil, fmt.Errorf("%d numbers are needed", n)
	}
	v := make([]float64, n)
	var err error
	for i, p := range parts {
		if v[i], err = strconv.ParseFloat(strings.TrimSpace(p), 64); err != nil {
			return nil, err
		}
		if math.IsNaN(v[i]) || math.IsInf(v[i], 0) {
			return nil, errors.New("not a finite number")
		}
	}
	return v, nil
}

// Part parses a number, or per cent of n: at least 1. It is 0 for what is neither.
func Part(words string, n int) int {
	if share, ok := strings.CutSuffix(words, "%"); ok {
		if x, err := strconv.ParseFloat(share, 64); err == nil && x > 0 && x <= 100 {
			return max(1, int(x/100*float64(n)))
		}
		return 0
	}
	if x, err := strconv.Atoi(words); err == nil && x > 0 {
		return x
	}
	return 0
}

// Value is a plain variable as a flag or a setting.
type Value[T int | uint64 | float64 | bool | string] struct{ To *T }

// Type is the name of the value in help.
func (v Value[T]) Type() string {
	switch any(v.To).(type) {
	case *float64:
		return "X"
	case *bool:
		return "bool"
	case *string:
		return "TEXT"
	}
	return "N"
}

func (v Value[T]) String() string {
	if x, is := any(*v.To).(float64); is {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(*v.To)
}

func (v Value[T]) Get() any { return *v.To }

// Set parses a value. After an error the variable is as before.
func (v Value[T]) Set(s string) error {
	var x any = s
	var err error
	var want string
	switch any(v.To).(type) {
	case *int:
		x, err = strconv.Atoi(s)
		want = "whole number"
	case *uint64:
		x, err = strconv.ParseUint(s, 10, 64)
		want = "whole number from 0 up"
	case *float64:
		x, err = strconv.ParseFloat(s, 64)
		want = "number"
	case *bool:
		x, err = strconv.ParseBool(s)
		want = "truth value: true or false"
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fault.Usagef("", "%q is out of range", s)
	case err != nil:
		return fault.Usagef("", "%q is not a %s", s, want)
	}
	*v.To = x.(T)
	return nil
}

// Variable is a flag or a setting as programs see it.
type Variable interface {
	Type() string
	String() string
	Set(text string) error
}

// VariableOf makes one of a pointer to a plain variable or a colour.
func VariableOf(p any) Variable {
	switch p := p.(type) {
	case *int:
		return Value[int]{p}
	case *uint64:
		return Value[uint64]{p}
	case *float64:
		return Value[float64]{p}
	case *bool:
		return Value[bool]{p}
	case *[3]float32:
		return (*colour)(p)
	}
	return Value[string]{p.(*string)}
}

// NoEffect warns of a setting that was given and does nothing.
func NoEffect(setting, without string) string {
	return fmt.Sprintf("%s has no effect without %s", fault.Setting(setting), without)
}

// Steps are numbers of steps, ascending, each once.
type Steps []int

func (v *Steps) Type() string { return "N,N" }

func (v *Steps) String() string {
	words := make([]string, len(*v))
	for i, n := range *v {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// Set parses whole numbers above 0 with commas between them.
func (v *Steps) Set(s string) error {
	var list Steps
	for _, word := range strings.Split(s, ",") {
		if strings.TrimSpace(word) == "" && s == "" {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return fault.Usagef("give numbers of steps with commas between them, as in 7000,30000",
				"%q is not a list of steps", s)
		}
		list = append(list, n)
	}
	slices.Sort(list)
	*v = slices.Compact(list)
	return nil
}

// Scale multiplies the steps by f, and keeps them at 1 or above.
func (v *Steps) Scale(f float64) {
	for i, n := range *v {
		(*v)[i] = max(1, int(float64(n)*f+0.5))
	}
	*v = slices.Compact(*v)
}

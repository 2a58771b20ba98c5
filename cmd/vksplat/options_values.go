package main

import (
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// The values of plain options. They differ from pflag's in that help shows every
// default, zero included, and that their names read well in messages.

type intValue int

func (v *intValue) Type() string   { return "N" }
func (v *intValue) String() string { return strconv.Itoa(int(*v)) }

// Set parses a whole number.
func (v *intValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return err
	}
	*v = intValue(n)
	return nil
}

type uintValue uint64

func (v *uintValue) Type() string   { return "N" }
func (v *uintValue) String() string { return strconv.FormatUint(uint64(*v), 10) }

// Set parses a whole number from 0 up.
func (v *uintValue) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return err
	}
	*v = uintValue(n)
	return nil
}

type floatValue float64

func (v *floatValue) Type() string   { return "X" }
func (v *floatValue) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

// Set parses a number.
func (v *floatValue) Set(s string) error {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return err
	}
	*v = floatValue(x)
	return nil
}

type boolValue bool

func (v *boolValue) Type() string     { return "bool" }
func (v *boolValue) String() string   { return strconv.FormatBool(bool(*v)) }
func (v *boolValue) IsBoolFlag() bool { return true }

// Set parses true or false.
func (v *boolValue) Set(s string) error {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return err
	}
	*v = boolValue(b)
	return nil
}

type textValue string

func (v *textValue) Type() string   { return "TEXT" }
func (v *textValue) String() string { return string(*v) }

// Set takes any text.
func (v *textValue) Set(s string) error {
	*v = textValue(s)
	return nil
}

// onceValue is a text that is given once: of two files it would be a guess which counts.
type onceValue string

func (v *onceValue) Type() string   { return "TEXT" }
func (v *onceValue) String() string { return string(*v) }

// Set takes the first text.
func (v *onceValue) Set(s string) error {
	if *v != "" {
		return fault.Usagef("write one file of both", "it is given twice, as %s and %s", *v, s)
	}
	*v = onceValue(s)
	return nil
}

// choice is one of a few words.
type choice struct {
	p     *string
	words []string
}

// chosen makes an option of which p, which holds the default, is one of words.
func chosen(p *string, name, help string, words ...string) option {
	return other(&choice{p: p, words: words}, name, help).oneOf(words...)
}

func (c *choice) Type() string   { return strings.Join(c.words, "|") }
func (c *choice) String() string { return *c.p }

// Set takes one of the words.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fault.Usagef(cli.DidYouMean(s, c.words, "give "+wording.Or(c.words)),
			"%q is not one of %s", s, strings.Join(c.words, ", "))
	}
	*c.p = s
	return nil
}

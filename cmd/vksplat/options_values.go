package main

import (
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

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

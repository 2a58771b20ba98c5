package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"vksplat/internal/fault"
)

// TestFill wants long lines broken at words, commands whole, and short lines as they are.
func TestFill(t *testing.T) {
	const command = "vksplat train my_scene -m out --eval"
	for _, tt := range []struct {
		text, want string
		width      int
	}{
		{"vksplat: note: one two three\n", "vksplat: note:\n  one two three\n", 16},
		{"a  table   of\nlines\n", "a  table   of\nlines\n", 20},
		{"no end", "no end", 80},
		{"äöü äöü", "äöü äöü", 7},
		{"unbreakable", "unbreakable", 4},
		{"continue with: " + command + "\n", "continue with:\n  " + command + "\n", 20},
		{"see: " + command + "; or not\n", "see:\n  " + command + ";\n  or not\n", 20},
		{"with vksplat train alone", "with vksplat\n  train\n  alone", 12},
	} {
		if got := fill(tt.text, tt.width); got != tt.want {
			t.Errorf("%q in %d columns is\n%s\nwant\n%s", tt.text, tt.width, got, tt.want)
		}
	}
}

// TestInterruptedIsNoError wants a run that the user stopped not to end with the word error.
func TestInterruptedIsNoError(t *testing.T) {
	var errs bytes.Buffer
	c := New(nil, nil, &errs)
	c.Fail(fault.WithHint(fmt.Errorf("%w at step 3", fault.ErrInterrupted), "continue"))
	if got := errs.String(); got != "vksplat: interrupted at step 3\nhint: continue\n" {
		t.Error(got)
	}
	errs.Reset()
	c.Fail(errors.Join(fault.ErrInterrupted, errors.New("no room")))
	if got := errs.String(); got != "vksplat: error: interrupted\nvksplat: error: no room\n" {
		t.Error(got)
	}
}

// TestDetail wants what matters less in the report, and on the terminal only if that is asked for.
func TestDetail(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var errs bytes.Buffer
		c := New(nil, nil, &errs)
		c.Verbose = verbose
		c.Tell(Notice{KindDetail, "two points"})
		if list := c.Notices(); len(list) != 1 || list[0] != (Notice{KindNote, "two points"}) {
			t.Error(list)
		}
		if got := errs.String(); (got == "vksplat: note: two points\n") != verbose || got != "" != verbose {
			t.Errorf("verbose %v: %q", verbose, got)
		}
	}
}

// TestFillTable wants the last cell of long rows broken in its column, and rows that fit left alone.
func TestFillTable(t *testing.T) {
	text := "RAM      1 MiB  budget\n" +
		"  photos  2 MiB  decoded photos; others are decoded again, or read\n" +
		"warning: many words that are no table and are broken as a text is\n" +
		"    below it a remedy that is as long as two lines are\n"
	want := "RAM      1 MiB  budget\n" +
		"  photos  2 MiB  decoded photos; others are\n" +
		"                 decoded again, or read\n" +
		"warning: many words that are no table and\n  are broken as a text is\n" +
		"    below it a remedy that is as long as two\n    lines are\n"
	if got := fillTable(text, 44); got != want {
		t.Errorf("%s", got)
	}
	if got := fillTable(text, math.MaxInt); got != text {
		t.Errorf("without a terminal: %s", got)
	}
	got := fillTable("a very long name of a cell              1 MiB  some more text\n", 50)
	if strings.Contains(got, "\n      ") {
		t.Errorf("no room for the last cell: %s", got)
	}
}

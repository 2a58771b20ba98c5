package main

import (
	"errors"
	"regexp"

	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/scene/photo"
)

var longFlag = regexp.MustCompile(`--[\w-]+`)

// ofCapture adds to the error of a command that has no flags about how a capture is read: a hint that names some sends
// to one that has.
func ofCapture(err error) error {
	var unread *captured.UnreadCapture
	if !errors.As(err, &unread) {
		return err
	}
	hint := "vksplat inspect " + photo.ShellWord(unread.Path) + " says more about it, and what can be done"
	if fault.Hint(err) == hint {
		return err
	}
	table := trainTable(newTrainOptions())
	for _, word := range longFlag.FindAllString(fault.Hint(unread.Err), -1) {
		if find(table, word[2:]) != nil {
			return fault.WithHint(err, hint)
		}
	}
	return err
}

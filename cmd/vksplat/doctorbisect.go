package main

import (
	"errors"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/pipeline/check"
)

// bisected is the file that doctor --bisect writes.
const bisected = "doctor-bisect.json"

// bisectDevice looks for a kernel that fails, and writes the smallest case of it.
func bisectDevice(console *cli.Console, o *doctorOptions) error {
	if err := output.RefuseExisting("bisect", o.Overwrite, bisected); err != nil {
		return err
	}
	r, err := check.Bisect(console.Stdout, o.deviceID())
	if r != nil {
		r.Program = cli.VersionText()
		err = errors.Join(err, output.WriteJSON(bisected, r))
		console.Printf("to send in: %s, which %s replays\n", bisected, fault.Command("doctor --bisect "+bisected))
	} else if err == nil {
		console.Printf("no kernel fails\n")
	}
	return hintKernels(err)
}

// replay runs again what bisectDevice wrote, here or elsewhere.
func replay(console *cli.Console, o *doctorOptions, path string) error {
	r := &check.Repro{}
	if err := strictjson.ReadFile(path, r); err != nil {
		return &fault.Error{Op: "replay", Path: path, Err: err, Hint: "give a file that doctor --bisect wrote"}
	}
	console.Printf("%s failed on %s (%s) under %s:\n  %s\n", r.Case, r.Device, r.Driver, r.Program, r.Error)
	if err := check.Replay(o.deviceID(), r); err != nil {
		return hintKernels(err)
	}
	console.Printf("it passes here\n")
	return nil
}

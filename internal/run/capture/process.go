package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
)

// patience is how long a program may take to end once it was asked to.
const patience = 5 * time.Second

// lastLines is how many of a program's last lines an error may show.
const lastLines = 3

// traceLine is a line of what COLMAP prints of its own code before it dies, which the log keeps.
var traceLine = regexp.MustCompile(`^(\*\*\* |PC: @|@ +0x|\S+\(.*\) ?\[0x)`)

// colours are the escape sequences of newer versions of COLMAP.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// diskFull matches messages of programs about a full disk, SQLite's among them.
var diskFull = regexp.MustCompile(`(?i)disk is full|no space left on device|disk quota exceeded`)

// process is a program to run.
type process struct {
	stage   string // whose log has what it prints
	program string
	args    []string
	dir     string            // in which it runs, "" for this process's
	stdout  io.Writer         // nil: the log
	onLine  func(line string) // of what goes to the log, or nil
}

// run runs a program until it ends. When ctx ends, the program is asked to end, too.
func (b *base) run(p process) error {
	log, err := b.openLog(p.stage)
	if err != nil {
		return err
	}
	defer log.Close() // what is lost is part of a log
	name := filepath.Base(p.program)
	words := append([]string{name}, p.args...)
	fmt.Fprintf(log, "$ %s\n", strings.Join(cli.QuotedAll(words), " "))
	var last []string
	lines := &child.Lines{OnLine: func(line []byte) {
		text := wording.WithoutAddresses(strings.TrimSpace(colours.ReplaceAllString(string(line), "")))
		if text == "" {
			return
		}
		if !traceLine.MatchString(text) {
			if last = append(last, text); len(last) > lastLines {
				last = last[1:]
			}
		}
		if p.onLine != nil {
			p.onLine(text)
		}
	}}
	both := io.MultiWriter(log, lines)
	o := child.Options{Stdout: p.stdout, Stderr: both, Apart: true, Grace: patience, Env: colmapEnv, Dir: p.dir}
	if o.Stdout == nil {
		o.Stdout = both
	}
	err = child.Run(b.ctx, p.program, p.args, o)
	if _, more := lines.Write([]byte("\n")); more != nil {
		return more
	}
	if b.ctx.Err() != nil {
		return fault.ErrInterrupted
	}
	if err == nil {
		return nil
	}
	if len(p.args) > 0 && name == colmapName {
		name += " " + p.args[0]
	}
	hint, kind := "see "+log.Name()+"; the same command continues with this stage", fault.ErrFailure
	switch {
	case diskFull.MatchString(strings.Join(last, "\n")):
		hint, kind = "make room on the disk; the same command continues with this stage", fault.ErrMachine
	case strings.Contains(err.Error(), "killed"):
		hint = "the system killed it, probably for lack of memory: try " + fault.Setting("max-size") + " 1600"
	}
	return &fault.Error{Op: "run " + name, Err: fmt.Errorf("%w: %s", err, strings.Join(last, "; ")), Hint: hint,
		Kind: kind}
}

// openLog opens the log of a stage, which grows.
func (b *base) openLog(stage string) (*os.File, error) {
	dir := b.o.in(logsFolder)
	err := os.MkdirAll(dir, 0o777)
	if err != nil {
		return nil, output.FolderError(dir, err)
	}
	log, err := os.OpenFile(filepath.Join(dir, stage+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, output.FolderError(dir, err)
	}
	return log, nil
}

func (b *base) interrupted(err error) error {
	if b.ctx.Err() == nil && !errors.Is(err, fault.ErrInterrupted) && !errors.Is(err, context.Canceled) {
		return err
	}
	again := "the same command continues with the first stage that is not done"
	if b.o.Again != "" {
		again = "continue with: " + b.o.Again
	}
	return &fault.Error{Op: "stopped", Err: fault.ErrInterrupted, Kind: fault.ErrInterrupted, Hint: again}
}

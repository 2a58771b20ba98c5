package train

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"vksplat/internal/cli"
	"vksplat/internal/run/output"
)

// metricsFile is metrics.jsonl.
type metricsFile struct {
	unsure
	path  string
	at    func(path string) string
	f     *os.File
	end   int64 // of the lines that are the run's past
	begun bool
}

func newMetricsFile(o *Options, console *cli.Console) (Observer, error) {
	return &metricsFile{unsure: unsure{console: console}, path: filepath.Join(o.Out, output.MetricsFile)}, nil
}

// Observe writes lines. With the run's first step or file it cuts off what is beyond the run's past: that did not
// happen.
func (m *metricsFile) Observe(e Event) (err error) {
	switch e := e.(type) {
	case *Started:
		m.end, m.at = e.Past.end, e.At
		if m.f, err = os.OpenFile(m.at(m.path), os.O_RDWR|os.O_CREATE, 0o666); err != nil {
			return output.FolderError(e.Options.Out, err)
		}
	case *Begun:
		m.check(m.begin())
	case *Replacing:
		m.check(moved(&m.f, m.at(m.path), e))
	case *Logged:
		m.check(cli.WriteLine(m.f, e.StepLine))
	case *Measured:
		m.check(cli.WriteLine(m.f, e.EvalLine))
	}
	return nil
}

func (m *metricsFile) begin() error {
	m.begun = true
	if err := m.f.Truncate(m.end); err != nil {
		return err
	}
	_, err := m.f.Seek(m.end, io.SeekStart)
	return err
}

// Close closes the file. That of a run that never began leaves no empty one.
func (m *metricsFile) Close() error {
	if m.f == nil {
		return nil
	}
	info, err := m.f.Stat()
	err = errors.Join(err, m.f.Close())
	if err == nil && !m.begun && info.Size() == 0 {
		err = os.Remove(m.f.Name())
	}
	return err
}

// moved closes a file before it is moved, and opens it where it is now to write on at its end.
func moved(f **os.File, path string, e *Replacing) (err error) {
	if !e.Done {
		return (*f).Close()
	}
	*f, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	return err
}

// unsure is an observer whose file may fail: that is no reason to lose a run. It warns once.
type unsure struct {
	console *cli.Console
	warned  bool
}

func (u *unsure) check(err error) {
	if err != nil && !u.warned {
		u.warned = true
		u.console.Warn(fmt.Sprintf("%s or %s cannot be written, training continues without: %v", output.MetricsFile,
			output.TensorboardFolder, err))
	}
}

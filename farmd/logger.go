package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/server/common/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"vksplat/internal/fault"
)

// quiet is for clients within this process, whose server says what is wrong.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// linesPerSecond bounds how often Temporal may write one message to the log, whatever clients do.
const linesPerSecond = 5

// newLogger makes the logger of Temporal's server. It is quiet, but for what ends the process, until speak is called
// and after hush is: services that wait for each other complain.
func newLogger(level string, r *room) (logger log.Logger, speak, hush func(), err error) {
	wanted, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, nil, nil, fault.Usagef("the levels are error, warn, info and debug", "unknown level %q", level)
	}
	at := zap.NewAtomicLevelAt(zapcore.FatalLevel)
	form := zap.NewProductionEncoderConfig()
	form.EncodeTime = zapcore.ISO8601TimeEncoder
	var core zapcore.Core = watched{zapcore.NewCore(zapcore.NewConsoleEncoder(form), zapcore.Lock(os.Stderr), at), r}
	core = zapcore.NewSamplerWithOptions(core, time.Second, linesPerSecond, 0)
	return log.NewZapLogger(zap.New(core)), func() { at.SetLevel(wanted) },
		func() { at.SetLevel(zapcore.FatalLevel) }, nil
}

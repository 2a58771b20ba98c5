package server

import (
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"vksplat/scene"
)

const (
	natsLogFile = "nats.log"
	maxNatsLog  = 4 << 20     // then a new one is begun; the one before is kept
	saidAgain   = time.Minute // between two words about errors in it
)

// natsLog writes what the NATS server says, in its words, to a file of the farm's folder. Of its errors people hear in ours.
type natsLog struct {
	path  string
	own   *slog.Logger
	stuck chan string // receives why a stream or consumer takes no more writes, until JetStream starts again

	lock sync.Mutex
	file *os.File
	text *log.Logger
	size int
	said time.Time // an error
}

func openNatsLog(dir string, own *slog.Logger) (*natsLog, error) {
	l := &natsLog{path: filepath.Join(dir, natsLogFile), own: own, stuck: make(chan string, 1)}
	if info, err := os.Stat(l.path); err == nil {
		l.size = int(min(info.Size(), maxNatsLog))
	}
	if err := l.open(); err != nil {
		return nil, failure("start farm", l.path, err, "", scene.ErrTryAgain)
	}
	return l, nil
}

// open goes on with the file, or begins another where it is full.
func (l *natsLog) open() (err error) {
	if l.size >= maxNatsLog {
		_ = l.file.Close() // nil the first time
		if err := os.Rename(l.path, l.path+".1"); err != nil {
			return err
		}
		l.size = 0
	}
	l.file, err = os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	l.text = log.New(l.file, "", log.LstdFlags|log.LUTC)
	return err
}

// close ends it. What comes later is lost.
func (l *natsLog) close() {
	l.lock.Lock()
	defer l.lock.Unlock()
	_ = l.file.Close()
}

func (l *natsLog) write(level, format string, v []any) string {
	l.lock.Lock()
	defer l.lock.Unlock()
	text := fmt.Sprintf(format, v...)
	l.text.Printf("%s %s", level, text)
	if l.size += len(level) + len(text) + 24; l.size >= maxNatsLog {
		if err := l.open(); err != nil {
			l.own.Error("the log of the NATS server ends", "file", l.path, "cause", err)
			l.size = 0
		}
	}
	return text
}

// complain tells people of an error, but not of each.
func (l *natsLog) complain(text string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if now := time.Now(); l.said.IsZero() || now.Sub(l.said) >= saidAgain {
		l.said = now
		l.own.Error("the NATS server reports an error; its log has this and others", "error", text, "log", l.path)
	}
}

// Noticef and the others implement natsserver.Logger.
func (l *natsLog) Noticef(format string, v ...any) { l.write("INFO", format, v) }

// Warnf is what the server copes with itself, as with files of a server that was killed.
func (l *natsLog) Warnf(format string, v ...any) { l.write("WARN", format, v) }

// Errorf takes an error. Clients that are refused are none of the server's. Of a disk that fails people hear by watchDisk.
func (l *natsLog) Errorf(format string, v ...any) {
	switch text := l.write("ERROR", format, v); {
	case strings.Contains(text, " - cid:"):
	case strings.Contains(strings.ToLower(text), "critical write error"), strings.Contains(text, "failed to store a msg"):
		select {
		case l.stuck <- strings.TrimSpace(text[strings.LastIndex(text, ":")+1:]):
		default: // one is enough
		}
	default:
		l.complain(text)
	}
}

// Fatalf takes what ends the server.
func (l *natsLog) Fatalf(format string, v ...any) { l.complain(l.write("FATAL", format, v)) }

// Debugf is never asked for.
func (l *natsLog) Debugf(string, ...any) {}

// Tracef is never asked for.
func (l *natsLog) Tracef(string, ...any) {}

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vksplat/farm/queue"
	"vksplat/scene"
)

const (
	lookAtDisk     = time.Second      // between looks at a disk that could not be written
	lookAtDiskMost = 30 * time.Second // likewise, where it takes a test but not the streams
	diskSettles    = time.Second      // in which streams that cannot be written either say so
	leastRoom      = 4 << 20          // bytes that must go onto the disk before it is tried again
	tryFile        = ".try"
)

// disk is whether the server's can be written.
type disk struct {
	lock  sync.Mutex
	cause string    // why not, "" where it can
	again time.Time // since when it can again; zero where it always could
}

// trouble is what clients are told.
func (d *disk) trouble() queue.Trouble {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.cause != "" || d.again.IsZero() {
		return queue.Trouble{Cause: d.cause}
	}
	return queue.Trouble{Well: queue.Duration(max(time.Since(d.again), 1))}
}

// set notes why it cannot be written, "" for that it can again.
func (d *disk) set(cause string) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.cause = cause; cause == "" {
		d.again = time.Now()
	}
}

// watchDisk waits until a stream could not be written. JetStream takes nothing more for such a stream, not even when there is room, until it starts again: so the NATS
// server is started again. It goes on being read meanwhile. What was acknowledged had been synced before.
func (s *Server) watchDisk(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case cause := <-s.natsLog.stuck:
			s.outlastDisk(ctx, cause)
		}
	}
}

// outlastDisk waits until the disk can be written again, and starts the NATS server on it.
func (s *Server) outlastDisk(ctx context.Context, cause string) {
	s.disk.set(cause)
	began := time.Now()
	s.log.Error("the server cannot write to its disk: nothing can be submitted or changed, and no task begins, until it can; running tasks go on", "folder", s.options.Dir, "cause", cause)
	for every := lookAtDisk; pausedFor(ctx, every); {
		if s.tryDisk() != nil {
			continue
		}
		select {
		case <-s.natsLog.stuck: // of before
		default:
		}
		err := s.restart()
		if !pausedFor(ctx, diskSettles) {
			return
		}
		select {
		case <-s.natsLog.stuck:
			err = errors.New("streams cannot be written")
		default:
		}
		if err == nil {
			s.disk.set("")
			s.log.Warn("the server can write to its disk again: the farm goes on", "folder", s.options.Dir, "after", time.Since(began).Round(time.Second))
			return
		}
		s.natsLog.Warnf("the disk is tried again: %v", err)
		every = min(2*every, lookAtDiskMost)
	}
}

// pausedFor waits, and says whether ctx lives.
func pausedFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// tryDisk finds out whether leastRoom bytes can be written. Where there are fewer, it does not take these.
func (s *Server) tryDisk() error {
	if free, known := scene.FreeSpace(s.options.Dir); known && free < leastRoom {
		return fmt.Errorf("%d bytes are free", free)
	}
	path := filepath.Join(s.options.Dir, tryFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat([]byte{1}, leastRoom)) // zeros may take no room
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(path))
}

// restart has the streams read anew from the disk, by another NATS server at the same address: clients come back, as after a restart of this process. JetStream alone
// cannot be started again in a server: the one before goes on answering beside it, so that every order would be carried out twice, the second time after its answer.
func (s *Server) restart() error {
	if tcp, ok := s.nats.Load().Addr().(*net.TCPAddr); ok {
		s.config.Port = tcp.Port
	}
	s.stopNATS()
	_, err := s.startNATS()
	return err
}

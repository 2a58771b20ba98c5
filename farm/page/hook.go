package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// Hook tells an address when a job has ended. The address comes of the server's configuration alone, never of a job.
type Hook struct {
	address string
	client  http.Client
	pause   time.Duration // before the second try; it doubles
}

// How long the address is tried: 10 s each, seven tries, two minutes with the pauses.
const (
	hookTimeout = 10 * time.Second
	hookTries   = 7
	hookPause   = time.Second
	mostAnswer  = 64 << 10 // bytes that are read of an answer
)

// ended is the message.
type ended struct {
	Job       string              `json:"job"`
	Owner     string              `json:"owner"`
	State     queue.JobState      `json:"state"`
	Counts    map[queue.State]int `json:"counts"`
	Tasks     int                 `json:"tasks"`
	Submitted time.Time           `json:"submitted,omitzero"`
	Ended     time.Time           `json:"ended"`
}

// NewHook checks the address.
func NewHook(address string) (*Hook, error) {
	u, err := url.Parse(address)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil) {
		err = errors.New("it is no address of the form https://host/path")
	}
	if err != nil {
		return nil, &scene.Error{Op: "read webhook", Err: withoutAddress(err), Hint: "as in https://chat.example.org/hooks/123", Kind: scene.ErrUsage}
	}
	h := &Hook{address: address, pause: hookPause}
	h.client = http.Client{Timeout: hookTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return h, nil
}

// Ended sends the message, and tries again for two minutes, unless ctx ends. It fits server.Options.Ended.
func (h *Hook) Ended(ctx context.Context, job queue.JobStatus) error {
	body, err := json.Marshal(ended{job.Name, job.Owner, job.State, job.Counts, job.Tasks, job.Submitted, job.Changed})
	if err != nil {
		return err
	}
	pause := h.pause
	for try := 1; ; try++ {
		again, err := h.post(ctx, body)
		if err == nil || !again || try == hookTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// post sends once, and says whether another try may help. Redirections are not followed: they could lead to any host.
func (h *Hook) post(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.address, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "vksplat")
	answer, err := h.client.Do(r)
	if err != nil {
		return true, withoutAddress(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, mostAnswer)) // so that the connection can be used again
	switch code := answer.StatusCode; {
	case code < 300:
		return false, nil
	case code < 400:
		return false, fmt.Errorf("the address answers with a redirection (%s): give the one that it leads to", answer.Status)
	default:
		return code >= 500 || code == http.StatusTooManyRequests, fmt.Errorf("the address answers %s", answer.Status)
	}
}

// withoutAddress strips the address, which may hold a secret, of an error.
func withoutAddress(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Pictures between steps, larger than those that were planned for, change no byte, and errors of those who ask disturb no training.
func TestInterludes(t *testing.T) {
	d := testDevice(t)
	want, _ := trainHash(t, d, nil)
	views, init, scale, cfg := promiseScene(t)
	cams, photos := splitViews(views)
	between := NewInterludes()
	tr, err := NewTrainer(d, cams, photos, init, scale, cfg, TrainerOptions{Interludes: between})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	large := cams[0]
	large.Width, large.Height = 2*large.Width+1, 2*large.Height+3
	pictures, asked := 0, errors.New("asked for")
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			err := between.Do(context.Background(), func() error {
				picture, err := tr.Render(large)
				if err != nil || len(picture) != 3*large.Width*large.Height {
					t.Errorf("%d numbers, %v", len(picture), err)
				}
				pictures++
				tr.Idle(time.Hour)
				return asked
			})
			if errors.Is(err, ErrNotTraining) {
				return
			}
			if err != asked {
				t.Errorf("got %v", err)
				return
			}
		}
	}()
	if err := tr.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	s, err := tr.Splats()
	if err != nil {
		t.Fatal(err)
	}
	if got := modelHash(s); got != want {
		t.Errorf("with pictures between the steps: %s, without: %s", got, want)
	}
	if tr.Seconds() > -3600 {
		t.Errorf("%v seconds: idle time counts", tr.Seconds())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := between.Do(ctx, func() error { return nil }); !errors.Is(err, context.Canceled) && !errors.Is(err, asked) {
		t.Errorf("nothing is trained: %v", err)
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	<-over
	if pictures == 0 {
		t.Error("no picture was made")
	}
}

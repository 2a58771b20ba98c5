package team

import (
	"errors"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/vk"
	"vksplat/vk/vktest"
)

// TestTeam makes a team of three devices, larger packets for it, and ends it.
func TestTeam(t *testing.T) {
	devices := []*vk.Device{vktest.Device(t), vktest.Device(t), vktest.Device(t)}
	team := must.Get(New(devices, Options{Records: 100, Beside: AbsWords, InFlight: 2}))(t)
	if team.Records() != 128 || team.Links(1).Records != 128 || team.Links(1).Pieces != 1 {
		t.Errorf("packets of %d records, %+v", team.Records(), team.Links(1))
	}
	team.PieceRecords(500)
	must.Do(t, team.Resize(1000))
	for rank := range devices {
		l := team.Links(rank)
		if l.Records != 1024 || team.Imported() != (l.Pieces == MostPieces) {
			t.Errorf("rank %d: %d records in %d pieces", rank, l.Records, l.Pieces)
		}
		var others []int
		l.Others(func(o int) { others = append(others, o) })
		if want := []int{(rank + 1) % 3, (rank + 2) % 3}; !slices.Equal(others, want) {
			t.Errorf("rank %d: others %v, want %v", rank, others, want)
		}
		for o := range devices {
			if empty := l.Out[o].Keys.IsZero(); empty != (o == rank) || !empty && l.Out[o].Keys.N() != 1024 {
				t.Errorf("rank %d: packet to %d: %d keys", rank, o, l.Out[o].Keys.N())
			}
		}
	}
	team.Begin()
	first := slices.Clone(team.StepAwaits(0))
	team.Begin()
	second := team.StepAwaits(0)
	if len(first) != 1+nExchanges*team.Links(0).Pieces || slices.Max(first) >= slices.Min(second[1:]) {
		t.Errorf("a step waits for %v, the next for %v", first, second)
	}
	gone := errors.New("gone")
	if err := team.Fail(gone); !errors.Is(err, gone) || team.Failure() != err || team.Fail(errors.New("late")) != err {
		t.Errorf("the team ended because of %v, then of %v", err, team.Failure())
	}
	if err := team.Close(); err != nil {
		t.Error(err)
	}
}

// TestAlone calls what a device without a team calls.
func TestAlone(t *testing.T) {
	var team *Team
	team.Begin()
	gone := errors.New("gone")
	if err := team.Fail(gone); err != gone || team.Failure() != nil {
		t.Errorf("got %v, then %v", err, team.Failure())
	}
}

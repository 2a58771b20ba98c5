package vk

import (
	"errors"
	"testing"
)

// TestCompiler reads statistics where the driver tells them, and checks the refusal elsewhere.
func TestCompiler(t *testing.T) {
	in := testInstance(t)
	info, _, err := in.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	c, err := in.NewCompiler(info)
	if !info.Features.ExecutableInfo {
		if !errors.Is(err, errMissingFeature) {
			t.Fatalf("error %v, want ErrMissingFeature", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	st, err := c.Compile(saxpyKernel, []uint32{32, 0})
	if err != nil || st.Workgroup != [3]uint32{32, 1, 1} || len(st.Stats) == 0 {
		t.Errorf("%+v, error %v", st, err)
	}
	if _, err := c.Compile(saxpyKernel, nil); err == nil {
		t.Error("a missing specialization constant was accepted")
	}
}

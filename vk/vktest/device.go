// Package vktest opens the device that tests of the packages above vk run on.
package vktest

import (
	"cmp"
	"os"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/vk"
)

// Device opens the device that VKSPLAT_DEVICE names, or the best one, with an instance of its own. The test fails if it
// leaves device memory behind, and if the validation layer complains.
func Device(t testing.TB) *vk.Device {
	t.Helper()
	in, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	t.Cleanup(func() {
		for _, m := range in.Messages() {
			t.Error("validation:", m)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
	info, _, err := in.Select(cmp.Or(os.Getenv("VKSPLAT_DEVICE"), "auto"))
	if err != nil {
		t.Fatal(err)
	}
	d := must.Get(in.NewDevice(info, vk.DeviceOptions{Budget: info.DefaultBudget()}))(t)
	t.Cleanup(func() {
		if n := d.Stats().InUse; n != 0 {
			t.Errorf("%d bytes of device memory are still in use", n)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

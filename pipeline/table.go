package pipeline

import (
	"errors"
	"slices"

	"vksplat/vk"
)

// writeTable replaces what s holds. Nothing may be in flight.
func writeTable[T any](dev *vk.Device, s vk.Slice[T], data []T) (err error) {
	staging, err := vk.Make[T](dev, vk.Upload, len(data), "table staging")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Free(staging.View)) }()
	copy(vk.Host(staging), data)
	r := vk.NewRecorder(dev)
	r.Copy(s.View, staging.View)
	return dev.RunOnce(r, "write table")
}

// readTable returns what s holds. Nothing may be in flight.
func readTable[T any](dev *vk.Device, s vk.Slice[T]) ([]T, error) {
	to, err := vk.Make[T](dev, vk.Readback, s.N(), "table read back")
	if err != nil {
		return nil, err
	}
	r := vk.NewRecorder(dev)
	r.Copy(to.View, s.View)
	err = dev.RunOnce(r, "read table")
	return slices.Clone(vk.Host(to)), errors.Join(err, dev.Free(to.View))
}

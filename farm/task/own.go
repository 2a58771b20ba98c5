package task

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/confined"
)

// ownLinks refuses an input in which something leads out of the root: a copy of it would lack that.
func (s *stager) ownLinks(key string) error {
	_, odd, err := s.inputs.List(key)
	return errors.Join(err, store.Odd("fetch", odd))
}

// ownFiles refuses an input whose files name photos, masks or points outside of the root: this machine has them from
// elsewhere, and the results would show them. Of a copy the root is its folder in the cache.
func (s *stager) ownFiles(in spec.Input, local string) error {
	root := s.inputs.String()
	if !s.inPlace() {
		root = s.cache.FolderOf(local)
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	file := confined.Escape(local, root, s.loading())
	if file == "" {
		return nil
	}
	return &fault.Error{Op: "fetch input", Path: in.Key, Kind: fault.ErrData,
		Err:  fmt.Errorf("it reads %s, which is not below the root of inputs", file),
		Hint: "copy that file into the capture, and name it by a path that starts in the capture's folder"}
}

// inPlace reports whether inputs are read where they are.
func (s *stager) inPlace() bool { return s.InPlace && !store.IsBucket(s.Roots[s.Job.Store.Inputs].URL) }

// loading says how the task's command loads its capture. A block's is loaded as its plan's was.
func (s *stager) loading() scene.LoadOptions {
	flags := s.task.Flags
	if !s.task.Plan.None() {
		flags = slices.Concat(s.Plan.Tasks[s.task.Plan.Tasks[0]].Flags, flags)
	}
	o := scene.LoadOptions{Model: scene.AnyModel}
	for _, f := range flags {
		number, err := strconv.Atoi(f.Value)
		switch f.Name {
		case "images":
			o.Images = f.Value
		case "masks":
			o.Masks = f.Value
		case "format":
			o.Format = f.Value
		case "full-photos":
			o.FullPhotos = f.Value == "true"
		case "downscale":
			o.Downscale = number // 0 for auto
		case "model":
			if err == nil {
				o.Model = number
			}
		}
	}
	return o
}

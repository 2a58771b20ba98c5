package vk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"vksplat/internal/fault"
)

// limitsVariable names the profile of a device that this machine's devices stand in for, as far as they can, for tests.
// Several files, separated as in PATH, add to each other.
const limitsVariable = "VKSPLAT_LIMITS"

// profile is a file about a device: JSON with comments, which begin with // and end with the line. The keys are
// Vulkan's names; what the file leaves out stays as it was. The folder profiles has some.
type profile struct {
	*Limits
	*Features
	*faults
	Type   *DeviceType  `json:"deviceType"`
	Vendor *uint32      `json:"vendorID"`
	Heaps  []Heap       `json:"memoryHeaps"`
	Types  []memoryType `json:"memoryTypes"` // of these heaps
}

// faults simulate a faulty driver.
type faults struct {
	HeapBytes   int64  `json:"heapBytes"`   // see LimitHeap
	LostAfter   uint64 `json:"lostAfter"`   // submissions after which the device is lost; 0: it is not
	RefusedFrom int    `json:"refusedFrom"` // the first of the allocations that are refused, from 1 on; 0: none is
}

var comment = regexp.MustCompile(`(?m)//.*$`)

// ReadProfile changes d to what a profile says.
func (d *DeviceInfo) ReadProfile(path string) error {
	bad := func(err error, hint string) error {
		return fault.WithHint(&callError{Call: "read limits", Object: path, Err: fmt.Errorf("%w: %w", errBadLimits,
			err)}, hint)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return bad(err, "unset "+limitsVariable+" or let it name the profile of a device")
	}
	p := profile{Limits: &d.Limits, Features: &d.Features, faults: &d.faults, Type: &d.Type, Vendor: &d.Vendor}
	dec := json.NewDecoder(bytes.NewReader(comment.ReplaceAll(data, nil)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return bad(err, "the keys are Vulkan's names, as in {\"maxStorageBufferRange\": 1048576}")
	}
	stray := func(t memoryType) bool { return t.Heap >= maxHeaps || int(t.Heap) >= len(p.Heaps) }
	if (len(p.Heaps) > 0) != (len(p.Types) > 0) || slices.ContainsFunc(p.Types, stray) {
		return bad(errors.New("memory types of heaps that are not there"), "give memoryHeaps and their memoryTypes")
	}
	if len(p.Heaps) > 0 {
		d.Heaps, d.types = p.Heaps, p.Types
	}
	d.Limits.narrow()
	return nil
}

// standIn makes a device what the profiles of limitsVariable say, but no stronger than it is.
func (d *DeviceInfo) standIn() error {
	own := *d
	for _, path := range filepath.SplitList(os.Getenv(limitsVariable)) {
		if err := d.ReadProfile(path); err != nil {
			return err
		}
	}
	weaken(reflect.ValueOf(&d.Limits).Elem(), reflect.ValueOf(own.Limits), "")
	weaken(reflect.ValueOf(&d.Features).Elem(), reflect.ValueOf(own.Features), "")
	l := &d.Limits
	l.MinSubgroupSize = min(l.MinSubgroupSize, l.MaxSubgroupSize)
	l.SubgroupSize = min(max(l.SubgroupSize, l.MinSubgroupSize), l.MaxSubgroupSize)
	return nil
}

// weaken makes v no stronger than own: numbers are the smaller one, or the larger one if their name begins with Min,
// and abilities are those that both have.
func weaken(v, own reflect.Value, name string) {
	less := !strings.HasPrefix(name, "Min")
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			weaken(v.Field(i), own.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Array:
		for i := range v.Len() {
			weaken(v.Index(i), own.Index(i), name)
		}
	case reflect.Bool:
		v.SetBool(v.Bool() && own.Bool())
	case reflect.Uint32:
		if less != (v.Uint() < own.Uint()) {
			v.Set(own)
		}
	case reflect.Int64:
		if less != (v.Int() < own.Int()) {
			v.Set(own)
		}
	default: // the timestamp period, which is neither
		v.Set(own)
	}
}

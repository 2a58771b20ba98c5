package npz

import (
	"fmt"
	"strconv"
	"strings"
)

// parseHeader reads the Python dictionary literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } of an
// .npy header.
func parseHeader(s string) (*Array, error) {
	descr, err := field(s, "descr")
	if err != nil {
		return nil, err
	}
	descr = strings.Trim(descr, "'\"")
	a := &Array{}
	switch descr {
	case "<f4", "<f8", "<i4", "<i8", "|u1", "|b1":
		a.DType = descr[1:]
	default:
		return nil, fmt.Errorf("type %q is not supported", descr)
	}
	order, err := field(s, "fortran_order")
	if err != nil {
		return nil, err
	}
	shape, err := field(s, "shape")
	if err != nil {
		return nil, err
	}
	for _, part := range strings.Split(strings.Trim(shape, "()"), ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("dimension %q is not a count", part)
		}
		a.Shape = append(a.Shape, n)
	}
	if order != "False" && len(a.Shape) > 1 {
		return nil, fmt.Errorf("fortran order is not supported")
	}
	return a, nil
}

// field returns the text of one value of the dictionary.
func field(s, name string) (string, error) {
	_, rest, ok := strings.Cut(s, "'"+name+"':")
	if !ok {
		return "", fmt.Errorf("header has no %s", name)
	}
	rest = strings.TrimLeft(rest, " ")
	end := strings.IndexAny(rest, ",}")
	if strings.HasPrefix(rest, "(") {
		end = strings.IndexByte(rest, ')') + 1
	}
	if end <= 0 {
		return "", fmt.Errorf("header's %s is cut short", name)
	}
	return strings.TrimSpace(rest[:end]), nil
}

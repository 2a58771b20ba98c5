package scene

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"

	"vksplat/internal/fault"
)

// maxTestList bounds the bytes of a list of photos: names of a million of them.
const maxTestList = 64 << 20

const opTestList = "read list of photos"

// ReadTestList reads a list of photos that are to be held out: a name a line, as the capture has it. Empty lines mean
// nothing.
func ReadTestList(path string) ([]string, error) {
	data, err := fault.ReadFile(path, maxTestList)
	if err != nil {
		return nil, &fault.Error{Op: opTestList, Path: path, Err: err, Kind: fault.ReadKind(err),
			Hint: "name a text file with the name of a photo on each line"}
	}
	var names []string
	for _, line := range strings.Split(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			names = append(names, line)
		}
	}
	if len(names) == 0 {
		return nil, &fault.Error{Op: opTestList, Path: path, Err: errors.New("it names no photo"),
			Hint: "write the name of a photo to be held out on each line"}
	}
	return names, nil
}

// HoldOutEvery holds out every n-th photo, beginning with the first, unless the capture says which are held out. n <= 0
// holds none out.
func (c *Capture) HoldOutEvery(n int) {
	_, test := c.Split(n)
	if c.HeldOut != nil || len(test) == 0 {
		return
	}
	c.HeldOut = map[string]bool{}
	for _, i := range test {
		c.HeldOut[c.Cameras[i].PhotoName()] = true
	}
}

// HoldOutCameras holds out the photos of the cameras with these names, and returns how many of them are not there.
func (c *Capture) HoldOutCameras(names []string) (lost int) {
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	c.HeldOut = map[string]bool{}
	for i := range c.Cameras {
		if cam := &c.Cameras[i]; left[cam.Name] {
			c.HeldOut[cam.PhotoName()] = true
			delete(left, cam.Name)
		}
	}
	return len(left)
}

// HoldOut holds out the photos with these names, whatever the capture's own files say. list is where the names are
// from. Names that the capture does not have are an error, and so is a list of all photos.
func (c *Capture) HoldOut(list string, names []string) error {
	listed := map[string]bool{} // whether a photo has the name
	for _, name := range names {
		listed[norm.NFC.String(name)] = false
	}
	held, kept := map[string]bool{}, 0
	for _, cam := range c.Cameras {
		name := norm.NFC.String(cam.PhotoName())
		if _, named := listed[name]; named {
			listed[name], held[cam.PhotoName()] = true, true
		} else {
			kept++
		}
	}
	left := map[string]bool{}
	for name := range c.LeftOut {
		left[norm.NFC.String(name)] = true
	}
	var unknown, known []string
	for _, name := range names {
		key := norm.NFC.String(name)
		switch {
		case listed[key]:
			continue
		case left[key]:
			known = append(known, name)
		default:
			unknown = append(unknown, name)
		}
		listed[key] = true // once
	}
	refuse := func(which []string, what, hint string) error {
		return fault.Data(opTestList, list, hint, "%s", Warning{Count: len(which), Names: FirstNames(which),
			Text: fmt.Sprintf("%d of %d photos %s", len(which), len(names), what)})
	}
	switch {
	case len(unknown) > 0:
		return refuse(unknown, "are not in the capture", fmt.Sprintf(
			"names are relative to the folder of the photos, as in %q", c.Cameras[0].PhotoName()))
	case len(known) > 0:
		return refuse(known, "are in the capture, but have no file that can be read, or no pose",
			"fix these photos, or remove their names from the list")
	case kept == 0:
		return fault.Data(opTestList, list, "leave photos to train on", "all %d photos are held out", len(c.Cameras))
	}
	c.HeldOut = held
	return nil
}

// Package tiles describes tilesets of 3D Tiles 1.1 (OGC 22-025r4) whose content is glTF: the JSON of a tileset, and
// where on Earth it stands. It knows boxes and names of files, and no splats.
package tiles

import (
	"errors"
	"math"
	"net/url"
	"strings"
)

// replacing is how children take the place of a tile: all of them together replace it.
const replacing = "REPLACE"

type Tileset struct {
	Asset          Asset       `json:"asset"`
	Error          float64     `json:"geometricError"` // metres, of what is seen where not even Root is drawn: its size
	ExtensionsUsed []string    `json:"extensionsUsed,omitempty"`
	Extensions     *Extensions `json:"extensions,omitempty"`
	Root           *Tile       `json:"root"`
}

// Asset is who made a tileset.
type Asset struct {
	Version   string `json:"version"`
	Generator string `json:"generator,omitempty"`
}

type Extensions struct {
	GLTF GLTF `json:"3DTILES_content_gltf"`
}

// GLTF says what readers must know before they load a tile.
type GLTF struct {
	Used     []string `json:"extensionsUsed"`
	Required []string `json:"extensionsRequired"`
}

// Tile is a part of the scene, coarser than its children, which are inside its box.
type Tile struct {
	Volume    Volume       `json:"boundingVolume"`
	Error     float64      `json:"geometricError"` // metres, of what is seen where the children are not drawn
	Refine    string       `json:"refine,omitempty"`
	Transform *[16]float64 `json:"transform,omitempty"` // column after column; of the root
	Content   *Content     `json:"content,omitempty"`
	Contents  []Content    `json:"contents,omitempty"` // in place of Content; others write several
	Children  []*Tile      `json:"children,omitempty"`
}

// Volume is a box: its centre, and half of its three edges.
type Volume struct {
	Box [12]float64 `json:"box"`
}

func (v Volume) Diagonal() float64 {
	return 2 * math.Sqrt(v.Box[3]*v.Box[3]+v.Box[7]*v.Box[7]+v.Box[11]*v.Box[11])
}

// Content names the file of a tile, relative to tileset.json.
type Content struct {
	URI string `json:"uri"`
}

// New makes a tileset around a tree, whose content needs these extensions of glTF.
func New(root *Tile, generator string, gltf []string) *Tileset {
	root.Refine = replacing
	return &Tileset{
		Asset:          Asset{"1.1", generator},
		Error:          max(root.Volume.Diagonal(), root.Error), // never 0: viewers would draw nothing
		ExtensionsUsed: []string{"3DTILES_content_gltf"},
		Extensions:     &Extensions{GLTF{gltf, gltf}},
		Root:           root,
	}
}

// Files lists the files of a tile and of all below.
func (t *Tile) Files() []string { return t.files(nil) }

func (t *Tile) files(list []string) []string {
	list = t.own(list)
	for _, child := range t.Children {
		if child != nil {
			list = child.files(list)
		}
	}
	return list
}

func (t *Tile) own(list []string) []string {
	if t.Content != nil {
		list = append(list, t.Content.name())
	}
	for _, c := range t.Contents {
		list = append(list, c.name())
	}
	return list
}

// name is that of the file, relative to tileset.json, with slashes. What is no URI is taken for a name.
func (c *Content) name() string {
	if name, err := url.PathUnescape(c.URI); err == nil {
		return name
	}
	return c.URI
}

// Finest lists the files that are drawn where everything is refined. Tiles with a transform of their own are refused.
func (t *Tile) Finest() ([]string, error) { return t.finest(replacing, nil) }

func (t *Tile) finest(refine string, list []string) (_ []string, err error) {
	if t.Transform != nil {
		return nil, errors.New("a tile is moved or rotated relative to its parent, which is not read")
	}
	if t.Refine != "" { // else as above
		refine = t.Refine
	}
	if len(t.Children) == 0 || !strings.EqualFold(refine, replacing) {
		list = t.own(list)
	}
	for _, child := range t.Children {
		if child == nil {
			return nil, errors.New("a tile of the tree is null")
		}
		if list, err = child.finest(refine, list); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// VolumeOf is the box between two corners in the frame of captures (right, down, forward), which becomes that of 3D
// Tiles (z up).
func VolumeOf(low, high [3]float32) (v Volume) {
	var middle, half [3]float64
	for k := range 3 {
		middle[k] = (float64(low[k]) + float64(high[k])) / 2
		half[k] = (float64(high[k]) - float64(low[k])) / 2
	}
	c := ZUp(middle)
	copy(v.Box[:], c[:])
	v.Box[3], v.Box[7], v.Box[11] = half[0], half[2], half[1]
	return v
}

// ZUp turns a position of the frame of captures to that of 3D Tiles. It is what is left of it after readers have turned
// glTF, which has y up, to z up.
func ZUp(p [3]float64) [3]float64 { return [3]float64{-p[0], -p[2], -p[1]} }

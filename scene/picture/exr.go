package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// exrLines is how many rows of pixels are compressed together with OpenEXR's ZIP.
const exrLines = 16

// exrChannel is a channel of an OpenEXR file: a half or a float a pixel.
type exrChannel struct {
	name  string
	float bool
	row   []float32 // of the row of pixels in hand
}

// exrChannels gives a picture's channels in the order in which files hold them, that of their names: colours
// premultiplied with coverage, A where it is asked for, Z where there are depths.
func exrChannels(p *Picture, o Options) (list []exrChannel) {
	names := []string{"B", "G", "R"}
	if o.Alpha {
		names = []string{"A", "B", "G", "R"}
	}
	for _, name := range names {
		list = append(list, exrChannel{name: name, row: make([]float32, p.Width)})
	}
	if len(p.Depth) > 0 {
		list = append(list, exrChannel{name: "Z", float: true, row: make([]float32, p.Width)})
	}
	return list
}

func exrRow(channels []exrChannel, p *Picture, o Options, y int) {
	for x := range p.Width {
		i := y*p.Width + x
		rgb, alpha := o.straight(p, i)
		part := 1.0
		if alpha > 0 && alpha < 1 {
			part = alpha
		}
		for _, c := range channels {
			switch c.name {
			case "A":
				c.row[x] = float32(alpha)
			case "Z":
				c.row[x] = p.Depth[i]
			case "R":
				c.row[x] = float32(rgb[0] * part)
			case "G":
				c.row[x] = float32(rgb[1] * part)
			case "B":
				c.row[x] = float32(rgb[2] * part)
			}
		}
	}
}

// encodeEXR writes an OpenEXR file, version 2: one part of scan lines, compressed with ZIP.
func encodeEXR(w io.Writer, p *Picture, o Options) error {
	channels := exrChannels(p, o)
	var head bytes.Buffer
	head.Write([]byte{0x76, 0x2f, 0x31, 0x01, 2, 0, 0, 0})
	exrHeader(&head, p, channels)
	blocks := make([][]byte, (p.Height+exrLines-1)/exrLines)
	for k := range blocks {
		var err error
		if blocks[k], err = exrBlock(p, channels, o, k*exrLines, min(exrLines, p.Height-k*exrLines)); err != nil {
			return fmt.Errorf("write exr: %w", err)
		}
	}
	at := uint64(head.Len() + 8*len(blocks))
	for _, b := range blocks {
		_ = binary.Write(&head, binary.LittleEndian, at) // a Buffer takes everything
		at += uint64(len(b))
	}
	if _, err := w.Write(head.Bytes()); err != nil {
		return err
	}
	for _, b := range blocks {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func exrHeader(b *bytes.Buffer, p *Picture, channels []exrChannel) {
	attribute := func(name, kind string, value ...any) {
		var v bytes.Buffer
		for _, x := range value {
			_ = binary.Write(&v, binary.LittleEndian, x) // a Buffer takes everything
		}
		fmt.Fprintf(b, "%s\x00%s\x00", name, kind)
		_ = binary.Write(b, binary.LittleEndian, uint32(v.Len()))
		b.Write(v.Bytes())
	}
	var list bytes.Buffer
	for _, c := range channels {
		kind := uint32(1) // half
		if c.float {
			kind = 2
		}
		fmt.Fprintf(&list, "%s\x00", c.name)
		// perceived linearly, sampled at every pixel
		_ = binary.Write(&list, binary.LittleEndian, [4]uint32{kind, 0, 1, 1})
	}
	list.WriteByte(0)
	window := [4]int32{0, 0, int32(p.Width - 1), int32(p.Height - 1)}
	attribute("channels", "chlist", list.Bytes())
	// of sRGB
	attribute("chromaticities", "chromaticities", [8]float32{0.64, 0.33, 0.3, 0.6, 0.15, 0.06, 0.3127, 0.329})
	attribute("compression", "compression", uint8(3)) // ZIP
	attribute("dataWindow", "box2i", window)
	attribute("displayWindow", "box2i", window)
	attribute("lineOrder", "lineOrder", uint8(0)) // from the top
	attribute("pixelAspectRatio", "float", float32(1))
	attribute("screenWindowCenter", "v2f", [2]float32{})
	attribute("screenWindowWidth", "float", float32(1))
	b.WriteByte(0)
}

// exrBlock gives some rows of pixels as a file holds them: row by row and, within a row, channel by channel.
func exrBlock(p *Picture, channels []exrChannel, o Options, first, lines int) ([]byte, error) {
	var raw []byte
	for y := first; y < first+lines; y++ {
		exrRow(channels, p, o, y)
		for _, c := range channels {
			for _, v := range c.row {
				if c.float {
					raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
				} else {
					raw = binary.LittleEndian.AppendUint16(raw, halfOf(v))
				}
			}
		}
	}
	data, err := exrZIP(raw)
	if err != nil {
		return nil, err
	}
	if len(data) >= len(raw) {
		data = raw // readers tell by the length
	}
	block := binary.LittleEndian.AppendUint32(nil, uint32(first))
	block = binary.LittleEndian.AppendUint32(block, uint32(len(data)))
	return append(block, data...), nil
}

// exrZIP compresses a block: bytes at even places before those at odd ones, then differences of neighbours, then zlib.
func exrZIP(raw []byte) ([]byte, error) {
	turned := make([]byte, 0, len(raw))
	for start := range 2 {
		for i := start; i < len(raw); i += 2 {
			turned = append(turned, raw[i])
		}
	}
	for i := len(turned) - 1; i > 0; i-- {
		turned[i] -= turned[i-1] + 128
	}
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	if err == nil {
		if _, err = z.Write(turned); err == nil {
			err = z.Close()
		}
	}
	return b.Bytes(), err
}

// halfOf rounds to the nearest half (IEEE 754 binary16), to the even one of two; what is too large becomes the largest,
// NaN stays.
func halfOf(x float32) uint16 {
	const largest = 65504
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	switch a := math.Abs(float64(x)); {
	case a != a:
		return sign | 0x7e00
	case a >= largest:
		return sign | 0x7bff
	case a < 1.0/(1<<14): // denormal: steps of 2^-24
		return sign | uint16(math.RoundToEven(a*(1<<24)))
	}
	e := bits&0x7fffffff - 112<<23 // the exponents' biases are 127 and 15
	return sign | uint16((e+0xfff+e>>13&1)>>13)
}

package realityscan

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf16"

	"vksplat/internal/geom"
	"vksplat/internal/textnum"
	"vksplat/scene"
	"vksplat/scene/exported"
)

// columns are those that a file must have.
var columns = []string{"name", "x", "y", "alt", "heading", "pitch", "roll", "f"}

// optional are those that are 0 if absent.
var optional = []string{"px", "py", "k1", "k2", "k3", "k4", "t1", "t2"}

// Find lists the CSV files of cameras in a folder.
func Find(root string) []string {
	return exported.Files(root, ".csv", func(head []byte) bool {
		_, _, err := open(head)
		return err == nil
	})
}

// plain gives a text in UTF-8 with line feeds. Spreadsheets write UTF-16 with a byte order mark, and old ones for Macs
// carriage returns alone.
func plain(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	}
	if order != nil {
		units := make([]uint16, len(data)/2-1)
		for i := range units {
			units[i] = order.Uint16(data[2*i+2:])
		}
		data = []byte(string(utf16.Decode(units)))
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !bytes.Contains(data, []byte("\n")) {
		data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	}
	return data
}

// open reads up to the names of the columns, and gives the place of each. Spreadsheets write semicolons and tabs, too.
func open(data []byte) (r *csv.Reader, at map[string]int, err error) {
	data = plain(data)
	for _, comma := range ",;\t" {
		r = csv.NewReader(bytes.NewReader(data))
		r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = comma, -1, true, true
		r.TrimLeadingSpace = comma != '\t' // which a field may be left empty by
		if at, err = header(r); err == nil {
			break
		}
	}
	return r, at, err
}

// header is open with the commas that a reader has. A line of the number of cameras may come before the names.
func header(r *csv.Reader) (map[string]int, error) {
	for range 2 {
		row, err := r.Read()
		if err != nil {
			break
		}
		at := map[string]int{}
		for i, name := range row {
			name = strings.ToLower(strings.Trim(name, "# \t"))
			if name == "yaw" { // as some versions write it
				name = "heading"
			}
			at[name] = i
		}
		missing := ""
		for _, name := range columns {
			if _, ok := at[name]; !ok && missing == "" {
				missing = name
			}
		}
		if missing == "" {
			return at, nil
		}
	}
	return nil, fmt.Errorf("the columns %s are expected", strings.Join(columns, ","))
}

// Read fills Points and gives the records of the photos.
func Read(c *scene.Capture, _ scene.LoadOptions) ([]scene.Record, error) {
	records, err := exported.Parse(c.Model, parse)
	if err != nil {
		return nil, err
	}
	if err := exported.Locate(c, records); err != nil {
		return nil, err
	}
	return records, exported.Cloud(c)
}

// parse reads a CSV without looking at any other file.
func parse(data []byte) (records []scene.Record, err error) {
	r, at, err := open(data)
	if err != nil {
		return nil, err
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := r.FieldPos(0)
		record, err := parseRow(row, at)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		records = append(records, record)
	}
}

func parseRow(row []string, at map[string]int) (r scene.Record, err error) {
	v := map[string]float64{}
	for i, name := range append(columns[1:len(columns):len(columns)], optional...) {
		place, there := at[name]
		if !there {
			continue
		}
		if place >= len(row) {
			return r, fmt.Errorf("it ends before the column %s", name)
		}
		text := strings.ReplaceAll(strings.TrimSpace(row[place]), ",", ".") // the decimal point of many countries
		if text == "" && i >= len(columns)-1 {
			continue
		}
		x, ok := textnum.Float(text)
		if !ok {
			return r, fmt.Errorf("%.40q is not a number, in the column %s", text, name)
		}
		v[name] = x
	}
	if at["name"] >= len(row) {
		return r, errors.New("it ends before the column name")
	}
	r.Cam.Name = strings.Clone(strings.TrimSpace(row[at["name"]]))
	if f := v["f"]; geom.Finite(f) && (f <= 0 || f >= scene.MaxCoordinate) {
		return r, fmt.Errorf("the focal length is %g", f)
	}
	r.Lens = lens(v)
	axes := geom.Product(geom.Product(turn(2, -v["heading"]), turn(0, v["pitch"])), turn(1, v["roll"]))
	r.Bad = exported.Pose(&r.Cam, exported.FromOpenGL(axes), [3]float64{v["x"], v["y"], v["alt"]})
	return r, nil
}

// lens gives the calibration of a row for a photo of any size.
func lens(v map[string]float64) exported.Lens {
	return func(width, height int) scene.Calibration {
		side := float64(max(width, height))
		f := v["f"] * side / 36
		k := scene.Calibration{Model: scene.LensPolynomial, Width: width, Height: height,
			Params: []float64{f, f, float64(width)/2 + v["px"]*side, float64(height)/2 + v["py"]*side,
				v["k1"], v["k2"], v["k3"], v["k4"], v["t1"], v["t2"]}}
		if v["k1"] == 0 && v["k2"] == 0 && v["k3"] == 0 && v["k4"] == 0 && v["t1"] == 0 && v["t2"] == 0 {
			k.Model, k.Params = scene.LensPinhole, k.Params[:4]
		}
		return k
	}
}

// turn is the rotation about an axis by degrees.
func turn(axis int, degrees float64) (m [9]float64) {
	sin, cos := math.Sincos(math.Mod(degrees, 360) * math.Pi / 180)
	a, b := (axis+1)%3, (axis+2)%3
	m[4*axis] = 1
	m[4*a], m[4*b] = cos, cos
	m[3*a+b], m[3*b+a] = -sin, sin
	return m
}

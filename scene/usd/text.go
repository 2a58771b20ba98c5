package usd

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// WriteText writes the text form. Numbers have as many digits as a float32 needs to be read as it was.
func WriteText(to io.Writer, l *Layer) error {
	w := bufio.NewWriterSize(to, 1<<16)
	fmt.Fprintf(w, "#usda 1.0\n(\n    defaultPrim = %s\n    upAxis = \"Y\"\n    metersPerUnit = %v\n",
		quoted(l.Root.Name), l.MetersPerUnit)
	if l.Doc != "" {
		fmt.Fprintf(w, "    doc = %s\n", quoted(l.Doc))
	}
	fmt.Fprint(w, ")\n\n")
	if err := l.Root.text(w, ""); err != nil {
		return err
	}
	return w.Flush()
}

// text writes a prim. Errors of w stay until Flush.
func (p *Prim) text(w *bufio.Writer, indent string) error {
	fmt.Fprintf(w, "%sdef %s %s\n%s{\n", indent, p.Type, quoted(p.Name), indent)
	for i := range p.Attributes {
		a := &p.Attributes[i]
		fmt.Fprint(w, indent, "    ")
		if a.Custom {
			fmt.Fprint(w, "custom ")
		}
		if a.Uniform {
			fmt.Fprint(w, "uniform ")
		}
		fmt.Fprintf(w, "%s %s = ", a.Type, a.Name)
		switch v := a.Value.(type) {
		case Token:
			fmt.Fprint(w, quoted(string(v)))
		case String:
			fmt.Fprint(w, quoted(string(v)))
		case Int:
			fmt.Fprint(w, int32(v))
		case Array:
			if err := v.text(w); err != nil {
				return err
			}
		}
		fmt.Fprintln(w)
	}
	for i := range p.Children {
		fmt.Fprintln(w)
		if err := p.Children[i].text(w, indent+"    "); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%s}\n", indent)
	return nil
}

func (a Array) text(w *bufio.Writer) error {
	data := bufio.NewReaderSize(a.Data(), 1<<16)
	vector := make([]byte, 4*a.Kind.width())
	order := [...][]int{{0}, {0, 1, 2}, {3, 0, 1, 2}}[a.Kind]
	var line []byte
	_ = w.WriteByte('[')
	for i := range a.N {
		if _, err := io.ReadFull(data, vector); err != nil {
			return fmt.Errorf("an array of %d vectors ended after %d: %w", a.N, i, err)
		}
		line = line[:0]
		if i > 0 {
			line = append(line, ", "...)
		}
		if len(order) > 1 {
			line = append(line, '(')
		}
		for k, at := range order {
			if k > 0 {
				line = append(line, ", "...)
			}
			x := math.Float32frombits(binary.LittleEndian.Uint32(vector[4*at:]))
			line = strconv.AppendFloat(line, float64(x), 'g', -1, 32)
		}
		if len(order) > 1 {
			line = append(line, ')')
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return w.WriteByte(']')
}

// quoted gives text in quotes. A name from a file must not end the quotes or the line.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\x00", "").Replace(s) + `"`
}

package splatfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// encode writes two extra bytes and two equal rows of doubles.
func encode(b *bytes.Buffer, format string, values []float64) {
	order := map[string]binary.AppendByteOrder{"binary_little_endian": binary.LittleEndian,
		"binary_big_endian": binary.BigEndian}[format]
	if order == nil {
		b.WriteString("1\n2\n")
	} else {
		b.Write([]byte{1, 2})
	}
	for range 2 {
		for _, x := range values {
			if order == nil {
				fmt.Fprintf(b, "%g ", x)
			} else {
				b.Write(order.AppendUint64(nil, math.Float64bits(x)))
			}
		}
		if order == nil {
			b.WriteString("\n")
		}
	}
}

package child

import "bytes"

// MaxLine is how much of a line is heard, in bytes.
const MaxLine = 1 << 16

// Lines takes what a child prints apart.
type Lines struct {
	// called with each line, without its end, and not with what is behind MaxLine bytes of it; the line is Lines' own
	Heard func(line []byte)

	line []byte
}

// Write implements io.Writer.
func (l *Lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		text, more, whole := bytes.Cut(rest, []byte("\n"))
		l.line = append(l.line, text[:min(len(text), MaxLine-len(l.line))]...)
		rest = more
		if whole {
			l.Heard(l.line)
			l.line = l.line[:0]
		}
	}
	return len(p), nil
}

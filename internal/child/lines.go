package child

import "bytes"

// MaxLine is how much of a line OnLine gets, in bytes.
const MaxLine = 1 << 16

// Lines splits what a child prints into lines.
type Lines struct {
	// called with each line, without its end and what follows MaxLine bytes of it; it must not keep the slice
	OnLine func(line []byte)

	line []byte
}

func (l *Lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		text, more, whole := bytes.Cut(rest, []byte("\n"))
		l.line = append(l.line, text[:min(len(text), MaxLine-len(l.line))]...)
		rest = more
		if whole {
			l.OnLine(l.line)
			l.line = l.line[:0]
		}
	}
	return len(p), nil
}

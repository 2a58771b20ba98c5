package cli

import (
	"encoding/json"
	"io"
)

// WriteLine writes v as one line of JSON in one write, so that a process that is
// killed leaves whole lines.
func WriteLine(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(data, '\n'))
	}
	return err
}

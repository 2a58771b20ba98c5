package atomicfile

import (
	"encoding/json"
	"io"
)

// WriteJSON writes v as JSON, one line when indent is empty.
func WriteJSON(path string, v any, indent string) error {
	return Write(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", indent)
		return enc.Encode(v)
	})
}

// WriteText is Write of a file that is in memory.
func WriteText[T string | []byte](path string, text T) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write([]byte(text))
		return err
	})
}

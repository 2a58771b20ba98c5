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

package view

import (
	"encoding/json"
	"errors"
	"net/http"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// Asked reads the JSON of a request up to a size. A form of another site cannot send that type; the guard
// refuses it anyway.
func Asked[T any](w http.ResponseWriter, r *http.Request, most int64) (*T, error) {
	if r.Header.Get("Content-Type") != "application/json" {
		return nil, errors.New("the request is not JSON")
	}
	v := new(T)
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil || decoder.More() {
		return nil, errors.New("the request is not understood")
	}
	return v, nil
}

// Answer answers with JSON.
func Answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has gone if this fails
}

// AnswerError says what went wrong, and what can be done about it.
func AnswerError(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": wording.Printable(err.Error()),
		"hint": wording.Printable(fault.Hint(err))})
}

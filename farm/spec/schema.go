package spec

import _ "embed"

// job.schema.json is made from the tables of fields by a test.
//
//go:embed job.schema.json
var schemaFile []byte

// Schema is the JSON Schema (draft 2020-12) of job documents. It knows what one value can tell; what needs more than
// one, as that ids are there once, only Parse and Plan know.
func Schema() []byte { return schemaFile }

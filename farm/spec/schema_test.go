package spec

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	must "vksplat/internal/musttest"
)

var update = flag.Bool("update", false, "write job.schema.json anew")

const schemaPath = "job.schema.json"

// nameForm is what the schema says of names, see badName: letters of all scripts and spaces, but no signs that file
// systems or shells of some system take for something else, no dot, dash or at sign in front, no dot or space at the
// end.
const nameForm = `^[^\x00-\x1f\x7f-\x9f/\\:*?"<>|.@ -]([^\x00-\x1f\x7f-\x9f/\\:*?"<>|]*[^\x00-\x1f\x7f-\x9f/\\:*?"<>|. ])?$`

type object = map[string]any

// TestSchemaIsMade wants job.schema.json to say what the tables of fields say.
func TestSchemaIsMade(t *testing.T) {
	want := must.Get(json.MarshalIndent(makeSchema(), "", " "))(t)
	want = append(want, '\n')
	if *update {
		must.Do(t, os.WriteFile(schemaPath, want, 0o666))
	}
	got := must.Get(os.ReadFile(schemaPath))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the tables say; write it anew: make docs", schemaPath)
	}
}

func makeSchema() object {
	job := tableSchema(jobFields)
	job["$schema"], job["$id"], job["title"] = "https://json-schema.org/draft/2020-12/schema",
		"https://vksplat.invalid/job.schema.json", "A job of vksplat's farm"
	var any []object
	for _, k := range kinds[:len(writtenKinds())] {
		t := tableSchema(append(slices.Clone(commonFields), k.fields...))
		props := t["properties"].(object)
		props["kind"] = object{"const": k.Name, "description": k.About}
		props["matrix"] = matrixSchema(k)
		t["required"] = []string{"kind"}
		// A required key may stand in the matrix.
		var all []object
		for _, f := range k.fields {
			if f.required {
				all = append(all, object{"anyOf": []object{{"required": []string{f.Name}},
					{"required": []string{"matrix"},
						"properties": object{"matrix": object{"type": "object", "required": []string{f.Name}}}}}})
			}
			if f.Type != typeTable { // and then not beside it
				all = append(all, object{"not": object{"required": []string{f.Name, "matrix"},
					"properties": object{"matrix": object{"type": "object", "required": []string{f.Name}}}}})
			}
		}
		t["allOf"] = all
		any = append(any, t)
	}
	job["properties"].(object)["task"] = object{"type": "array", "minItems": 1, "maxItems": maxWritten,
		"items": object{"oneOf": any}, "description": "the tasks"}
	defs := object{}
	settings, axes := object{}, object{}
	for key, name := range settingKeys() {
		ref := object{"$ref": "#/$defs/" + name}
		settings[key] = ref
		axes[key] = object{"type": "array", "minItems": 1, "uniqueItems": true, "items": ref}
	}
	settingSchemas(defs)
	defs["settings"] = object{"type": "object", "additionalProperties": false, "properties": settings,
		"description": "settings of vksplat train, see docs/train.md"}
	defs["axes"] = object{"properties": axes}
	job["$defs"] = defs
	return job
}

func tableSchema(fields []field) object {
	props := object{}
	t := object{"type": "object", "additionalProperties": false, "properties": props}
	var required []string
	for i := range fields {
		f := &fields[i]
		s := fieldSchema(f)
		s["description"] = f.Help
		props[f.Name] = s
		if f.required {
			required = append(required, f.Name)
		}
	}
	if required != nil {
		t["required"] = required
	}
	return t
}

func fieldSchema(f *field) object {
	switch f.Type {
	case typeInt:
		return object{"type": "integer", "minimum": f.Min, "maximum": f.Max}
	case typeFloat:
		return object{"type": "number", "minimum": f.Min, "maximum": f.Max}
	case typeBool:
		return object{"type": "boolean"}
	case typeTable:
		if f.fields[0].Set {
			return object{"$ref": "#/$defs/settings"}
		}
		return tableSchema(f.fields)
	case typeInts, typeFloats, typeInputs, typeNames:
		return listSchema(f)
	case typeName:
		return object{"type": "string", "pattern": nameForm, "maxLength": maxName}
	case typeWord:
		return object{"type": "string", "pattern": wordForm.String()}
	case typeSpan:
		return object{"type": "string", "pattern": spanForm.String()}
	case typeFrames:
		return object{"type": "string", "pattern": frameForm.String()}
	case typeFolder, typeCamera:
		return object{"type": "string", "pattern": keyForm.String(), "maxLength": maxKey}
	case typeInput:
		return inputSchema()
	}
	if len(f.Words) > 0 {
		return object{"enum": f.Words}
	}
	return object{"type": "string", "pattern": textForm.String(), "maxLength": maxText}
}

func inputSchema() object {
	reference := "^@" + strings.TrimPrefix(nameForm, "^")
	return object{"anyOf": []object{{"type": "string", "pattern": keyForm.String(), "maxLength": maxKey},
		{"type": "string", "pattern": reference, "maxLength": maxName + 1}}}
}

func listSchema(f *field) object {
	element := *f
	element.Type = elements[f.Type]
	s := object{"type": "array", "items": fieldSchema(&element)}
	if f.Count > 0 {
		s["minItems"], s["maxItems"] = f.Count, f.Count
	} else {
		s["minItems"], s["maxItems"], s["uniqueItems"] = 1, f.most, true
	}
	return s
}

// settingKeys are all names of settings, with underscores or dashes, and the definition of each.
func settingKeys() map[string]string {
	keys := map[string]string{}
	for _, s := range settings {
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			keys[name] = "set_" + s.Name
			keys[strings.ReplaceAll(name, "_", "-")] = "set_" + s.Name
		}
	}
	return keys
}

// settingSchemas adds the definitions of settings.
func settingSchemas(defs object) {
	number := object{"type": "number"}
	for i := range settings {
		s := &settings[i]
		v := object{}
		switch {
		case s.Seed:
			v["anyOf"] = []object{{"type": "integer"}, {"type": "string", "pattern": "^[0-9]{1,20}$"}}
		case len(s.Words) > 0:
			var words []any
			for _, w := range s.Words {
				words = append(words, w)
				if n, err := strconv.Atoi(w); err == nil {
					words = append(words, n)
				}
			}
			v["enum"] = words
		case s.Type == typeText:
			v["anyOf"] = []object{{"type": "string", "pattern": textForm.String(), "maxLength": maxText}, number,
				{"type": "array", "items": number, "maxItems": maxSettingList}}
		case s.Type == typeInts:
			v["type"], v["items"], v["maxItems"] = "array", object{"type": "integer"}, maxSettingList
		default:
			v["type"] = map[string]string{typeInt: "integer", typeFloat: "number", typeBool: "boolean"}[s.Type]
		}
		defs["set_"+s.Name] = v
	}
}

func matrixSchema(k *Kind) object {
	props := object{}
	for i := range k.fields {
		if f := &k.fields[i]; f.Type != typeTable {
			props[f.Name] = object{"type": "array", "minItems": 1, "uniqueItems": true, "items": fieldSchema(f)}
		}
	}
	m := object{"type": "object", "minProperties": 1, "unevaluatedProperties": false, "properties": props,
		"description": "keys with lists of values: a task for every combination"}
	if find(k.fields, "set") != nil {
		m["$ref"] = "#/$defs/axes"
	}
	return m
}

// compiled is the schema for validators.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	v := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(Schema())))(t)
	c := jsonschema.NewCompiler()
	must.Do(t, c.AddResource("job", v))
	s := must.Get(c.Compile("job"))(t)
	return s
}

// TestOptions wants options.json to have each option that a kind names, and numbers of it to be bounded.
func TestOptions(t *testing.T) {
	for _, k := range kinds[:len(writtenKinds())] {
		for _, f := range k.fields {
			switch number := f.Type == typeInt || f.Type == typeFloat || f.Type == typeInts || f.Type == typeFloats; {
			case f.Help == "":
				t.Errorf("%s: the command has no option %s, or no text of it", k, f.Name)
			case number && f.Min >= f.Max:
				t.Errorf("%s: %s is from %v to %v", k, f.Name, f.Min, f.Max)
			}
		}
	}
}

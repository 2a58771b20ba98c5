package store

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"

	"vksplat/internal/fault"
)

// UsualRoots is the default file of roots, "" if there is none.
func UsualRoots() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	file := filepath.Join(dir, "vksplat", "roots.toml")
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return file
}

// ReadRootsFile reads a file of roots. A missing one is ErrSetup.
func ReadRootsFile(file string) (Roots, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, &fault.Error{Op: "read roots", Path: file, Err: fault.Pathless(err),
			Hint: "name a file with lines like: inputs = \"file:///srv/scans\"", Kind: ErrSetup}
	}
	return ReadRoots(file, data)
}

// ReadRoots reads a TOML file of roots: lines name = "file:///folder", or tables [name] of Options. A line outside of
// any table with the name of an option is a mistake.
func ReadRoots(file string, data []byte) (Roots, error) {
	var raw map[string]toml.Primitive
	md, err := toml.Decode(string(data), &raw)
	if err != nil {
		return nil, setupError(file, `as in: scans = "file:///srv/scans"`, "%w", err)
	}
	roots := Roots{}
	for name, value := range raw {
		if isOption(name) && md.Type(name) != "Hash" {
			return nil, setupError(file,
				"write it below the table's name, as below [outputs]; a root of this name is a table ["+name+
					"] with url", "%s belongs in the table of a root", name)
		}
		var o Options
		if md.PrimitiveDecode(value, &o.URL) != nil {
			o = Options{}
			if err := md.PrimitiveDecode(value, &o); err != nil {
				return nil, setupError(file, `as in: scans = "file:///srv/scans"`, "root %s: %w", name, err)
			}
		}
		roots[name] = o
	}
	if unknown := md.Undecoded(); len(unknown) > 0 {
		return nil, setupError(file, "a root has url; a folder umask, group and mark; a bucket endpoint, region, "+
			"path_style, ca, credentials and profile", "unknown key %s", unknown[0])
	}
	return roots, nil
}

// Apart refuses roots of results and inputs that overlap: a job could replace its inputs. It compares these settings.
func (r Roots) Apart(inputs, outputs string) error {
	in, knowsIn := r[inputs]
	out, knowsOut := r[outputs]
	if inputs != outputs && (!knowsIn || !knowsOut || !overlap(in, out)) {
		return nil
	}
	return setupError(outputs, "give results a folder, or a prefix of a bucket, of their own",
		"results would be among the inputs, of the root %s", inputs)
}

// overlap reports whether one root equals or contains the other.
func overlap(a, b Options) bool {
	if IsBucket(a.URL) || IsBucket(b.URL) {
		return a.Endpoint == b.Endpoint && isAtOrBelow(strings.TrimRight(a.URL, "/"),
			strings.TrimRight(b.URL, "/"), "/")
	}
	x, y := a.real(), b.real()
	return x != "" && y != "" && isAtOrBelow(x, y, string(filepath.Separator))
}

// isAtOrBelow reports whether one path equals or contains the other.
func isAtOrBelow(a, b, separator string) bool {
	return strings.HasPrefix(a+separator, strings.TrimSuffix(b, separator)+separator) ||
		strings.HasPrefix(b+separator, strings.TrimSuffix(a, separator)+separator)
}

// real is the folder of a root with links resolved, "" if unknown.
func (o Options) real() string {
	dir, err := o.Folder()
	if err != nil {
		return ""
	}
	if to, err := filepath.EvalSymlinks(dir); err == nil {
		dir = to
	}
	dir, _ = filepath.Abs(dir) // "" where it fails
	return dir
}

// isOption reports whether a key is one of Options.
func isOption(key string) bool {
	for field := range reflect.TypeFor[Options]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("toml"), ","); name == key {
			return true
		}
	}
	return false
}

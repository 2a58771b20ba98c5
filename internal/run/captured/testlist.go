package captured

import (
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
)

// WriteTestList writes the names of photos that are held out as --test-list reads them, each once.
func WriteTestList(path string, names []string) error {
	names = slices.Clone(names)
	slices.Sort(names)
	return atomicfile.WriteText(path, strings.Join(slices.Compact(names), "\n")+"\n")
}

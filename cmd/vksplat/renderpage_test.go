package main

import (
	"testing"

	"vksplat/internal/run/render"
)

// TestRenderPage wants the tables of docs/render.md to say what the program's own say.
func TestRenderPage(t *testing.T) {
	comparePage(t, "../../docs/render.md",
		map[string]string{"flags": flagTables(renderTable(render.NewOptions()), "### ")})
}

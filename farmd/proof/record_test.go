//go:build linux

package proof

import (
	"os"
	"path/filepath"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"vksplat/farm/pass"
)

// record writes the histories of workflows for the tests of package flows, where VKSPLAT_RECORD names their folder.
func (f *team) record(folder, name string, ids ...string) {
	f.t.Helper()
	dir := os.Getenv("VKSPLAT_RECORD")
	if dir == "" {
		return
	}
	p, err := pass.Load(folder)
	if err != nil {
		f.t.Fatal(err)
	}
	c := f.server.client(p)
	for _, id := range ids {
		h := &historypb.History{}
		for events := c.GetWorkflowHistory(f.t.Context(), id, "", false,
			enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
			e, err := events.Next()
			if err != nil {
				f.t.Fatal(err)
			}
			h.Events = append(h.Events, e)
		}
		data, err := protojson.Marshal(h)
		if err != nil {
			f.t.Fatal(err)
		}
		file := filepath.Join(dir, name+"-"+strings.ReplaceAll(strings.SplitN(id, "/", 2)[1], "/", "-")+".json")
		if err := os.WriteFile(file, data, 0o666); err != nil {
			f.t.Fatal(err)
		}
	}
}

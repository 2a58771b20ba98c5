package view

// deskFiles are what the page of vksplat open consists of, beside its index.html.
var deskFiles = []string{"desk.css", "desk.js", "parts.js", "jobs.js", "runs.js", "run.js", "compare.js", "scenes.js",
	"upload.js", "curves.js"}

// ShowDesk serves the page from which a person works: chooses a capture, trains, compares, exports. What the page asks
// for is answered by handlers of the caller.
func ShowDesk(s *Server) {
	s.Handle("", bytesHandler("index.html", mustAsset("desk/index.html")))
	for _, name := range deskFiles {
		folder := "desk/"
		if name == "curves.js" {
			folder = "live/"
		}
		s.Handle(name, bytesHandler(name, mustAsset(folder+name)))
	}
}

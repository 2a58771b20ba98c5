package archtest

// A layer says which packages of this module the packages at or below dir may import. The first layer whose dir matches
// decides. Tests may import whatever stands in the same top folder, too.
type layer struct {
	dir  string
	may  []string // "x" is the package x, "x/..." also those below, "x/*" those directly below
	why  string
	pure bool // no cgo, not even through an import of vk or shaders
}

var layers = []layer{
	{".", []string{"internal/*", "internal/run/...", "pipeline", "pipeline/checkpoint", "pipeline/recipe",
		"scene/..."},
		"the API is what commands do, for programs: it needs no command line, server or jobs", false},
	{"examples", nil, "programs of others know the API alone", true},
	{"cmd", []string{"cmd/...", "pipeline", "pipeline/bench", "pipeline/check", "pipeline/checkpoint", "pipeline/lpips",
		"pipeline/photos", "pipeline/recipe", "scene/...", "view/...", "farm/...", "internal/*", "internal/run/..."},
		"the command parses flags and prints; what it does is in internal/run", false},
	{"internal/run", []string{"internal/*", "internal/run/...", "pipeline", "pipeline/bench", "pipeline/checkpoint",
		"pipeline/lpips",
		"pipeline/photos", "pipeline/recipe", "scene/...", "view/...", "farm/child"},
		"what commands do, for callers that are no process: nothing below knows of it, and it knows no flags", false},

	{"pipeline/ref", []string{"pipeline/ref/...", "shaders/layout"},
		"the twins judge the GPU and must run without one", true},
	{"pipeline/recipe", []string{"internal/*", "scene", "shaders/layout"},
		"what a training does follows from its settings: no device, no photo and no splat is asked", true},
	{"pipeline/checkpoint", []string{"internal/*", "pipeline/failure", "pipeline/recipe", "scene", "scene/safetensors",
		"scene/splatfile", "shaders/layout", "vk"},
		"a checkpoint is a state on devices and a header: it is handed both, and trains nothing", false},
	{"pipeline/bench", []string{"internal/*", "scene/...", "shaders/layout", "vk"},
		"it times whoever trains, and trains nothing", false},
	{"pipeline/failure", []string{"internal/*", "vk"},
		"the parts of pipeline share kinds of failure, and nothing else by this way", false},
	{"pipeline/lpips", []string{"internal/*", "pipeline/failure", "pipeline/ref", "scene/...", "shaders",
		"shaders/layout", "vk"},
		"it compares pictures, whoever drew them, and is handed a device; its tests ask the twin in ref", false},
	{"pipeline/photos", []string{"internal/*", "pipeline/failure", "scene/...", "shaders/layout", "vk"},
		"photos in host memory know no device: pipeline takes them there", false},
	{"pipeline/team", []string{"shaders/layout", "vk"},
		"it carries packets between devices and knows no pass", false},
	{"pipeline", []string{"pipeline/...", "shaders", "shaders/layout", "vk", "scene/...", "internal/*"},
		"dependencies point one way: cmd -> pipeline -> shaders -> vk", false},

	{"scene/blocks", []string{"internal/*", "scene", "scene/colmap"}, "blocks are parts of a capture", true},
	{"scene/splatfile", []string{"internal/*", "scene", "scene/ply", "scene/photo", "scene/initial",
		"scene/safetensors", "shaders/layout"},
		"a model file is splats and what comments say; a SOG holds pictures", true},
	{"scene/load/loadtest", []string{"internal/*", "scene", "scene/colmap", "scene/load"},
		"tests that load captures use it", true},
	{"scene/load", []string{"internal/*", "scene", "scene/colmap", "scene/transforms", "scene/photo"},
		"it reads a capture from its files", true},
	{"scene/inspect", []string{"internal/*", "scene", "scene/photo", "scene/initial"},
		"it looks at a capture that is loaded", true},
	{"scene/trajectory", []string{"internal/*", "scene", "scene/colmap", "scene/transforms", "scene/inria"},
		"a path of cameras may come from any file of cameras", true},
	{"scene/synth", []string{"internal/*", "scene", "scene/colmap", "scene/photo"},
		"it draws captures and writes them as COLMAP would", true},
	{"scene/initial", []string{"internal/*", "scene", "scene/ply"}, "the first splats come from points", true},
	{"scene/metric", []string{"internal/*", "scene", "scene/photo", "scene/safetensors"},
		"it compares photos and pictures", true},
	{"scene/fingerprint", []string{"internal/*", "scene", "scene/photo"}, "it hashes the files of a capture", true},
	{"scene/picture", []string{"internal/*", "scene", "scene/photo"}, "what is drawn, as files", true},
	{"scene/transforms", []string{"internal/*", "scene", "scene/photo", "scene/ply"},
		"its files name photos and clouds", true},
	{"scene/photo", []string{"internal/*", "scene", "scene/jpeg"}, "photos are pixels seen through a lens", true},
	{"scene/safetensors", []string{"internal/*"}, "tensors have names and no meaning", true},
	{"scene/lenscases", nil, "scene's own tests use it", true},
	{"scene", []string{"internal/*", "scene"}, "the nouns, and subjects that need the nouns alone", true},

	{"internal/pixelpool", nil, "it recycles bytes", true},
	{"internal", []string{"internal/*"}, "foundations have one job each and know nothing of the program", true},

	{"view", []string{"scene/...", "internal/*", "view/..."},
		"a browser draws models, or gets pictures from whoever has a device: the server must run without one", true},

	{"farm/spec/spectest", []string{"farm/spec"}, "tests that read and plan jobs use it", true},
	{"farm/spec", []string{"internal/fault", "internal/wording"},
		"a job document means the same on every machine: reading and planning need nothing but the document", true},
	{"farm/store/s3test", nil, "the server of tests knows a protocol, not who speaks it", true},
	{"farm/store", []string{"internal/*"},
		"the store knows files and manifests, not what makes them", true},
	{"farm/child", nil, "it runs processes and knows nothing of what they do", true},
	{"farm/task", []string{"farm/child", "farm/spec", "farm/store", "internal/*", "scene/photo", "scene/results"},
		"a task runs a child of this program: it must do so without a device, and without a queue", true},
	{"farm/local", []string{"farm/child", "farm/spec", "farm/store", "farm/task", "internal/*"},
		"it decides which task runs when; the device is the child's, and all that lasts the store's", true},
	{"farm/page", []string{"farm/local", "farm/store", "farm/spec", "internal/*", "scene/photo", "view/..."},
		"a page shows what the store has, by the guard of package view, and changes nothing", true},
	{"farm/export", []string{"farm/spec", "farm/task", "internal/*"}, "an export is a text made from a job's tasks",
		true},

	{"shaders/layout", nil, "the shared structs are plain Go, so that the twins can use them", true},
	{"shaders", []string{"shaders/layout", "vk"}, "kernels know their bindings and nothing of who runs them", false},
	{"vk", []string{"internal/fault", "vk/..."}, "vk is Vulkan and knows nothing of splats", false},

	{"tools/synthcapture", []string{"scene", "scene/load", "scene/colmap", "scene/photo", "scene/synth", "internal/*"},
		"it enlarges the made-up scene of package synth", true},
	{"tools/kernelstat", []string{"shaders", "vk"}, "it compiles the committed kernels", false},
	{"tools", []string{"tools/..."}, "tools for developers stand beside the program", true},
}

package spec

// Every key of a document stands in one of the tables below, with its type and bounds. Parser and JSON Schema (job.schema.json) are both made from them.

// fieldType is the type of a value.
type fieldType int

const (
	typeInt   fieldType = iota
	typeFloat           // a whole number is one, too
	typeBool
	typeText     // by words or a pattern
	typeName     // of jobs and tasks, see nameForm
	typeWord     // of roots and pools, see wordForm
	typeSpan     // a time as in 10m
	typeInput    // a key below the root of inputs, or @id: the output of a task
	typeInputs   // a list of these
	typeKey      // a key below another
	typeTask     // a list of ids
	typeInts     // a list of whole numbers
	typeFloats   // a list of numbers
	typeFrames   // A, A-B or A-BxN
	typeCamera   // a trajectory's word, or a key
	typeSettings // a table of train's settings
	typeMatrix
	typeTable
	typeList // of tables
)

// field is a key.
type field struct {
	key      string
	kind     fieldType
	help     string
	required bool
	min, max float64 // of numbers, and of the elements of lists; both 0: any
	count    int     // of a list's elements, exactly; 0: 1 to most
	most     int     // of a list's elements at most
	words    []string
	fields   []field // of a table
	flag     string  // of the command that gets the value, "" where the planner uses it
}

// to says which flag gets the value.
func (f field) to(flag string) field { f.flag = flag; return f }

func (f field) need() field { f.required = true; return f }

func (f field) times(n int) field { f.count = n; return f }

func (f field) upTo(n int) field { f.most = n; return f }

func number(key string, kind fieldType, lo, hi float64, help string) field {
	return field{key: key, kind: kind, min: lo, max: hi, help: help}
}

func truth(key, help string) field { return field{key: key, kind: typeBool, help: help} }

func oneOf(key, help string, words ...string) field {
	return field{key: key, kind: typeText, words: words, help: help}
}

func plain(key string, kind fieldType, help string) field {
	return field{key: key, kind: kind, help: help}
}

func table(key, help string, fields []field) field {
	return field{key: key, kind: typeTable, fields: fields, help: help}
}

// Bounds of numbers.
const (
	maxFrame    = 999_999_999
	maxSide     = 65536 // pixels
	maxInspect  = 16    // frames of `first`
	maxEntries  = 1000  // of lists of names
	maxAttempts = 1000
	maxBlocks   = 4096
	maxText     = 200 // characters
)

var priorities = []string{"high", "normal", "low"}

var retryFields = []field{
	number("max_attempts", typeInt, 1, maxAttempts, "attempts until the task has failed"),
	plain("backoff", typeSpan, "pause before the second attempt; it doubles from then on"),
	plain("backoff_max", typeSpan, "longest pause"),
	truth("keep_going", "go on with other tasks when one has failed"),
}

var limitFields = []field{
	plain("lease", typeSpan, "of farms with a server: without effect"),
	plain("task_timeout", typeSpan, "longest attempt"),
	plain("stall_timeout", typeSpan, "longest time without progress"),
	plain("checkpoint_every", typeSpan, "longest time between uploads of checkpoints"),
	number("vram_min_mb", typeInt, 0, 1<<24, "memory that the device must have"),
	number("disk_min_gb", typeInt, 0, 1<<20, "room that the work folder must have"),
}

var pinFields = []field{
	{key: "device", kind: typeText, help: "name or UUID of the device"},
	{key: "driver", kind: typeText, help: "version of the driver"},
}

var storeFields = []field{
	plain("inputs", typeWord, "root that keys of inputs are below"),
	plain("outputs", typeWord, "root that results go to"),
}

// commonFields are those of every task, and jobFields of the document.
var commonFields = []field{
	{key: "kind", kind: typeText, words: writtenKinds(), required: true, help: "what the task does"},
	plain("id", typeName, "name of the task and of its folder"),
	{key: "needs", kind: typeTask, most: maxEntries, help: "tasks that must be done before, beside those that inputs name"},
	plain("matrix", typeMatrix, "keys with lists of values: a task for every combination"),
	plain("pool", typeWord, "machines that may run it, for schedulers"),
	oneOf("priority", "which tasks go first", priorities...),
	table("retry", "what happens after a failure", retryFields),
	table("limits", "what an attempt may take", limitFields),
	table("pin", "devices that may run it", pinFields),
}

var jobFields = []field{
	number("version", typeInt, Version, Version, "of the form of this document").need(),
	plain("name", typeName, "of the job and of its folder").need(),
	oneOf("priority", "which tasks go first", priorities...),
	plain("pool", typeWord, "machines that may run its tasks, for schedulers"),
	table("retry", "what happens after a failure", retryFields),
	table("limits", "what an attempt may take", limitFields),
	table("pin", "devices that may run its tasks", pinFields),
	table("store", "roots of keys", storeFields),
	{key: "task", kind: typeList, most: maxWritten, required: true, help: "the tasks"},
}

// writtenKinds are the kinds that documents can name.
func writtenKinds() (words []string) {
	for _, k := range kinds {
		words = append(words, string(k.kind))
	}
	return words
}

// kindFields is a kind with its own keys.
type kindFields struct {
	kind   Kind
	help   string
	fields []field
}

var (
	imagesField = plain("images", typeKey, "folder of the photos, below the capture").to("images")
	masksField  = plain("masks", typeKey, "folder of masks, below the capture").to("masks")
)

// captureFields say how a capture is read, for commands that do not get train's settings.
var captureFields = []field{
	oneOf("downscale", "size of the photos", "auto", "1", "2", "4", "8").to("downscale"),
	imagesField,
	masksField,
	truth("strict", "a photo that is missing is an error").to("strict"),
}

func sizeField(help string) field {
	return number("size", typeInts, 1, maxSide, help).times(2).to("size")
}

var kinds = []kindFields{
	{KindDemo, "make a made-up capture", []field{
		number("images", typeInt, 3, 10000, "photos").to("images"),
		number("size", typeInts, 16, 8192, "width and height of the photos").times(2).to("size"),
		number("points", typeInt, 4, 10_000_000, "points of the sparse cloud").to("points"),
		number("seed", typeInt, 0, 1<<53, "which capture").to("seed"),
		truth("city", "a city that is flown over, in place of things on a table").to("city"),
	}},
	{KindTrain, "train a model from photographs", []field{
		plain("source", typeInput, "the capture").need(),
		imagesField,
		masksField,
		oneOf("preset", "settings to start from", presetWords()...).to("preset"),
		plain("set", typeSettings, "settings, as in train's configuration file"),
	}},
	{KindPartition, "train a large capture in blocks", append([]field{
		plain("source", typeInput, "the capture").need(),
		number("blocks", typeInts, 1, maxBlocks, "columns along the longer side, and blocks of each").times(2).need(),
		number("overlap", typeFloat, 0, 1, "how far blocks reach over their edges").to("overlap"),
		number("up", typeFloats, -1e9, 1e9, "direction up").times(3).to("up"),
		truth("eval", "hold photos out to measure on").to("eval"),
		number("test_every", typeInt, 2, 1e6, "hold every Nth photo out").to("test-every"),
		oneOf("preset", "settings of the blocks to start from", presetWords()...),
		plain("set", typeSettings, "settings of the blocks"),
		number("finetune", typeInt, 1, 10_000_000, "steps of the merged scene on all photos"),
	}, captureFields...)},
	{KindRender, "render pictures of a model", []field{
		plain("model", typeInput, "the model").need(),
		plain("cameras", typeInput, "capture or cameras.json to take the views of"),
		oneOf("split", "only the views of one split", "train", "test").to("split"),
		plain("trajectory", typeCamera, "interp, ellipse, spiral, orbit, or the key of a file of cameras"),
		plain("frames", typeFrames, "pictures A-B, or every Nth: A-BxN, counted from 0"),
		number("chunk", typeInt, 1, 1e6, "pictures of a task"),
		number("first", typeInts, 0, maxFrame, "frames that are drawn before the others, to be looked at").upTo(maxInspect),
		number("seconds", typeFloat, 0.001, 1e6, "length of a trajectory").to("seconds"),
		number("fps", typeFloat, 0.001, 1000, "pictures a second of a trajectory").to("fps"),
		sizeField("width and height of the pictures"),
		number("fov", typeFloat, 1, 170, "vertical field of view in degrees").to("fov"),
		oneOf("projection", "of the pictures", "perspective", "equirect").to("projection"),
		oneOf("format", "of the pictures", "png", "png16", "jpg", "exr", "npy").to("format"),
		oneOf("colorspace", "of the pictures", "auto", "srgb", "linear").to("colorspace"),
		truth("alpha", "write coverage, without a background").to("alpha"),
		truth("depth", "write depth as well").to("depth"),
		truth("antialiased", "compensate opacity for the pixel filter").to("antialiased"),
		number("background", typeFloats, 0, 1, "colour behind the splats").times(3).to("background"),
		number("near", typeFloat, 1e-6, 1e6, "near plane; the median camera distance is 1").to("near"),
	}},
	{KindEncode, "make a video of pictures", []field{
		plain("source", typeInput, "the render task, or a folder of pictures").need(),
		number("fps", typeFloat, 0.001, 1000, "pictures a second").to("fps"),
		number("crf", typeInt, 0, 51, "quality, 0 is best").to("crf"),
		oneOf("format", "of the video", "mp4", "mov", "mkv", "webm"),
	}},
	{KindEval, "measure models on held-out photos", append([]field{
		{key: "models", kind: typeInputs, most: maxEntries, required: true, help: "the models, as tasks or keys"},
		plain("source", typeInput, "the capture; of trained models it is known"),
		oneOf("split", "photos that are compared", "test", "train").to("split"),
		oneOf("protocol", "of the scores", "gsplat", "inria").to("protocol"),
		oneOf("color_correct", "colour map of the cc_ scores", "affine", "quadratic", "none").to("color-correct"),
		number("test_every", typeInt, 2, 1e6, "every Nth photo is held out").to("test-every"),
	}, captureFields...)},
	{KindConvert, "convert a model to another format", []field{
		plain("model", typeInput, "the model").need(),
		oneOf("to", "format", "ply", "compressed-ply", "splat", "spz", "glb", "sog").need().to("to"),
		number("sh_degree", typeInt, 0, 3, "drop spherical harmonics above this degree").to("sh-degree"),
		number("max_splats", typeInt, 1, 1e10, "keep the most important").to("max-splats"),
		number("min_opacity", typeFloat, 0, 1, "drop splats below this opacity").to("min-opacity"),
		number("crop", typeFloats, -1e12, 1e12, "keep splats in the box: three minima, three maxima").times(6).to("crop"),
		number("sphere", typeFloats, -1e12, 1e12, "keep splats in the sphere: its middle and radius").times(4).to("sphere"),
	}},
}

// kindOf returns a written kind's table, nil where there is none.
func kindOf(word string) *kindFields {
	for i := range kinds {
		if string(kinds[i].kind) == word {
			return &kinds[i]
		}
	}
	return nil
}

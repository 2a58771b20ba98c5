package spec

// KindDemo makes the made-up capture of vksplat demo.
var KindDemo = &Kind{
	Name:  "demo",
	About: "make a synthetic capture",
	fields: []field{
		number("images", typeInt, 3, 10000, "photos").to("images"),
		number("size", typeInts, 16, 8192, "width and height of the photos").times(2).to("size"),
		number("points", typeInt, 4, 10_000_000, "points of the sparse cloud").to("points"),
		number("seed", typeInt, 0, 1<<53, "which capture").to("seed"),
		truth("city", "a city from the air instead of objects on a table").to("city"),
	},
	Makes:   "a capture",
	Command: "demo",
	Args: func(c *Call) []string {
		return append([]string{"--capture-only", "--model-path=" + c.Output}, c.Flags()...)
	},
}

package spec

// KindDemo makes the made-up capture of vksplat demo.
var KindDemo = &Kind{
	Name:    "demo",
	About:   "make a synthetic capture",
	fields:  keys("demo", "images", "size", "points", "seed", "city"),
	Makes:   "a capture",
	Command: "demo",
	Args: func(c *Call) []string {
		return append([]string{"--capture-only", "--model-path=" + c.Output}, c.Flags()...)
	},
}

package vk

// loaderNames are MoltenVK, which translates Vulkan to Metal, and then the loader, by the names that Homebrew gives
// them. MoltenVK comes first: the loader hides it from programs that do not ask for incomplete drivers.
var loaderNames = []string{"libMoltenVK.dylib", "/opt/homebrew/lib/libMoltenVK.dylib",
	"/usr/local/lib/libMoltenVK.dylib", "libvulkan.1.dylib"}

const (
	loaderHint = "install MoltenVK, which runs Vulkan on Metal: brew install molten-vk"
	driverHint = loaderHint
)

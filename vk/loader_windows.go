package vk

// loaderNames are the names of the Vulkan loader, which the GPU's driver installs.
var loaderNames = []string{"vulkan-1.dll"}

const (
	loaderHint = "install the driver of the GPU's maker, which brings vulkan-1.dll: from AMD, Intel or NVIDIA, not " +
		"the one that came with Windows"
	driverHint = loaderHint
)

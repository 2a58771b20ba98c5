//go:build !windows && !darwin

package vk

// loaderNames are the names of the Vulkan loader, as dlopen finds it.
var loaderNames = []string{"libvulkan.so.1", "libvulkan.so"}

const (
	loaderHint = "install the Vulkan loader: apt-get install libvulkan1 (Debian, Ubuntu), dnf install vulkan-loader " +
		"(Fedora), pacman -S vulkan-icd-loader (Arch)"
	driverHint = "install the GPU's Vulkan driver: apt-get install mesa-vulkan-drivers (AMD, Intel, and software " +
		"rendering on the CPU), or NVIDIA's own driver with its Vulkan " +
		"part (libnvidia-gl); in a container, pass the GPU in with graphics capability (NVIDIA_DRIVER_CAPABILITIES=all, --device /dev/dri)"
)

package vk

import (
	"errors"
	"fmt"

	"vksplat/internal/fault"
)

// The kinds of failure that a caller may want to tell apart, for errors.Is.
var (
	// ErrOutOfMemory is wrapped by errors that say that a budget or the device has no room.
	ErrOutOfMemory = fault.Sentinel(fault.ErrMachine, "out of device memory",
		"raise the memory limit, stop other programs that use the GPU, or train fewer splats")
	// ErrDeviceLost says that the driver gave the device up: a hang, a reset, a removal. Everything on the device is
	// gone; a new Device is needed.
	ErrDeviceLost = fault.Sentinel(fault.ErrDeviceLost, "device lost",
		"the driver reset the GPU:  see the kernel log (dmesg), try a newer driver, "+
			"or stop other programs that use the GPU")
	// ErrNoLoader says that the machine has no Vulkan loader, or one that is too old.
	ErrNoLoader = fault.Sentinel(fault.ErrMachine, "no usable Vulkan loader", "")
	// ErrNoDevice says that no driver offers the device asked for.
	ErrNoDevice = fault.Sentinel(fault.ErrMachine, "no Vulkan device", "")
	// errMissingFeature says that a device lacks something that every device must have here; the error names it.
	errMissingFeature = fault.Sentinel(fault.ErrMachine, "missing device feature", "")
	// errNoValidation says that the validation layer was asked for and is not installed.
	errNoValidation = errors.New("no validation layer")
	// errBadLimits says that the file of lower limits is absent or makes no sense.
	errBadLimits = fault.Sentinel(fault.ErrUsage, "bad file of device limits", "")
)

// Result is a VkResult. Negative values are failures.
type Result int32

// The results that this package looks at.
const (
	success          Result = 0
	notReady         Result = 1
	timeout          Result = 2
	outOfHostMemory  Result = -1
	outOfDevMemory   Result = -2
	initFailed       Result = -3
	deviceLost       Result = -4
	layerNotPresent  Result = -6
	badDriver        Result = -9
	tooManyObjects   Result = -10
	outOfPoolMemory  Result = -1000069000
	fragmentedPool   Result = -12
	extensionMissing Result = -7
	featureMissing   Result = -8
	unknownFailure   Result = -13
	mapFailed        Result = -5
	incomplete       Result = 5
)

var resultNames = map[Result]string{
	success: "VK_SUCCESS", notReady: "VK_NOT_READY", timeout: "VK_TIMEOUT", incomplete: "VK_INCOMPLETE",
	outOfHostMemory: "VK_ERROR_OUT_OF_HOST_MEMORY", outOfDevMemory: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
	initFailed: "VK_ERROR_INITIALIZATION_FAILED",
	deviceLost: "VK_ERROR_DEVICE_LOST", mapFailed: "VK_ERROR_MEMORY_MAP_FAILED",
	layerNotPresent:  "VK_ERROR_LAYER_NOT_PRESENT",
	extensionMissing: "VK_ERROR_EXTENSION_NOT_PRESENT", featureMissing: "VK_ERROR_FEATURE_NOT_PRESENT",
	badDriver:      "VK_ERROR_INCOMPATIBLE_DRIVER",
	tooManyObjects: "VK_ERROR_TOO_MANY_OBJECTS", fragmentedPool: "VK_ERROR_FRAGMENTED_POOL",
	unknownFailure:  "VK_ERROR_UNKNOWN",
	outOfPoolMemory: "VK_ERROR_OUT_OF_POOL_MEMORY",
}

// String returns Vulkan's own name of r.
func (r Result) String() string {
	if s, ok := resultNames[r]; ok {
		return s
	}
	return fmt.Sprintf("VkResult %d", int32(r))
}

// callError is a failure of one Vulkan call, or of what this package decided before the call.
type callError struct {
	Call   string // the Vulkan function or the operation, as in "vkCreateDevice"
	Object string // what it was about: a device, a buffer, a kernel
	Result Result // what Vulkan answered; 0 where Err tells the cause
	Err    error  // cause, or nil
}

// Error words e as "call object: cause".
func (e *callError) Error() string {
	s := e.Call
	if e.Object != "" {
		s += " " + e.Object
	}
	if e.Result != success {
		s += ": " + e.Result.String()
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause and the kind of failure that the result stands for.
func (e *callError) Unwrap() []error {
	var list []error
	for _, err := range []error{e.Err, e.Result.kind()} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// kind returns the kind of failure that r stands for, or nil.
func (r Result) kind() error {
	switch r {
	case deviceLost:
		return ErrDeviceLost
	case outOfHostMemory, outOfDevMemory, tooManyObjects, outOfPoolMemory, fragmentedPool:
		return ErrOutOfMemory
	case badDriver:
		return ErrNoDevice
	}
	return nil
}

// RefusedByDriver reports whether err comes from a driver that has no memory left, and not from a budget.
func RefusedByDriver(err error) bool {
	var e *callError
	return errors.As(err, &e) && (e.Result == outOfDevMemory || e.Result == outOfHostMemory)
}

// failed returns nil for a result that is no failure, else the error for it.
func failed(call, object string, r Result) error {
	if r >= 0 {
		return nil
	}
	return &callError{Call: call, Object: object, Result: r}
}

// invalid returns the error of an operation that was refused before Vulkan saw it.
func invalid(call, object, format string, args ...any) error {
	return &callError{Call: call, Object: object, Err: fmt.Errorf(format, args...)}
}

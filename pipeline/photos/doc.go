// Package photos keeps the training photos in host memory. A Cache decodes ahead along the known order of views, under
// a ceiling of bytes, evicts by next use and spills to disk where asked. A Layout says how a photo lies on the device,
// and Stage writes it so. Shared hands one Source to several devices.
//
// No pixel depends on what is cached. Package pipeline keeps the device's own cache (devicephotos.go).
package photos

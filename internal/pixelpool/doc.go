// Package pixelpool recycles the memory of decoded photos. Garbage of this size would pass a memory ceiling before the
// collector runs.
package pixelpool

// Package fingerprint hashes a capture, so that a resumed run can tell whether its photos or poses have changed. Photos
// are hashed in the background while training runs.
package fingerprint

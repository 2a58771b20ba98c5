// Package scenetest has the small cameras, points, photos and splats that tests of several packages share.
package scenetest

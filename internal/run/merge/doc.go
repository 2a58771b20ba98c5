// Package merge joins the trained blocks of a plan into one scene, checks its seams against the photos, and trains
// blocks one after the other, each in a process of its own.
package merge

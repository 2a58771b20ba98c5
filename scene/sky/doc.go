// Package sky finds where a capture shows the sky, or what is so far away that it looks the same from every camera, and
// gives points of a far shell there, for training to begin with.
package sky

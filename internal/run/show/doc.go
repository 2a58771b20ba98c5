// Package show serves a finished model to the browser: as a file that the browser draws, or, if it is too large for
// one, as pictures that this machine draws.
package show

// Package demo makes a small capture, trains it and checks the quality: a test of the whole program without any data.
package demo

// Package info says what a file or a folder holds, whatever its name is: Describe returns it for programs and as lines
// for people.
package info

// Package cli is the console of the program: a Console prints results, warnings and notes, ends an open progress line
// before other text, and turns signals into a context. Beside it stand the texts that every command words the same way:
// counts, durations, words for a shell, the version.
package cli

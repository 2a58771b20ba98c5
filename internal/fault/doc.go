// Package fault is the program's one kind of error: what was being done, to which file, why it failed, what the user
// can do about it, and which class of failure it is. The command maps the class to an exit code and prints the hint
// below the message. Start with Error.
package fault

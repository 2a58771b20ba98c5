package main

// overwriteOption lets a command replace the file that it writes.
func overwriteOption(p *bool, what string) option {
	return truth(p, "overwrite", "replace "+what)
}

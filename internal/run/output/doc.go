// Package output knows what a run leaves in its folder OUT, and what may be replaced there. Claim locks a folder;
// WrittenFile marks a folder as this program's and lists the files that it wrote, so that no other file is replaced; an
// earlier run stays until the new one has a checkpoint: see NextFolder.
package output

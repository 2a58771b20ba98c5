// Package output knows what a run leaves in its folder OUT, and what may be replaced there. Claim locks a folder;
// Written lists the files that the program wrote, so that nobody else's are overwritten; an earlier run stays aside
// until the new one has a checkpoint.
package output

// Package plans reads, checks and writes the plan of a capture that is trained in blocks, and loads what one block
// sees.
package plans

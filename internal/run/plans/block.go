package plans

import (
	"strconv"

	"vksplat/internal/fault"
)

// NoBlock as BlockFlag means all blocks.
const NoBlock BlockFlag = -1

// BlockFlag is the number of a block, or NoBlock.
type BlockFlag int

func (f *BlockFlag) Type() string { return "K" }

func (f *BlockFlag) String() string {
	if *f == NoBlock {
		return ""
	}
	return strconv.Itoa(int(*f))
}

// Set parses a number from 0 up.
func (f *BlockFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return fault.Usagef("blocks count from 0", "%q is not a block number", s)
	}
	*f = BlockFlag(n)
	return nil
}

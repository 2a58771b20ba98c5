package plans

import "vksplat/internal/cli"

// NoBlock as BlockFlag means all blocks.
const NoBlock BlockFlag = -1

// BlockFlag is the number of a block, or NoBlock.
type BlockFlag int

func (f *BlockFlag) Type() string { return "K" }

func (f *BlockFlag) String() string { return cli.CountText(*f) }

// Set parses a number from 0 up.
func (f *BlockFlag) Set(s string) error {
	return cli.SetCount(f, s, "blocks count from 0", "%q is not a block number")
}

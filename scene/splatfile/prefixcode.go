package splatfile

import (
	"cmp"
	"math/bits"
	"slices"
)

// prefixCode is a canonical Huffman code as lossless WebP has them. Prefixes have their bits in the order in which they
// are written.
type prefixCode struct {
	length []uint8
	prefix []uint16
	used   []int // the symbols that occur
}

// newPrefixCode makes a code for symbols that occur so often, with no prefix longer than limit. A symbol alone has a
// prefix of no bits.
func newPrefixCode(counts []uint64, limit int) prefixCode {
	c := prefixCode{length: make([]uint8, len(counts)), prefix: make([]uint16, len(counts))}
	for symbol, n := range counts {
		if n > 0 {
			c.used = append(c.used, symbol)
		}
	}
	if len(c.used) < 2 {
		return c
	}
	huffmanLengths(c.length, c.used, counts, limit)
	var number, next [maxPrefix + 2]uint16
	for _, symbol := range c.used {
		number[c.length[symbol]]++
	}
	for length := 1; length < len(next); length++ {
		next[length] = (next[length-1] + number[length-1]) << 1
	}
	for _, symbol := range c.used {
		length := c.length[symbol]
		c.prefix[symbol] = bits.Reverse16(next[length]) >> (16 - length)
		next[length]++
	}
	return c
}

// huffmanLengths finds the lengths of the prefixes of two symbols or more. Until none exceeds the limit, counts are
// brought nearer to each other.
func huffmanLengths(to []uint8, used []int, counts []uint64, limit int) {
	order := slices.Clone(used)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[a], counts[b]) })
	weight := make([]uint64, 2*len(order)-1)
	for i, symbol := range order {
		weight[i] = counts[symbol]
	}
	for {
		if longest := huffmanTree(weight, len(order),
			func(i, depth int) { to[order[i]] = uint8(depth) }); longest <= limit {
			return
		}
		for i := range order {
			weight[i] = weight[i]/2 + 1
		}
	}
}

// huffmanTree builds the tree of n ascending weights, with room for the inner nodes behind them, tells the depth of
// each, and returns the largest. Leaves and inner nodes are two queues in ascending order: the two lightest are at
// their fronts.
func huffmanTree(weight []uint64, n int, depthOf func(i, depth int)) (longest int) {
	parent := make([]int, len(weight))
	leaf, inner := 0, n
	for node := n; node < len(weight); node++ {
		sum := uint64(0)
		for range 2 {
			lightest := inner
			if leaf < n && (inner == node || weight[leaf] <= weight[inner]) {
				lightest = leaf
				leaf++
			} else {
				inner++
			}
			parent[lightest] = node
			sum += weight[lightest]
		}
		weight[node] = sum
	}
	depth := make([]int, len(weight))
	for i := len(weight) - 2; i >= 0; i-- {
		depth[i] = depth[parent[i]] + 1
		if i < n {
			depthOf(i, depth[i])
			longest = max(longest, depth[i])
		}
	}
	return longest
}

// lengthOrder is the order in which the lengths of the prefixes of lengths are written (RFC 9649, section 3.7.2.1.2).
var lengthOrder = [19]int{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// write writes what the reader needs to make the code: the only symbol, or the lengths of all prefixes, coded
// themselves. Two kinds of symbols stand for runs of zeros: 17 for 3 to 10, 18 for 11 to 138.
func (c *prefixCode) write(w *bitWriter) {
	if len(c.used) < 2 {
		symbol := uint64(0)
		if len(c.used) == 1 {
			symbol = uint64(c.used[0])
		}
		w.bits(1, 1) // a simple code
		w.bits(0, 1) // of one symbol
		w.bits(1, 1) // in 8 bits
		w.bits(symbol, 8)
		return
	}
	w.bits(0, 1)
	runs := zeroRuns(c.length)
	counts := make([]uint64, len(lengthOrder))
	for _, r := range runs {
		counts[r.symbol]++
	}
	lengths := newPrefixCode(counts, 7)
	if len(lengths.used) == 1 {
		// it must be told from those that do not occur, and takes no bits all the same
		lengths.length[lengths.used[0]] = 1
	}
	w.bits(uint64(len(lengthOrder)-4), 4)
	for _, symbol := range lengthOrder {
		w.bits(uint64(lengths.length[symbol]), 3)
	}
	w.bits(0, 1) // the lengths of the whole alphabet follow
	for _, r := range runs {
		if len(lengths.used) > 1 {
			w.bits(uint64(lengths.prefix[r.symbol]), uint(lengths.length[r.symbol]))
		}
		w.bits(uint64(r.extra), r.bits)
	}
}

// lengthRun is a length or a run of zeros, with a number of so many bits behind it.
type lengthRun struct {
	symbol uint8
	extra  int
	bits   uint
}

func zeroRuns(lengths []uint8) (out []lengthRun) {
	for i := 0; i < len(lengths); {
		n := 0
		for i+n < len(lengths) && lengths[i+n] == 0 && n < 138 {
			n++
		}
		switch {
		case n >= 11:
			out = append(out, lengthRun{18, n - 11, 7})
		case n >= 3:
			out = append(out, lengthRun{17, n - 3, 3})
		default:
			n = 1
			out = append(out, lengthRun{symbol: lengths[i]})
		}
		i += n
	}
	return out
}

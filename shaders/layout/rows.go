package layout

// Rows says what is where in a chunk, a matrix of 32-bit words [rows][splats]: parameters, moments, statistics.
type Rows struct {
	Degree  int
	Mixed   bool
	NParams int // parameters P = RowSh + 3 (degree+1)^2 of a splat
	Stored  int // rows that hold them
	First   int // first row of first moments
	Second  int // of second moments; the same where both lie in one word
	Stats   int // first row of statistics
}

// RowsOf returns the rows of a model of an SH degree, in full or mixed precision. In mixed precision spherical
// harmonics are halves, two to a word, and both moments of a parameter share a word.
func RowsOf(degree int, mixed bool) Rows {
	sh := 3 * (degree + 1) * (degree + 1)
	p := RowSh + sh
	if mixed {
		moments := RowSh + (sh+1)/2
		return Rows{Degree: degree, Mixed: true, NParams: p, Stored: moments, First: moments, Second: moments,
			Stats: moments + p}
	}
	return Rows{Degree: degree, NParams: p, Stored: p, First: p, Second: 2 * p, Stats: 3 * p}
}

// NRows returns how many rows there are.
func (c Rows) NRows() int { return c.Stats + StatRows }

// SplatBytes returns what a splat takes in chunks.
func (c Rows) SplatBytes() int64 { return 4 * int64(c.NRows()) }

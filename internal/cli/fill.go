package cli

import (
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// columnsOf returns how wide text on w may be: where there is no terminal, as wide as it likes.
func columnsOf(w io.Writer) int {
	if f, isFile := FileOf(w); isFile && term.IsTerminal(int(f.Fd())) {
		return max(TerminalWidth(f), PlainWidth/2)
	}
	return math.MaxInt
}

// indent begins the lines of a text below its first.
const indent = "  "

// fill breaks the lines of a text that are longer than width, at words. A command to be copied, which stands behind a
// colon, is not broken: the terminal does that, and gives it back in one piece.
func fill(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		column := 0
		for i, word := range pieces(strings.TrimSuffix(line, "\n")) {
			n := utf8.RuneCountInString(word)
			switch {
			case i > 0 && column+1+n > width:
				b.WriteString("\n" + indent)
				column = len(indent)
			case i > 0:
				b.WriteString(" ")
				column++
			}
			b.WriteString(word)
			column += n
		}
		if strings.HasSuffix(line, "\n") {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// fewestColumns are left to the last cell of a table's row that is broken.
const fewestColumns = 20

// fillTable breaks the rows of a table that are longer than width in their last cell, at words: what stands in front,
// up to the last two blanks, keeps its columns. Where hardly any are left to the cell, the whole row is a text.
func fillTable(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		column := 0
		if at := strings.LastIndex(strings.TrimRight(line, " \n"), "  "); at >= 0 {
			column = utf8.RuneCountInString(line[:at+2])
		}
		if column == 0 || utf8.RuneCountInString(line) <= width || width-column < fewestColumns {
			b.WriteString(fill(line, width))
			continue
		}
		head, cell := string([]rune(line)[:column]), string([]rune(line)[column:])
		cell = fill(indent+cell, width-column+len(indent)) // as wide in its first line as below
		b.WriteString(head + strings.ReplaceAll(cell[len(indent):], "\n"+indent, "\n"+strings.Repeat(" ", column)))
	}
	return b.String()
}

func pieces(line string) (list []string) {
	command := false
	for word := range strings.SplitSeq(line, " ") {
		n := len(list)
		if command {
			list[n-1] += " " + word
		} else {
			command = word == "vksplat" && n > 0 && strings.HasSuffix(list[n-1], ":")
			list = append(list, word)
		}
		command = command && !strings.HasSuffix(word, ";") && !strings.HasSuffix(word, ")")
	}
	return list
}

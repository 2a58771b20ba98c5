package train

import (
	"slices"

	"vksplat/internal/cli"
)

// notes are notices that wait for the first line of the run.
type notes struct {
	console *cli.Console
	list    []cli.Notice
}

// later has something said below the first line.
func (n *notes) later(x cli.Notice) { n.list = append(n.list, x) }

func (n *notes) warnLater(text string)   { n.later(cli.Notice{Kind: cli.KindWarning, Text: text}) }
func (n *notes) noteLater(text string)   { n.later(cli.Notice{Kind: cli.KindNote, Text: text}) }
func (n *notes) detailLater(text string) { n.later(cli.Notice{Kind: cli.KindDetail, Text: text}) }

// apply has those of the notices said later that apply.
func (n *notes) apply(rules []notice) {
	for _, r := range rules {
		if r.when {
			n.later(r.Notice)
		}
	}
}

// FlushNotes prints what waits, each line once.
func (n *notes) FlushNotes() {
	for i, x := range n.list {
		if !slices.Contains(n.list[:i], x) {
			n.console.Tell(x)
		}
	}
	n.list = nil
}

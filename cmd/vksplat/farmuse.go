package main

import (
	"fmt"
	"strings"
	"time"

	"vksplat/farm/page"
	"vksplat/farm/queue"
)

// devicesText words the devices of a node and what they do, as far as that is known.
func devicesText(n *queue.NodeStatus) string {
	if len(n.Use) == 0 {
		return strings.Join(n.Devices, ", ")
	}
	var words []string
	for i := range n.Use {
		u := &n.Use[i]
		text := fmt.Sprintf("%s (%s)", u.Name, u.Device)
		if u.Busy != nil {
			text += fmt.Sprintf(" %.0f %% busy", 100**u.Busy)
		}
		if u.Bytes > 0 {
			text += fmt.Sprintf(" %s of %s", bytesText(u.Bytes), bytesText(u.Budget))
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

// paceText says how fast a running task is and how long it goes on, as far as that is known.
func paceText(t *queue.TaskStatus) (text string) {
	if t.State != queue.Running {
		return ""
	}
	if rate := page.RateText(t.Entry.Rate, t.Entry.Unit); rate != "" {
		text = ", " + rate
	}
	if t.Left > 0 {
		text += ", " + durationText(time.Duration(t.Left).Seconds()) + " left"
	}
	return text
}

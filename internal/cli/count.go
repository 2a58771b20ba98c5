package cli

import (
	"strconv"

	"vksplat/internal/fault"
)

// CountText words the value of a flag that is a number from 0 up, "" where none is given.
func CountText[T ~int](n T) string {
	if n < 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// SetCount parses such a number. Format is of the error about another text.
func SetCount[T ~int](n *T, text, hint, format string) error {
	x, err := strconv.Atoi(text)
	if err != nil || x < 0 {
		return fault.Usagef(hint, format, text)
	}
	*n = T(x)
	return nil
}

// Package textfmt formats numbers, times, line ranges and long texts briefly
// for answers.
package textfmt

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Count formats a number of things, whose name is given in the singular: "1
// file", "2 files", "3 directories", "4 matches",
// "5 processes".
func Count[N int | int64](n N, what string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(what, "y"):
		what = what[:len(what)-1] + "ies"
	case strings.HasSuffix(what, "ch"), strings.HasSuffix(what, "ss"):
		what += "es"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Lines formats a range of line numbers: "line 3", "lines 3-5".
func Lines(first, last int) string {
	if first >= last {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d-%d", first, last)
}

// Thousands formats a number in few characters: 999, 2.1k, 41k, 1.2M.
func Thousands(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 9950:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	case n < 999_500:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// ShortDuration formats a duration in few characters: 0.4s, 48s, 3m20s.
func ShortDuration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Head returns the first maxBytes bytes of a text, or up to 3 fewer to avoid
// splitting a character.
func Head(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	for maxBytes > 0 && !utf8.RuneStart(text[maxBytes]) {
		maxBytes--
	}
	return text[:maxBytes]
}

// Tail returns the last maxBytes bytes of a text, or up to 3 fewer to avoid
// splitting a character.
func Tail(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	from := len(text) - maxBytes
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

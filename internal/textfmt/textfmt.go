// Package textfmt formats numbers, times, line ranges and long texts briefly for answers.
package textfmt

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Count is a number of things, named as one of them is: "1 file", "2 files",
// "3 directories", "4 matches".
func Count[N int | int64](n N, what string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(what, "y"):
		what = what[:len(what)-1] + "ies"
	case strings.HasSuffix(what, "ch"):
		what += "es"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Lines names the lines first to last: "line 3", "lines 3-5".
func Lines(first, last int) string {
	if first >= last {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d-%d", first, last)
}

// Thousands is a number in few characters: 999, 2.1k, 41k, 1.2M.
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

// Lasted is a time in few characters: 0.4s, 48s, 3m20s.
func Lasted(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Head is the beginning of a text: n bytes, or fewer so as not to cut a character.
func Head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Tail is the end of a text: n bytes, or fewer so as not to cut a character.
func Tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	from := len(text) - n
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

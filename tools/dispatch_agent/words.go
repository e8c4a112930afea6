package main

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

func shortCost(cost float64) string { return strconv.FormatFloat(cost, 'g', 3, 64) }

// visible returns text from other processes as a single line with control
// characters escaped.
func visible(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text)
	return pathname.Escape(text)
}

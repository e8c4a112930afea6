package schemacheck

import (
	"encoding/json"
	"strings"
)

// maxDigits bounds the digits of a number. The library compares exact values,
// and 1e999999 has a million digits.
const maxDigits = 64

// hasShortNumbers reports whether all numbers in a decoded JSON value have at
// most maxDigits digits and an exponent of at most 3 digits.
func hasShortNumbers(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if !hasShortNumbers(member) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !hasShortNumbers(item) {
				return false
			}
		}
	case json.Number:
		digits, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		return len(digits) <= maxDigits && len(strings.TrimLeft(exponent, "+-0")) <= 3
	}
	return true
}

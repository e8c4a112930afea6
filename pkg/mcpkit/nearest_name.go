package mcpkit

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/editdistance"
)

// nearestName returns the known name that a mistyped name most likely means, or
// "". Names are near if they differ only in case or separators (oldString,
// old_string), in one letter from four letters on, or in two from seven letters
// on.
func nearestName(name string, known []string) string {
	if len(name) > 128 {
		return ""
	}
	plain := normalizeName(name)
	best, bestDistance := "", 3
	for _, candidate := range known {
		if candidate == name {
			return candidate
		}
		other := normalizeName(candidate)
		distance := 0
		if plain != other || plain == "" {
			longest := max(len(plain), len(other))
			allowed := 2
			switch {
			case longest <= 3:
				continue
			case longest <= 6:
				allowed = 1
			}
			if distance = editdistance.Between(plain, other, allowed); distance > allowed {
				continue
			}
		}
		if distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// nameSeparators removes the characters that normalizeName ignores.
var nameSeparators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

// normalizeName returns name in lower case without _, -, . and spaces.
func normalizeName(name string) string { return strings.ToLower(nameSeparators.Replace(name)) }

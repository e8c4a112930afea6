package mcpkit

import "strings"

// nearest returns the known name that a mistyped name most likely means, or "".
// Names are near if they differ only in case or separators (oldString,
// old_string), in one letter, or, for long names, in two.
func nearest(name string, known []string) string {
	if len(name) > 128 {
		return ""
	}
	plain := plainName(name)
	best, bestDistance := "", 3
	for _, candidate := range known {
		if candidate == name {
			return candidate
		}
		other := plainName(candidate)
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
			if distance = editDistance(plain, other, allowed); distance > allowed {
				continue
			}
		}
		if distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

func plainName(name string) string { return strings.ToLower(separators.Replace(name)) }

// editDistance returns the number of insertions, deletions, replacements and
// swaps of neighbours that turn a into b, or limit+1 if there are more than
// limit.
func editDistance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if max(len(x)-len(y), len(y)-len(x)) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(y)], limit+1)
}

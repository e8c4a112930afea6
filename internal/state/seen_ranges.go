package state

import "slices"

// maxSeenLines bounds the number of lines in a record.
const maxSeenLines = 20_000

// Range is a range of lines that were shown.
type Range struct {
	First, Last int64    // 1-based, inclusive
	Sums        []uint32 // textfile.LineSum of each line
}

// equalRange reports whether two ranges have the same line numbers and
// checksums.
func equalRange(a, b Range) bool {
	return a.First == b.First && a.Last == b.Last && slices.Equal(a.Sums, b.Sums)
}

// addRange returns sorted ranges with r added. Where they overlap, r replaces
// them. It joins adjacent ranges, and drops the lines farthest from r beyond
// maxSeenLines. It ignores an r whose numbers contradict each other.
func addRange(ranges []Range, r Range) []Range {
	if r.First < 1 || r.Last < r.First || r.Last-r.First+1 != int64(len(r.Sums)) {
		return ranges
	}
	if over := len(r.Sums) - maxSeenLines; over > 0 {
		r.Last -= int64(over)
		r.Sums = r.Sums[:maxSeenLines]
	}
	var before, behind []Range
	total := len(r.Sums)
	for _, old := range ranges {
		if old.First < r.First {
			keep := min(old.Last, r.First-1) - old.First + 1
			before = append(before, Range{old.First, old.First + keep - 1, old.Sums[:keep]})
			total += int(keep)
		}
		if old.Last > r.Last {
			skip := max(old.First, r.Last+1) - old.First
			behind = append(behind, Range{old.First + skip, old.Last, old.Sums[skip:]})
			total += len(old.Sums) - int(skip)
		}
	}
	// Remove the lines farthest from the newest range first.
	for total > maxSeenLines {
		if len(behind) > 0 {
			total -= len(behind[len(behind)-1].Sums)
			behind = behind[:len(behind)-1]
			continue
		}
		total -= len(before[0].Sums)
		before = before[1:]
	}
	all := append(append(before, r), behind...)
	joined := all[:1]
	for _, next := range all[1:] {
		last := &joined[len(joined)-1]
		if last.Last+1 == next.First {
			last.Last = next.Last
			last.Sums = append(slices.Clone(last.Sums), next.Sums...)
			continue
		}
		joined = append(joined, next)
	}
	return joined
}

package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// seenDir holds the seen records. Its name contains the version of the format:
// records of other versions are in other directories and are not found.
const seenDir = "seen-2"

// olderSeenDir holds the records of the previous format.
const olderSeenDir = "seen-1"

// indexDir holds the line indexes of large files, which all clients share.
const indexDir = "index-1"

// maxSeenLines bounds the number of lines in a record.
const maxSeenLines = 20_000

// Seen is the stored data on a file: its version, its index, and which of its
// lines were shown.
type Seen struct {
	Path   string // absolute, links resolved
	Stamp  Stamp
	Index  textfile.Index
	Ranges []Range // sorted, not adjacent
	// NamedEncoding is the encoding that the client named for the file; "": none.
	NamedEncoding textfile.Encoding
}

// Stamp identifies a version of a file without reading it.
type Stamp struct {
	Size, ModTime, ChangeTime int64 // times in nanoseconds
	Dev, Ino                  uint64
	// Taken is the time at which the stamp was taken. A change shortly before
	// it may be invisible, because of the clock's resolution.
	Taken int64
}

// StampOf returns the stamp of a file described by stat. taken must be a time
// before the stat call.
func StampOf(stat sandbox.Stat, taken time.Time) Stamp {
	s := Stamp{Size: stat.Size, ModTime: stat.ModTime.UnixNano(), Dev: stat.Dev, Ino: stat.Ino, Taken: taken.UnixNano()}
	if !stat.ChangeTime.IsZero() {
		s.ChangeTime = stat.ChangeTime.UnixNano()
	}
	return s
}

// Grain is the time after a change within which another change may leave the
// same times: the tick of a kernel's clock, with a margin.
const Grain = 20 * time.Millisecond

// coarseGrain is Grain for file systems whose times are whole seconds.
const coarseGrain = 2 * time.Second

// Settled reports whether every later change of the file would change the
// stamp. It is false if the file was changed just before the stamp was taken.
func (s Stamp) Settled() bool {
	last := s.ChangeTime
	if last == 0 {
		last = s.ModTime
	}
	grain := Grain
	if last%int64(time.Second) == 0 {
		grain = coarseGrain
	}
	return s.Taken-last >= int64(grain)
}

// Same reports whether two stamps describe the same version of a file.
func (s Stamp) Same(other Stamp) bool {
	s.Taken, other.Taken = 0, 0
	return s == other
}

// Range is a range of lines that were shown.
type Range struct {
	First, Last int64    // 1-based, inclusive
	Sums        []uint32 // textfile.LineSum of each line
}

// Seen returns the record of the version, of any age, that the client saw last
// of the file with this absolute path (links resolved), and false without a record.
func (s *Store) Seen(path string) (*Seen, bool) {
	return s.record(seenDir, s.seenName(path), path)
}

// record reads one record. It checks the path, since names are hashes.
func (s *Store) record(dir, name, path string) (*Seen, bool) {
	data, err := s.read(dir, name)
	if err != nil {
		return nil, false
	}
	seen, err := decodeSeen(data)
	if err != nil || seen.Path != path {
		return nil, false
	}
	return seen, true
}

// Current returns the index of exactly the version of a file that stamp
// describes: the version that the client saw or, for a large file, that any
// client saw, then without lines. It returns false without such a record.
func (s *Store) Current(path string, stamp Stamp) (*Seen, bool) {
	seen, ok := s.Seen(path)
	if ok && seen.Stamp.Same(stamp) && seen.Stamp.Settled() {
		return seen, true
	}
	if stamp.Size <= textfile.LineIndexMin {
		return nil, false
	}
	seen, ok = s.record(indexDir, recordName(path), path)
	if !ok || !seen.Stamp.Same(stamp) || !seen.Stamp.Settled() {
		return nil, false
	}
	return seen, true
}

// Remember stores seen for the client. It keeps ranges already stored for the
// same content.
func (s *Store) Remember(seen Seen) error {
	if s.config.Disabled {
		return nil
	}
	if old, ok := s.Seen(seen.Path); ok && old.Index.Etag == seen.Index.Etag && old.Index.Size == seen.Index.Size {
		fresh := seen.Ranges
		seen.NamedEncoding = cmp.Or(seen.NamedEncoding, old.NamedEncoding)
		seen.Ranges = old.Ranges
		for _, r := range fresh {
			seen.Ranges = addRange(seen.Ranges, r)
		}
		if old.Stamp.Same(seen.Stamp) && old.Stamp.Settled() && old.NamedEncoding == seen.NamedEncoding && slices.EqualFunc(old.Ranges, seen.Ranges, equalRange) && s.recent(old) {
			return nil
		}
	}
	data, err := encodeSeen(&seen)
	if err != nil {
		return err
	}
	if err := s.write(seenDir, s.seenName(seen.Path), data); err != nil {
		return err
	}
	return s.rememberIndex(seen)
}

// rememberIndex stores the index of a large file for all clients.
func (s *Store) rememberIndex(seen Seen) error {
	if seen.Index.Size <= textfile.LineIndexMin || seen.NamedEncoding != "" {
		return nil
	}
	if old, ok := s.record(indexDir, recordName(seen.Path), seen.Path); ok && old.Stamp.Same(seen.Stamp) && old.Stamp.Settled() {
		return nil
	}
	seen.Ranges = nil
	data, err := encodeSeen(&seen)
	if err != nil {
		return err
	}
	return s.write(indexDir, recordName(seen.Path), data)
}

// recent reports whether a record is far from expiring.
func (s *Store) recent(seen *Seen) bool {
	return time.Since(time.Unix(0, seen.Stamp.Taken)) < s.config.MaxAge/4
}

func equalRange(a, b Range) bool {
	return a.First == b.First && a.Last == b.Last && slices.Equal(a.Sums, b.Sums)
}

// seenName returns the file name of the client's record of a path.
func (s *Store) seenName(path string) string { return recordName(path) + "-" + s.client }

// recordName returns the file name of the shared record of a path.
func recordName(path string) string { return fmt.Sprintf("%016x", xxhash.Sum64String(path)) }

// addRange adds r to ranges and removes what it overlaps. It joins adjacent
// ranges.
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

package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
)

// seenDir holds the seen records. Its name contains the version of the format,
// so records of other versions are not found.
const seenDir = "seen-2"

// olderSeenDir holds the seen records of the previous format.
const olderSeenDir = "seen-1"

// indexDir holds the line indexes of large files, which all clients share.
const indexDir = "index-1"

// Seen is the record of a file: its version, its index, and which of its
// lines were shown to the model.
type Seen struct {
	Path   string // absolute, links resolved
	Stamp  Stamp
	Index  textfile.Index
	Ranges []Range // sorted, not adjacent
	// NamedEncoding is the encoding that the client named for the file; "":
	// none.
	NamedEncoding textfile.Encoding
}

// Seen returns the record of the version that the client saw last of a file,
// however old. path is absolute, with links resolved. ok is false if there is
// no usable record.
func (s *Store) Seen(path string) (seen *Seen, ok bool) {
	return s.readSeen(seenDir, s.seenRecordName(path), path)
}

// readSeen reads the record name in dir. It checks that the record is for path,
// since names are hashes. ok is false without a usable record.
func (s *Store) readSeen(dir, name, path string) (seen *Seen, ok bool) {
	data, err := s.readRecord(dir, name)
	if err != nil {
		return nil, false
	}
	seen, err = decodeSeen(data)
	if err != nil || seen.Path != path {
		return nil, false
	}
	return seen, true
}

// SeenWithStamp returns a record of exactly the version of a file that stamp
// describes: the client's own or, for a large file, that of any client, which
// has an index and no lines. ok is false without such a record, and if the
// stamp cannot tell versions apart (Settled).
func (s *Store) SeenWithStamp(path string, stamp Stamp) (seen *Seen, ok bool) {
	seen, ok = s.Seen(path)
	if ok && seen.Stamp.SameVersion(stamp) && seen.Stamp.Settled() {
		return seen, true
	}
	if stamp.Size <= textfile.LineIndexMin {
		return nil, false
	}
	seen, ok = s.readSeen(indexDir, recordName(path), path)
	if !ok || !seen.Stamp.SameVersion(stamp) || !seen.Stamp.Settled() {
		return nil, false
	}
	return seen, true
}

// Remember stores seen for the client. If a record of the same content exists, it keeps
// that record's ranges as well. If state is disabled it does nothing. It returns the
// error of writing the record.
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
		if old.Stamp.SameVersion(seen.Stamp) && old.Stamp.Settled() && old.NamedEncoding == seen.NamedEncoding && slices.EqualFunc(old.Ranges, seen.Ranges, equalRange) && s.isFarFromExpiring(old) {
			return nil
		}
	}
	data, err := encodeSeen(&seen)
	if err != nil {
		return err
	}
	if err := s.writeRecord(seenDir, s.seenRecordName(seen.Path), data); err != nil {
		return err
	}
	return s.rememberIndex(seen)
}

// rememberIndex stores the index of a large file for all clients. It does
// nothing for a small file, and for a file in an encoding that the client
// named.
func (s *Store) rememberIndex(seen Seen) error {
	if seen.Index.Size <= textfile.LineIndexMin || seen.NamedEncoding != "" {
		return nil
	}
	if old, ok := s.readSeen(indexDir, recordName(seen.Path), seen.Path); ok && old.Stamp.SameVersion(seen.Stamp) && old.Stamp.Settled() {
		return nil
	}
	seen.Ranges = nil
	data, err := encodeSeen(&seen)
	if err != nil {
		return err
	}
	return s.writeRecord(indexDir, recordName(seen.Path), data)
}

// isFarFromExpiring reports whether a record is younger than a quarter of MaxAge.
func (s *Store) isFarFromExpiring(seen *Seen) bool {
	return time.Since(time.Unix(0, seen.Stamp.Taken)) < s.config.MaxAge/4
}

// seenRecordName returns the file name of the client's record of a path.
func (s *Store) seenRecordName(path string) string { return recordName(path) + "-" + s.client }

// recordName returns the file name of a path's record that all clients share:
// its hash.
func recordName(path string) string { return fmt.Sprintf("%016x", xxhash.Sum64String(path)) }

package state

import (
	"os"
	"slices"
	"strings"
)

// SeenVersion describes a seen record and the version of the file that was
// seen.
type SeenVersion struct {
	Path       string
	Stamp      Stamp
	Etag       string // of the content, 16 hex digits
	RecordName string // file name of the record
	RecordTime int64  // when the record was written, Unix nanoseconds
}

// RecentlySeen returns descriptions of the client's newest seen records, at
// most limit, newest first. previous is the result of an earlier call, or nil:
// records that have not changed since are not read again. Records that cannot
// be read are omitted.
func (s *Store) RecentlySeen(limit int, previous []SeenVersion) []SeenVersion {
	dir, err := s.makeSubdir(seenDir)
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []SeenVersion
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), "-"+s.client) {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			found = append(found, SeenVersion{RecordName: info.Name(), RecordTime: info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(found, func(a, b SeenVersion) int {
		switch {
		case a.RecordTime > b.RecordTime:
			return -1
		case a.RecordTime < b.RecordTime:
			return 1
		}
		return 0
	})
	found = found[:min(len(found), limit)]
	known := map[string]SeenVersion{}
	for _, k := range previous {
		known[k.RecordName] = k
	}
	list := found[:0]
	for _, k := range found {
		if old, ok := known[k.RecordName]; ok && old.RecordTime == k.RecordTime {
			list = append(list, old)
			continue
		}
		data, err := s.readRecord(seenDir, k.RecordName)
		if err != nil {
			continue
		}
		seen, err := decodeSeen(data)
		if err != nil {
			continue
		}
		k.Path, k.Stamp, k.Etag = seen.Path, seen.Stamp, seen.Index.Etag.Full()
		list = append(list, k)
	}
	return list
}

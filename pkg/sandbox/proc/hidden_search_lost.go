package proc

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// maxLostSearchEntries bounds the directory entries of a root that are searched
// for lost files.
const maxLostSearchEntries = 1_000_000

// searchLost searches the whole root for lost files, which are given by base
// name, and adds those that it finds to hidden. It searches once for each file.
// A file that it does not find is added as notFound until forgetDays have
// passed, for later servers.
func (s *secretScan) searchLost(lost map[string][]fileID, hidden map[fileID]*hiddenFile, result *scanResult, rules scanRules) {
	walk := false
	for _, ids := range lost {
		walk = walk || slices.ContainsFunc(ids, func(id fileID) bool { return !s.hidden[id].notFound })
	}
	if walk {
		s.walkForLost(lost, hidden, result, rules)
	}
	for _, ids := range lost {
		for _, id := range ids {
			if k := s.hidden[id]; hidden[id] == nil && daysSince1970()-k.lastSeenDay < forgetDays {
				k.notFound = true
				hidden[id] = k
			}
		}
	}
}

// walkForLost reads up to maxLostSearchEntries entries of the root, and adds
// the lost files that it finds to hidden if they are still secret. If the root
// has more entries, it sets result.complete to false.
func (s *secretScan) walkForLost(lost map[string][]fileID, hidden map[fileID]*hiddenFile, result *scanResult, rules scanRules) {
	left := maxLostSearchEntries
	for queue := []string{s.root}; len(queue) > 0; queue = queue[1:] {
		d, err := os.Open(queue[0])
		if err != nil {
			continue
		}
		entries, _ := d.ReadDir(left + 1)
		d.Close()
		if left -= len(entries); left < 0 {
			result.complete = false
			return
		}
		for _, entry := range entries {
			path := filepath.Join(queue[0], entry.Name())
			if ids := lost[entry.Name()]; len(ids) > 0 {
				if info, err := entry.Info(); err == nil {
					id, ok := fileIDOf(info)
					if k := s.hidden[id]; ok && slices.Contains(ids, id) && (k.viaLink || rules.mustHide(path, nil)) {
						k.path, k.lastSeenDay, k.notFound = path, daysSince1970(), false
						hidden[id] = k
						continue
					}
				}
			}
			if entry.IsDir() && !fileinfo.IsPseudoDir(path) {
				queue = append(queue, path)
			}
		}
	}
}

package proc

import (
	"os"
	"sync"
	"time"
)

// maxHomeListings bounds the directories in a HomeListings. A full one is emptied, since
// directories that no longer exist are never looked up again.
const maxHomeListings = 4 * maxHomeDirs

// HomeListings holds the entries of directories in home directories, so that Runners that
// share it read a directory once until it changes. The zero value is empty. It is safe
// for concurrent use.
type HomeListings struct {
	mu   sync.Mutex
	dirs map[string]dirListing // by path
}

// dirListing holds the entries of a directory. It is immutable.
type dirListing struct {
	changed, readAt time.Time // changed is the directory's time of change before it was read
	entries         []os.DirEntry
}

// read returns the entries of a directory whose current time of change is changed. They
// may be incomplete if the directory cannot be read. A nil receiver holds nothing.
func (l *HomeListings) read(dir string, changed time.Time) []os.DirEntry {
	if l == nil {
		entries, _ := os.ReadDir(dir)
		return entries
	}
	l.mu.Lock()
	known, ok := l.dirs[dir]
	l.mu.Unlock()
	if ok && isUnchanged(known.changed, known.readAt, changed) {
		return known.entries
	}
	now := dirListing{changed: changed, readAt: time.Now()}
	var err error
	if now.entries, err = os.ReadDir(dir); err != nil {
		return now.entries
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirs == nil || len(l.dirs) >= maxHomeListings {
		l.dirs = map[string]dirListing{}
	}
	l.dirs[dir] = now
	return now.entries
}

package changes

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Store is the directory of sets. It is safe for concurrent use by goroutines
// and processes.
type Store struct {
	dir string
}

// New returns the store at dir, an absolute path. The directory need not
// exist.
func New(dir string) *Store { return &Store{dir: dir} }

// Create makes an empty set for roots, which are absolute paths with links
// resolved.
func (s *Store) Create(roots []string) (*Set, error) {
	set := &Set{id: "c" + strings.ToLower(rand.Text()[:6])}
	set.dir = filepath.Join(s.dir, set.id)
	if err := os.MkdirAll(set.dir, 0o700); err != nil {
		return nil, err
	}
	r := setFile{Roots: roots, Began: time.Now(), Dirs: make([]map[string]dirMeta, len(roots))}
	return set, set.saveFile(&r)
}

// Open returns a set by its id. It returns NOT_FOUND if there is no such set.
func (s *Store) Open(id string) (*Set, error) {
	set := &Set{dir: filepath.Join(s.dir, id), id: id}
	if filepath.Base(id) != id || !strings.HasPrefix(id, "c") {
		return nil, toolerr.New(toolerr.NotFound, "there are no changes %s", pathname.Escape(id))
	}
	if _, err := set.loadFile(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, toolerr.New(toolerr.NotFound, "there are no pending changes %s: they were applied or discarded", pathname.Escape(id))
		}
		return nil, err
	}
	return set, nil
}

// List returns the sets that have at least one of roots, the oldest first. Sets that
// cannot be read are omitted. It returns nil if the store cannot be read.
func (s *Store) List(roots []string) []*Set {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil
	}
	type dated struct {
		set   *Set
		began time.Time
	}
	var found []dated
	for _, e := range entries {
		set := &Set{dir: filepath.Join(s.dir, e.Name()), id: e.Name()}
		r, err := set.loadFile()
		if err == nil && slices.ContainsFunc(r.Roots, func(root string) bool { return slices.Contains(roots, root) }) {
			found = append(found, dated{set, r.Began})
		}
	}
	slices.SortFunc(found, func(a, b dated) int { return cmp.Or(a.began.Compare(b.began), strings.Compare(a.set.id, b.set.id)) })
	sets := make([]*Set, len(found))
	for i, d := range found {
		sets[i] = d.set
	}
	return sets
}

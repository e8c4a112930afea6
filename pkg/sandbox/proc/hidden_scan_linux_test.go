package proc

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// keysOnly hides only files that begin as a private key.
var keysOnly = scanRules{
	isHidden:     func(string) bool { return false },
	isAllowed:    func(string) bool { return false },
	whyProtected: func(string) string { return "" },
}

func newSecretScan(root string) *secretScan {
	return &secretScan{root: root, keyChecks: map[string]cachedKeyCheck{}, hidden: map[fileID]*hiddenFile{}}
}

// The first search of a root finds a file that another program keeps moving
// between two directories, whether it is hidden by its name or by its content.
func TestASearchFindsWhatIsBeingMoved(t *testing.T) {
	byName := keysOnly
	byName.isHidden = func(path string) bool { return filepath.Base(path) == "id_rsa" }
	for _, places := range [][2]string{{"top/keys", "top2"}, {"d/keys", "e/f/keys"}, {"d/keys", "d/k2"}} {
		for name, l := range map[string]scanRules{"name": byName, "content": keysOnly} {
			t.Run(places[0]+" "+places[1]+" by "+name, func(t *testing.T) {
				t.Parallel()
				root := t.TempDir()
				from, to := filepath.Join(root, places[0]), filepath.Join(root, places[1])
				require.NoError(t, os.MkdirAll(from, 0o755))
				require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
				key := filepath.Join(from, "id_rsa")
				require.NoError(t, os.WriteFile(key, []byte("-----BEGIN RSA PRIVATE KEY-----\n"), 0o600))
				id := fileAt(t, key)
				end, ended := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(ended)
					for {
						select {
						case <-end:
							return
						case <-time.After(50 * time.Microsecond):
						}
						os.Rename(from, to)
						os.Rename(to, from)
					}
				}()
				defer func() { close(end); <-ended }()
				for range 500 {
					s := newSecretScan(root)
					found := s.scanRoot(l)
					if found.unstableDir == "" {
						require.Contains(t, identities(found), id)
						objects := s.updateHidden(&found, nil, l)
						require.Contains(t, s.hidden, id)
						found = s.scanRoot(l)
						require.Len(t, append(objects, s.updateHidden(&found, nil, l)...), 2)
						s.hidden[id].closeDescriptor()
					}
					found.closeDescriptors()
				}
			})
		}
	}
}

// TestLinksOfARemovedFile: a hidden file that is removed before it can be opened has the
// number of hard links that the scan found.
func TestLinksOfARemovedFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	byName := keysOnly
	byName.isHidden = func(path string) bool { return filepath.Base(path) == "hidden" }
	for name, more := range map[string]func(file string){
		"one link":  func(string) {},
		"two links": func(file string) { require.NoError(t, os.Link(file, file+".other")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(root, name)
			file := filepath.Join(dir, "hidden")
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.WriteFile(file, nil, 0o600))
			more(file)
			id := fileAt(t, file)
			scan := newSecretScan(dir)
			found := scan.scanRoot(byName)
			found.closeDescriptors()
			found.descriptors = nil
			require.NoError(t, os.Remove(file))
			scan.updateHidden(&found, nil, byName)
			require.Nil(t, scan.hidden[id].descriptor)
			s := &spec{}
			s.recordLinkCount(id, scan.hidden[id])
			require.Equal(t, name == "two links", s.hiddenLinks[id] == 2)
		})
	}
}

func fileAt(t *testing.T, path string) fileID {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	id, ok := fileIDOf(info)
	require.True(t, ok)
	return id
}

func identities(f scanResult) (ids []fileID) {
	for _, info := range f.hidden {
		id, _ := fileIDOf(info)
		ids = append(ids, id)
	}
	return ids
}

// A search does not modify the result of the last one: a command that is
// starting at the same time reads it.
func TestASearchChangesNothingOfTheLastOne(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a", "b/c"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, name), 0o755))
	}
	l := keysOnly
	s := newSecretScan(root)
	first := s.scanRoot(l)
	defer first.closeDescriptors()
	found := s.dirs
	before := maps.Clone(found)
	require.Len(t, before, 4)
	require.NoError(t, os.Mkdir(filepath.Join(root, "b", "new"), 0o755)) // b is read again
	second := s.scanRoot(l)
	defer second.closeDescriptors()
	require.Equal(t, before, found)
	require.Len(t, s.dirs, 5)
}

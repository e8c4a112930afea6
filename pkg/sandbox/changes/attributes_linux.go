package changes

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// maxAttributeBytes is the kernel's limit for the list of a file's attributes, and for
// each of their values.
const maxAttributeBytes = 64 << 10

// copyAttributes copies the extended attributes user.* of from, except those of
// overlayfs, to to. It skips those that the other file system does not accept.
func copyAttributes(to, from *os.File) error {
	list := make([]byte, 64<<10)
	n, err := unix.Flistxattr(int(from.Fd()), list)
	if err != nil {
		return nil // a file system without attributes
	}
	value := make([]byte, 64<<10)
	for _, name := range strings.Split(string(list[:n]), "\x00") {
		if !strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "user.overlay.") {
			continue
		}
		size, err := unix.Fgetxattr(int(from.Fd()), name, value)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), name, value[:size], 0)
		}
		if err != nil && err != unix.EOPNOTSUPP {
			return err
		}
	}
	return nil
}

// matchAttributes gives the root's file or directory rel the attributes user.* and the
// access lists of source, its version in a layer. Overlayfs copies them when it copies
// an entry. was is the state before the command's change: an attribute that source lacks is
// removed only if it had the attribute then, and one that another program has changed
// since stays.
func matchAttributes(tree *nofollow.Tree, rel, source string, was baseState) error {
	dir, base, err := tree.OpenParent(rel)
	if err != nil {
		return err
	}
	defer unix.Close(dir) //nolint:errcheck // opened only for paths
	target := "/proc/self/fd/" + strconv.Itoa(dir) + "/" + base
	for _, name := range unionOfAttributes(target, source) {
		want := ""
		err := withModeBits(source, 0o400, func() (err error) {
			want, err = attributeOf(source, name)
			return err
		})
		switch {
		case err != nil && !errors.Is(err, unix.ENODATA):
			continue // the layer's file system does not store it
		case err != nil && !slices.Contains(was.Attributes, name):
			continue
		}
		is, isErr := attributeOf(target, name)
		if (isErr == nil) == (err == nil) && is == want || was.isTheirs(name, is, isErr == nil) {
			continue
		}
		if err := setAttribute(tree, rel, target, name, want, err == nil); err != nil {
			return err
		}
	}
	return nil
}

// attributesAndHashes returns the names of the attributes of the root's entry rel that
// matchAttributes sets, sorted, and the hashes of their values. Both are nil if they cannot
// be read.
func attributesAndHashes(tree *nofollow.Tree, rel string) (names, hashes []string) {
	dir, base, err := tree.OpenParent(rel)
	if err != nil {
		return nil, nil
	}
	defer unix.Close(dir) //nolint:errcheck // opened only for paths
	return attributesAndHashesOf("/proc/self/fd/" + strconv.Itoa(dir) + "/" + base)
}

// attributesAndHashesOf returns the result of attributesAndHashes for the entry at path.
func attributesAndHashesOf(path string) (names, hashes []string) {
	names = unionOfAttributes(path)
	slices.Sort(names)
	for _, name := range names {
		hash := ""
		withModeBits(path, 0o400, func() error { //nolint:errcheck // an unreadable value has no hash
			value, err := attributeOf(path, name)
			if err == nil {
				hash = hashBytes([]byte(value))
			}
			return err
		})
		hashes = append(hashes, hash)
	}
	return names, hashes
}

// unionOfAttributes returns the names of the attributes of two entries that
// matchAttributes sets. It ignores errors.
func unionOfAttributes(paths ...string) (names []string) {
	for _, path := range paths {
		list := make([]byte, maxAttributeBytes)
		n, _ := unix.Llistxattr(path, list)
		for name := range strings.SplitSeq(string(list[:max(n, 0)]), "\x00") {
			if strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.") || strings.HasPrefix(name, "system.posix_acl_") {
				names = append(names, name)
			}
		}
	}
	return names
}

// attributeOf returns the value of an attribute. It returns ENODATA if the entry does
// not have the attribute.
func attributeOf(path, name string) (value string, err error) {
	buffer := make([]byte, maxAttributeBytes)
	n, err := unix.Lgetxattr(path, name, buffer)
	return string(buffer[:max(n, 0)]), err
}

// setAttribute sets an attribute of the root's entry rel, or removes it if set is false.
// target is another path of the entry. If the mode forbids that, setAttribute adds
// permissions of the owner, and the caller sets the mode afterwards. A file system without such attributes is no error.
func setAttribute(tree *nofollow.Tree, rel, target, name, value string, set bool) error {
	change := func() error {
		if set {
			return unix.Lsetxattr(target, name, []byte(value), 0)
		}
		return unix.Lremovexattr(target, name)
	}
	err := change()
	if err == unix.EACCES {
		var info fs.FileInfo
		if info, err = tree.Lstat(rel); err == nil {
			err = errors.Join(tree.Chmod(rel, info.Mode()|0o600), change())
		}
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODATA) {
		return nil
	}
	return err
}

// copyDirMeta gives a directory of a layer the owner, attributes, mode and time of another
// one.
func copyDirMeta(dir, from string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if now, err := os.Lstat(dir); err == nil {
		is, was := now.Sys().(*syscall.Stat_t), info.Sys().(*syscall.Stat_t)
		if is.Uid != was.Uid || is.Gid != was.Gid {
			if err := os.Lchown(dir, int(was.Uid), int(was.Gid)); err != nil {
				return err
			}
		}
	}
	for _, name := range unionOfAttributes(from) {
		value, err := attributeOf(from, name)
		if err == nil {
			err = unix.Lsetxattr(dir, name, []byte(value), 0)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod(dir, info.Mode()), copyModTime(dir, info))
}

package changes

import (
	"io/fs"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// Apply merges mode, time and attributes of an entry whose content stays: a value that
// only another program has changed since the command stays, and one that both have
// changed differently is a conflict. For a directory, the later time is no conflict.

// dirMetaConflict returns the reason why the directory of a change, of which was is the
// state before the command and info describes the present one, cannot get the mode and
// attributes of its new version; "" if it can.
func (was baseState) dirMetaConflict(tree *nofollow.Tree, c Change, info fs.FileInfo) string {
	if !was.Mode.IsDir() { // another program has made it, too, or its state is not known
		return ""
	}
	if was.Mode != info.Mode() && was.Mode != c.New.Mode() && info.Mode() != c.New.Mode() {
		return "has another mode than before the command"
	}
	return was.attributeConflict(tree, c)
}

// metaConflict is the same for another file, whose content is the one before the command
// or the one of its new version.
func (was baseState) metaConflict(tree *nofollow.Tree, c Change, info fs.FileInfo) string {
	_, changed := inodeAndChangeTime(info)
	if was.Absent || !info.Mode().IsRegular() || changed == was.Changed {
		return ""
	}
	if c.New == nil || !c.New.Mode().IsRegular() || info.Size() != c.New.Size() || !isSameContent(tree, c) {
		if was.HasValues && !was.hasAttributes(attributesAndHashes(tree, c.Path)) {
			return "has other extended attributes than before the command"
		}
		return ""
	}
	at, wanted := info.ModTime().UnixNano(), c.New.ModTime().UnixNano()
	isSet := was.Modified != 0 && at != was.Modified && wanted != was.Modified && at != wanted
	if isSet && was.Hash != "" && stateOfEntry(tree, c.Path, info, 0, true).Hash == was.Hash {
		return "has another time than before the command"
	}
	return was.attributeConflict(tree, c)
}

// isSameContent reports whether a regular file of the root has the content of the
// new version of a change.
func isSameContent(tree *nofollow.Tree, c Change) bool {
	same, err := hasSameContent(tree, c.Path, c.source)
	return err == nil && same
}

// hasAttributes reports whether the state was has these attributes, as of
// attributesAndHashes.
func (was baseState) hasAttributes(names, values []string) bool {
	return slices.Equal(names, was.Attributes) && slices.Equal(values, was.Values)
}

// attributeConflict returns the reason why an entry cannot get the attributes of its new
// version: one that the command and another program have changed. It returns "" if there
// is none.
func (was baseState) attributeConflict(tree *nofollow.Tree, c Change) string {
	if !was.HasValues {
		return ""
	}
	names, hashes := attributesAndHashes(tree, c.Path)
	if was.hasAttributes(names, hashes) {
		return ""
	}
	ourNames, ourHashes := attributesAndHashesOf(c.source)
	for _, name := range slices.Concat(names, was.Attributes) {
		before, now, ours := valueOf(was.Attributes, was.Values, name), valueOf(names, hashes, name), valueOf(ourNames, ourHashes, name)
		if now != before && ours != before && now != ours {
			return "has another extended attribute " + name + " than before the command"
		}
	}
	return ""
}

// valueOf returns the value at the index of name in names, "" if names lacks it.
func valueOf(names, values []string, name string) string {
	if i := slices.Index(names, name); i >= 0 && i < len(values) {
		return values[i]
	}
	return ""
}

// isTheirs reports whether another program has set the attribute name of an entry since
// the state was, in which Apply therefore keeps it. now is its present value, "" for
// none. isSet is false if the entry does not have the attribute now. It returns false if
// the earlier values are not recorded.
func (was baseState) isTheirs(name, now string, isSet bool) bool {
	if !was.HasValues {
		return false
	}
	if isSet {
		now = hashBytes([]byte(now))
	}
	return now != valueOf(was.Attributes, was.Values, name)
}

// mergedTime returns the time of modification that a file gets whose content stays: the
// wanted one of the command, or its present time now if another program has set that. If
// both have set it, the later one is right.
func (was baseState) mergedTime(now, wanted time.Time) time.Time {
	if was.Absent && now.After(wanted) {
		return now
	}
	if was.Absent || was.Modified == 0 || now.UnixNano() == was.Modified || wanted.UnixNano() != was.Modified && wanted.After(now) {
		return wanted
	}
	return now
}

// mergedDirMeta returns the mode and time that the directory rel of the root gets from
// info, its version in the layer.
func (p *plan) mergedDirMeta(rel string, info fs.FileInfo) dirMeta {
	want := dirMeta{Mode: info.Mode(), Modified: info.ModTime()}
	now, err := p.tree.Lstat(rel)
	if err != nil || !now.IsDir() || p.isReplaced[rel] {
		return want
	}
	was, known := p.known[rel]
	if !known && rel == "." || known && !was.Absent && !was.Mode.IsDir() {
		return want // a set of an earlier version, or a file that became a directory
	}
	if !known || was.Absent || now.Mode() != was.Mode {
		want.Mode = now.Mode()
	}
	isTheirs := !known || was.Modified != now.ModTime().UnixNano()
	if isTheirs && (now.ModTime().After(want.Modified) || known && want.Modified.UnixNano() == was.Modified) {
		want.Modified = now.ModTime()
	}
	return want
}

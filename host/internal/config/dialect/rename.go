package dialect

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// rename is a configuration key that has another name since a version. The old name works
// until it is removed from renamedKeys, at least two minor versions later.
type rename struct {
	path  []string // the key with those above it; "*" matches any name, and the items of a list
	name  string   // the new last part of the path
	since string   // the version that announced it
}

// renamedKeys returns the renamed keys of toolroom's own file. No key has been renamed yet.
func renamedKeys() []rename { return nil }

// renamedPair is a member of the file under its old name.
type renamedPair struct {
	of   *node
	at   int // index in of.pairs
	path string
	rename
}

// findRenamed returns the members of root, at any depth, that have an old name of all.
func findRenamed(root *node, all []rename) (found []renamedPair) {
	for _, one := range all {
		visitPath(root, one.path, "", func(n *node, i int, path string) {
			found = append(found, renamedPair{n, i, path, one})
		})
	}
	return found
}

// visitPath calls visit with each member at a path, and its place as text.
func visitPath(n *node, path []string, above string, visit func(n *node, i int, path string)) {
	if n.kind == listNode && path[0] == "*" && len(path) > 1 {
		for _, item := range n.items {
			visitPath(item, path[1:], above, visit)
		}
	}
	if n.kind != mapNode {
		return
	}
	for i, p := range n.pairs {
		if path[0] != "*" && path[0] != p.key {
			continue
		}
		at := above + shownName(p.key)
		if len(path) == 1 {
			visit(n, i, at)
		} else {
			visitPath(p.value, path[1:], at+".", visit)
		}
	}
}

// readRenamed gives the renamed keys of toolroom's own file their new names, with a
// warning for each. all replaces renamedKeys unless it is nil.
func (d *Document) readRenamed(root *node, all []rename) {
	if all == nil {
		all = renamedKeys()
	}
	if !isOwnFile(d.File) {
		return
	}
	for _, p := range findRenamed(root, all) {
		line := p.of.pairs[p.at].line
		if p.of.get(p.name) != nil {
			d.addProblem(line, "%s is the old name of %s, which is also there: delete one", p.path, p.name)
			continue
		}
		d.addProblem(line, "%s is called %s since version %s; mcp-host config migrate changes the file", p.path, p.name, p.since)
		d.Problems[len(d.Problems)-1].Warning = true
		p.of.pairs[p.at].key = p.name
	}
}

// isOwnFile reports whether a file is toolroom's own, by its name.
func isOwnFile(file string) bool { return strings.HasPrefix(filepath.Base(file), "toolroom.") }

// Migrate returns the text of toolroom's own configuration with the new names of renamed
// keys, and a description of each change. Every other byte stays. The error is a problem of
// the file, or names a key that must be changed by hand.
func Migrate(file string, text []byte) (migrated []byte, changes []string, err error) {
	return migrate(file, text, renamedKeys())
}

func migrate(file string, text []byte, all []rename) ([]byte, []string, error) {
	if !isOwnFile(file) {
		return nil, nil, fmt.Errorf("%s is not toolroom's own configuration, whose name begins with toolroom", file)
	}
	d := Parse(file, text, Options{renames: all})
	if err := d.Problems.Err(); err != nil {
		return nil, nil, err
	}
	var changes []string
	for {
		root, err := parse(file, text)
		if err != nil {
			return nil, nil, err
		}
		left := findRenamed(root, all)
		if len(left) == 0 {
			return text, changes, nil
		}
		one := left[0]
		line := one.of.pairs[one.at].line
		next, ok := renameOnLine(file, text, root, line, one, all)
		if !ok {
			return nil, nil, fmt.Errorf("%s:%d: %s cannot be changed here: write %s instead by hand", file, line, one.path, one.name)
		}
		text = next
		changes = append(changes, fmt.Sprintf("line %d: %s is now %s", line, one.path, one.name))
	}
}

// renameOnLine returns the text with the new name of a key on a line. It tries each place
// where the old name stands, and returns the text that reads like root with the new name.
// ok is false if no place gives such a text.
func renameOnLine(file string, text []byte, root *node, line int, target renamedPair, all []rename) (next []byte, ok bool) {
	lines := strings.SplitAfter(string(text), "\n")
	if line < 1 || line > len(lines) {
		return nil, false
	}
	start := len(strings.Join(lines[:line-1], ""))
	before := findRenamed(root, all)
	want := applyRenames(root, before)
	word := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(target.of.pairs[target.at].key) + `($|[^\w-])`)
	for at := start; at < start+len(lines[line-1]); {
		found := word.FindIndex(text[at : start+len(lines[line-1])])
		if found == nil {
			break
		}
		key := at + found[0] + strings.Index(string(text[at+found[0]:at+found[1]]), target.of.pairs[target.at].key)
		end := key + len(target.of.pairs[target.at].key)
		next = slices.Concat(text[:key], []byte(target.name), text[end:])
		if tree, err := parse(file, next); err == nil {
			after := findRenamed(tree, all)
			if len(after) < len(before) && reflect.DeepEqual(want, applyRenames(tree, after)) {
				return next, true
			}
		}
		at = end
	}
	return nil, false
}

// applyRenames returns a copy of a tree with new names. found must be the result of
// findRenamed for the tree.
func applyRenames(root *node, found []renamedPair) *node {
	out := *root
	out.items, out.pairs = nil, nil
	for _, item := range root.items {
		out.items = append(out.items, applyRenames(item, found))
	}
	for i, p := range root.pairs {
		for _, one := range found {
			if one.of == root && one.at == i {
				p.key = one.name
			}
		}
		p.value = applyRenames(p.value, found)
		out.pairs = append(out.pairs, p)
	}
	return &out
}

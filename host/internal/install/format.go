package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
)

// format edits configurations of one file format. The functions take the whole text
// and return the whole new text; bytes outside the entry stay as they are. member is
// the top-level object with the servers, name the key of one entry in it.
type format struct {
	// set adds the entry, or replaces the one with this name.
	set func(text []byte, member, name string, entry []field) ([]byte, error)
	// remove returns the text without the entry; unchanged if it has no such entry.
	remove func(text []byte, member, name string) ([]byte, error)
	// entries returns the decoded entries by their names.
	entries func(text []byte, member string) (map[string]any, error)
}

var (
	jsonFormat = format{setJSON, removeJSON, entriesOfJSON}
	tomlFormat = format{setTOML, removeTOML, entriesOfTOML}
	yamlFormat = format{setYAML, removeYAML, entriesOfYAML}
)

// setChecked returns the text with the entry added or replaced. It returns errUneditable
// unless the other entries are as before, the entry can be removed again, and setting it
// a second time changes nothing.
func (f format) setChecked(text []byte, member, name string, entry []field) ([]byte, error) {
	next, err := f.set(text, member, name, entry)
	if err != nil {
		return nil, err
	}
	if err := f.checkEdit(text, next, member, name, entryMap(entry)); err != nil {
		return nil, err
	}
	if again, err := f.set(next, member, name, entry); err != nil || !bytes.Equal(again, next) {
		return nil, errUneditable
	}
	if _, err := f.removeChecked(next, member, name); err != nil {
		return nil, errUneditable
	}
	return next, nil
}

// removeChecked returns the text without the entry. It returns errUneditable unless the
// other entries are as before.
func (f format) removeChecked(text []byte, member, name string) ([]byte, error) {
	next, err := f.remove(text, member, name)
	if err != nil {
		return nil, err
	}
	return next, f.checkEdit(text, next, member, name, nil)
}

// errUneditable reports that an edit of the text would not have the intended result.
var errUneditable = errors.New("the file is written in a form that cannot be edited here: change it by hand")

// checkEdit returns errUneditable unless text and next have the same entries, except that
// name has the value entry in next (nil: it does not exist). So no file is written whose
// form the editing code did not foresee. It returns another error if text cannot be parsed.
func (f format) checkEdit(text, next []byte, member, name string, entry map[string]any) error {
	before, err := f.entries(text, member)
	if err != nil {
		return err
	}
	after, err := f.entries(next, member)
	if err != nil {
		return errUneditable
	}
	before, after = maps.Clone(before), maps.Clone(after)
	if !equalEntry(after[name], entry) {
		return errUneditable
	}
	delete(before, name)
	delete(after, name)
	if len(before)+len(after) > 0 && !reflect.DeepEqual(before, after) {
		return errUneditable
	}
	return nil
}

// equalEntry reports whether the decoded entry got has exactly the fields of want. A
// nil want means that the entry must not exist.
func equalEntry(got any, want map[string]any) bool {
	if want == nil {
		return got == nil
	}
	values, ok := got.(map[string]any)
	if !ok || len(values) != len(want) {
		return false
	}
	for name, value := range want { // as JSON, since the formats have their own types of numbers and lists
		has, err := json.Marshal(values[name])
		wants, err2 := json.Marshal(value)
		if err != nil || err2 != nil || string(has) != string(wants) {
			return false
		}
	}
	return true
}

// entryMap returns the fields of the entry by their names.
func entryMap(entry []field) map[string]any {
	out := map[string]any{}
	for _, f := range entry {
		out[f.name] = f.value
	}
	return out
}

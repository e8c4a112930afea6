package sandbox

// renameByLink renames a file with a hard link, which replaces nothing. linked is false
// if the link could not be created; then nothing was changed, and err is its error. If
// the old name cannot be removed, the new one is removed again and err says why. If that
// fails, too, the file has both names and err is nil: it is there, as the caller wants.
func renameByLink(from, to string, link func(from, to string) error, remove func(name string) error) (linked bool, err error) {
	if err := link(from, to); err != nil {
		return false, err
	}
	if err := remove(from); err != nil && remove(to) == nil {
		return true, err
	}
	return true, nil
}

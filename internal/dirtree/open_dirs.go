package dirtree

// maxOpen is the number of directories that the lister keeps open, in addition
// to the top directory, to open their subdirectories.
const maxOpen = 100

// ensureOpen opens a directory if it is closed. It first opens the parents that
// were closed in the meantime, and closes other directories if maxOpen are
// open.
func (l *lister) ensureOpen(d *dir) error {
	if d.node != nil {
		return nil
	}
	if err := l.ensureOpen(d.parent); err != nil {
		return err
	}
	if len(l.openDirs) >= maxOpen {
		if err := l.closeOldest(d.parent); err != nil {
			return err
		}
	}
	node, err := d.parent.node.Enter(d.name)
	if err != nil {
		return err
	}
	d.node = node
	l.openDirs = append(l.openDirs, d)
	return nil
}

// closeOldest closes those directories that were opened first, half of all,
// except used.
func (l *lister) closeOldest(used *dir) error {
	var kept []*dir
	for i, d := range l.openDirs {
		if d == used || i >= len(l.openDirs)/2 {
			kept = append(kept, d)
			continue
		}
		node := d.node
		d.node = nil
		if err := node.Close(); err != nil {
			return err
		}
	}
	l.openDirs = kept
	return nil
}

// closeAll closes all open directories except the top one.
func (l *lister) closeAll() {
	for _, d := range l.openDirs {
		d.node.Close()
	}
}

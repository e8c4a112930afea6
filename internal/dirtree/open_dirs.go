package dirtree

// maxOpen is the number of directories that stay open for their subdirectories.
const maxOpen = 100

// ensureOpen opens a directory unless it is open. A directory that was closed in
// the meantime is opened again from its nearest open parent.
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

// closeOldest closes the half of the open directories that were opened first, except
// used.
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

func (l *lister) closeAll() {
	for _, d := range l.openDirs {
		d.node.Close()
	}
}

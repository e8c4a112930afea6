package changes

// Abandon frees the lock of a layer, as the death of its process does.
func (l *Layer) Abandon() { l.lock.Close() }

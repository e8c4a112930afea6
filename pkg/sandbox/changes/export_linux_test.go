package changes

// Abandon releases the layer's lock, as the end of its process would.
func (l *Layer) Abandon() { l.unlock() }

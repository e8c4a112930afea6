package changes

// Abandon frees the layer's lock, as the end of its process does.
func (l *Layer) Abandon() { l.free() }

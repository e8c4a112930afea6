package sandbox

// WriteAllowed reports whether the user lets the file at an absolute path be
// written although it is protected (--allow-write).
func (f *FS) WriteAllowed(abs string) bool { return f.matchesAny(f.writes().allow, abs) }

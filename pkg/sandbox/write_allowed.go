package sandbox

// WriteAllowed reports whether --allow-write permits to write a protected file at an
// absolute path.
func (f *FS) WriteAllowed(abs string) bool { return f.matchesAny(f.writes().allow, abs) }

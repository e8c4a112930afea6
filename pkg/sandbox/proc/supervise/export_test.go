package supervise

// Complete does what the supervisor does with a shortened spec.
func Complete(s, expected *Spec) bool { return s.addShared(expected) }

// OnDiskNameAmong is nameAmong.
func OnDiskNameAmong(name string, names []string, isSame func(string) bool) string {
	return nameAmong(name, names, isSame)
}

package supervise

// Complete is what the other end does with a spec that was shortened.
func Complete(s, expected *Spec) bool { return s.complete(expected) }

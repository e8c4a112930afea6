package audit

// SecretName reports whether a member of this name holds a credential.
func SecretName(name string) bool { return secretName(name) }

// Hide returns a text with what looks like credentials hidden.
func Hide(text string) string { return hide(text) }

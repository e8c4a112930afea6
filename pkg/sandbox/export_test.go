package sandbox

import "runtime"

// NewPortable makes a sandbox that uses os.Root also where the kernel has
// something better, so that the same tests run over both.
func NewPortable(c Config) *Sandbox {
	s := New(c)
	s.open = openPortableRoot
	return s
}

// NameTempFile is the name of a file's temporary file.
func NameTempFile(base string, slot int) string { return nameTempFile(base, slot) }

// Close closes the roots now, for a test that opens more of them than the
// collector comes round to.
func (f *FS) Close() {
	for _, r := range f.roots {
		runtime.SetFinalizer(r.object, nil)
		r.object.close()
	}
}

package sandbox

// NewPortable makes a sandbox that uses os.Root also where the kernel has
// something better, so that the same tests run over both.
func NewPortable(c Config) *Sandbox {
	s := New(c)
	s.open = openPortableRoot
	return s
}

// NameScratch is the name of a file's scratch file.
func NameScratch(base string, slot int) string { return nameScratch(base, slot) }

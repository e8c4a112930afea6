package proc

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// binarySignatures lists the first bytes of common binary formats.
var binarySignatures = [...]struct{ prefix, kind string }{
	{"\x7fELF", "ELF program"}, {"\x89PNG\r\n\x1a\n", "PNG image"}, {"\xff\xd8\xff", "JPEG image"},
	{"GIF87a", "GIF image"}, {"GIF89a", "GIF image"}, {"%PDF-", "PDF document"}, {"PK\x03\x04", "zip archive"},
	{"\x1f\x8b", "gzip data"}, {"BZh", "bzip2 data"}, {"\xfd7zXZ\x00", "xz data"}, {"\x28\xb5\x2f\xfd", "zstd data"},
	{"SQLite format 3\x00", "SQLite database"}, {"\x00asm", "WebAssembly module"}, {"\xca\xfe\xba\xbe", "Java class"},
}

// binaryKind returns a description of output that is not text, "" for text.
// Output is binary if it begins with a signature, if more than a tenth of the
// examined bytes are control bytes (a list separated by NUL has fewer), or if
// more than three tenths are not UTF-8.
func binaryKind(head, tail []byte) string {
	for _, s := range binarySignatures {
		if bytes.HasPrefix(head, []byte(s.prefix)) && !isText(head, s.prefix) {
			return s.kind
		}
	}
	if isBinary(head) || len(tail) > 0 && isBinary(tail) {
		return "binary output"
	}
	return ""
}

// isText reports whether p is text although it begins with a printable
// signature, as a text about PDF may. It is true if p is only the signature.
func isText(p []byte, signature string) bool {
	if strings.ContainsFunc(signature, func(r rune) bool { return r < ' ' || r > '~' }) {
		return false
	}
	return utf8.Valid(p) && !bytes.Contains(p, []byte{0}) || len(p) == len(signature)
}

// isBinary reports whether the first 32 KiB of p contain too many control bytes
// or too much invalid UTF-8 for text. Fewer than 4 bytes are text.
func isBinary(p []byte) bool {
	p = p[:min(len(p), 32<<10)]
	if len(p) < 4 {
		return false
	}
	controls, invalid := 0, 0
	for rest := p; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			invalid++
		case r < ' ' && !strings.ContainsRune("\t\n\r\b\f\x1b\a", r):
			controls++
		}
		rest = rest[size:]
	}
	return controls*10 > len(p) && controls > 4 || invalid*10 > 3*len(p) && invalid > 8
}

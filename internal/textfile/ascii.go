package textfile

import "encoding/binary"

// IsASCII reports whether all bytes of b are below 0x80.
func IsASCII(b []byte) bool {
	n := leadingASCII(b)
	for _, c := range b[n:] {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// leadingASCII returns the number of leading bytes of b that are ASCII, or up
// to 7 fewer: it looks at 8 bytes at a time.
func leadingASCII(b []byte) int {
	const high = 0x8080808080808080
	n := 0
	for ; len(b)-n >= 64; n += 64 {
		c := (*[64]byte)(b[n:])
		if (binary.LittleEndian.Uint64(c[:8])|binary.LittleEndian.Uint64(c[8:16])|
			binary.LittleEndian.Uint64(c[16:24])|binary.LittleEndian.Uint64(c[24:32])|
			binary.LittleEndian.Uint64(c[32:40])|binary.LittleEndian.Uint64(c[40:48])|
			binary.LittleEndian.Uint64(c[48:56])|binary.LittleEndian.Uint64(c[56:]))&high != 0 {
			break
		}
	}
	for ; len(b)-n >= 8; n += 8 {
		if binary.LittleEndian.Uint64(b[n:])&high != 0 {
			break
		}
	}
	return n
}

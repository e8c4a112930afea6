package textfile

import "strings"

// Ending is the kind of a file's line endings.
type Ending string

// The line endings. A file that consists of one line without an ending has
// None. CR is reported only for files without any line feed; in other files, a
// lone carriage return is a character of its line.
const (
	None  Ending = "none"
	LF    Ending = "lf"
	CRLF  Ending = "crlf"
	CR    Ending = "cr"
	Mixed Ending = "mixed" // both lf and crlf
)

// Format describes how the text of a file is encoded.
type Format struct {
	Encoding Encoding // "" for a binary file
	BOM      int      // length of the byte order mark in bytes; 0: none
	Ending   Ending
	Binary   bool
	Guessed  bool // Encoding is the likeliest of several, and none is certain
	Invalid  int  // number of bytes that are not valid; UTF-8 only
	NUL      int  // number of NUL characters in the text
}

// String returns the format as shown in headers: "utf-8 lf", "utf-8 bom crlf",
// "gbk (guessed) lf".
func (f Format) String() string {
	if f.Binary {
		return "binary"
	}
	parts := []string{string(f.Encoding)}
	if f.Guessed {
		parts = append(parts, "(guessed)")
	}
	if f.BOM > 0 {
		parts = append(parts, "bom")
	}
	if f.Ending != None {
		parts = append(parts, string(f.Ending))
	}
	return strings.Join(parts, " ")
}

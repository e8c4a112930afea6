package linematch

import "github.com/toolroom-mcp/toolroom/tools/edit/cancelcheck"

// eachWord yields a hash of each word, ignoring case, until yield returns false
// or checker stops. It returns a hash of all words, or 0 if the line has none.
func eachWord(line []byte, checker *cancelcheck.Checker, yield func(uint64) bool) uint64 {
	var all uint64
	more := true
	eachWordAt(line, func(word uint64, _ int) bool {
		all = (all ^ word) * fnvPrime
		more = more && yield(word)
		return !checker.Stopped(wordCost)
	})
	return all
}

// fnvOffset and fnvPrime are the constants of the 64-bit FNV-1a hash.
const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211

// wordCost is the cost of work on a word, in bytes scanned.
const wordCost = 16

// eachWordAt yields a hash of each word, ignoring case, and the offset of its
// end, until yield returns false.
func eachWordAt(line []byte, yield func(word uint64, end int) bool) {
	word := uint64(fnvOffset)
	inside := false
	for i, c := range line {
		if class := wordBytes[c]; class != 0 {
			word, inside = (word^uint64(class))*fnvPrime, true
			continue
		}
		if inside {
			if !yield(word, i) {
				return
			}
			word, inside = fnvOffset, false
		}
	}
	if inside {
		yield(word, len(line))
	}
}

// wordBytes maps each byte of words to itself in lower case, and all other
// bytes to 0. Bytes of other scripts belong to words, except those that occur
// in typographic quotes and dashes.
var wordBytes = func() (table [256]byte) {
	for c := range 256 {
		switch b := byte(c); {
		case b >= 'A' && b <= 'Z':
			table[c] = b + 'a' - 'A'
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '_', b >= 0xC3 && b != 0xE2:
			table[c] = b
		}
	}
	return table
}()

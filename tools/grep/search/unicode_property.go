package search

import (
	"strings"
	"unicode"
)

// The classes by UTS #18 (annex C), which define \w, \d and \s as in ripgrep.

// wordSet returns the characters of \w.
func wordSet() charset {
	return alphabeticSet().union(fromTables(unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control))
}

// alphabeticSet returns the characters with the property Alphabetic.
func alphabeticSet() charset {
	return fromTables(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.Other_Lowercase, unicode.Other_Uppercase)
}

// digitSet returns the characters of \d.
func digitSet() charset { return fromTable(unicode.Nd) }

// spaceSet returns the characters of \s.
func spaceSet() charset { return fromTable(unicode.White_Space) }

// asciiWordSet returns the characters of (?-u:\w).
func asciiWordSet() charset { return charset{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}} }

// asciiDigitSet returns the characters of (?-u:\d).
func asciiDigitSet() charset { return charset{{'0', '9'}} }

// asciiSpaceSet returns the characters of (?-u:\s).
func asciiSpaceSet() charset { return charset{{'\t', '\r'}, {' ', ' '}} }

// posixSet returns the set of [[:name:]], which is always ASCII. It returns
// false for an unknown name.
func posixSet(name string) (charset, bool) {
	switch name {
	case "alnum":
		return charset{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, true
	case "alpha":
		return charset{{'A', 'Z'}, {'a', 'z'}}, true
	case "ascii":
		return charset{{0, 0x7F}}, true
	case "blank":
		return charset{{'\t', '\t'}, {' ', ' '}}, true
	case "cntrl":
		return charset{{0, 0x1F}, {0x7F, 0x7F}}, true
	case "digit":
		return asciiDigitSet(), true
	case "graph":
		return charset{{'!', '~'}}, true
	case "lower":
		return charset{{'a', 'z'}}, true
	case "print":
		return charset{{' ', '~'}}, true
	case "punct":
		return charset{{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, true
	case "space":
		return asciiSpaceSet(), true
	case "upper":
		return charset{{'A', 'Z'}}, true
	case "word":
		return asciiWordSet(), true
	case "xdigit":
		return charset{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, true
	}
	return nil, false
}

// looseName normalizes a property's name for comparison (UAX #44, LM3): without
// case, spaces, hyphens and underscores.
func looseName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == ' ' || r == '_' || r == '-' || r == '\t' {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
	if rest, ok := strings.CutPrefix(s, "is"); ok && rest != "" && rest != "c" {
		return rest
	}
	return s
}

// propertySet returns the set of \p{name}, and false for an unknown name. The
// name is a general category, a script or a binary property, or it is
// "key=value" with the key gc, sc or scx.
func propertySet(name string) (charset, bool) {
	if key, value, ok := cutProperty(name); ok {
		switch looseName(key) {
		case "gc", "generalcategory":
			return categorySet(looseName(value))
		case "sc", "script":
			return scriptSet(looseName(value))
		}
		return nil, false
	}
	loose := looseName(name)
	switch loose { // including abbreviations that are the full name of another property
	case "cf", "sc", "lc":
		return categorySet(loose)
	}
	if set, ok := binaryPropertySet(loose); ok {
		return set, true
	}
	if set, ok := categorySet(loose); ok {
		return set, true
	}
	return scriptSet(loose)
}

// cutProperty splits "key=value" or "key:value". ok is false without a separator.
func cutProperty(name string) (key, value string, ok bool) {
	if key, value, ok = strings.Cut(name, "="); ok {
		return key, value, true
	}
	return strings.Cut(name, ":")
}

// categorySet returns the set of a general category by its loose name, and
// false for an unknown one.
func categorySet(loose string) (charset, bool) {
	switch loose {
	case "any":
		return anyRune(), true
	case "ascii":
		return charset{{0, 0x7F}}, true
	case "assigned":
		return assignedSet(), true
	case "cn", "unassigned":
		return anyRune().minus(assignedSet()), true
	case "c", "other":
		return fromTable(unicode.C).intersect(anyRune()).union(anyRune().minus(assignedSet())), true
	case "lc", "casedletter":
		return fromTables(unicode.Lu, unicode.Ll, unicode.Lt), true
	case "cs", "surrogate":
		return nil, true
	}
	for long, short := range unicode.CategoryAliases {
		if looseName(long) == loose {
			loose = strings.ToLower(short)
		}
	}
	for short, table := range unicode.Categories {
		if strings.ToLower(short) == loose {
			return fromTable(table).intersect(anyRune()), true
		}
	}
	return nil, false
}

// assignedSet returns every character that Unicode assigns.
func assignedSet() charset {
	var out charset
	for short, table := range unicode.Categories {
		if len(short) == 2 && short != "Cn" && short != "Cs" && short != "LC" {
			out = append(out, fromTable(table)...)
		}
	}
	return out.normalize()
}

// scriptCodes are the four-letter codes (ISO 15924) of modern scripts; every
// script can be given by name.
const scriptCodes = "arab arabic armn armenian beng bengali bopo bopomofo cyrl cyrillic deva devanagari ethi ethiopic " +
	"geor georgian grek greek gujr gujarati guru gurmukhi hang hangul hani han hebr hebrew hira hiragana kana katakana " +
	"khmr khmer knda kannada laoo lao latn latin mlym malayalam mong mongolian mymr myanmar orya oriya sinh sinhala " +
	"syrc syriac taml tamil telu telugu thaa thaana thai thai tibt tibetan zinh inherited zyyy common qaai inherited"

// scriptSet returns the set of a script by its loose name, and false for an
// unknown one.
func scriptSet(loose string) (charset, bool) {
	codes := strings.Fields(scriptCodes)
	for i := 0; i < len(codes); i += 2 {
		if codes[i] == loose {
			loose = codes[i+1]
		}
	}
	for name, table := range unicode.Scripts {
		if looseName(name) == loose {
			return fromTable(table), true
		}
	}
	return nil, false
}

// binaryPropertySet returns the set of a binary property by its loose name, and
// false for an unknown one.
func binaryPropertySet(loose string) (charset, bool) {
	switch loose {
	case "alphabetic", "alpha":
		return alphabeticSet(), true
	case "lowercase", "lower":
		return fromTables(unicode.Ll, unicode.Other_Lowercase), true
	case "uppercase", "upper":
		return fromTables(unicode.Lu, unicode.Other_Uppercase), true
	case "math":
		return fromTables(unicode.Sm, unicode.Other_Math), true
	case "space", "wspace":
		return spaceSet(), true
	case "hex":
		return fromTable(unicode.Hex_Digit), true
	case "cased":
		return fromTables(unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Lowercase, unicode.Other_Uppercase), true
	}
	for name, table := range unicode.Properties {
		if looseName(name) == loose && !strings.HasPrefix(name, "Other_") {
			return fromTable(table), true
		}
	}
	return nil, false
}

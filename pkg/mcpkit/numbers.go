package mcpkit

import (
	"math"
	"reflect"
	"strconv"
	"strings"
)

// wholeNumber is an integer of up to 64 bits, signed or unsigned.
type wholeNumber struct {
	negative  bool
	magnitude uint64
}

// decimal returns the number in decimal digits, with a minus sign if it is
// negative.
func (v wholeNumber) decimal() string {
	text := strconv.FormatUint(v.magnitude, 10)
	if v.negative {
		return "-" + text
	}
	return text
}

// asBound returns the number for comparison with bounds. It is exact if an
// int64 can hold it.
func (v wholeNumber) asBound() bound {
	f := float64(v.magnitude)
	if v.negative {
		return bound{isSet: true, integer: -int64(v.magnitude), float: -f, isExact: v.magnitude <= 1<<63}
	}
	return bound{isSet: true, integer: int64(v.magnitude), float: f, isExact: v.magnitude <= math.MaxInt64}
}

// parseWholeNumber parses a JSON number without loss. isWhole is false for a
// fraction such as 10.5, fits is false if the value exceeds 64 bits; v counts
// only if both are true. 10.0 and 1e3 are whole.
func parseWholeNumber(text string) (v wholeNumber, isWhole, fits bool) {
	text, v.negative = strings.CutPrefix(text, "-")
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(text), "e")
	exponent := 0
	if exponentText != "" {
		var err error
		if exponent, err = strconv.Atoi(exponentText); err != nil {
			exponent = 1 << 20
			if exponentText[0] == '-' {
				exponent = -exponent
			}
		}
	}
	digits, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(digits+fraction, "0")
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	switch {
	case short == "":
		return wholeNumber{}, true, true
	case exponent < 0:
		return v, false, false
	case exponent > 20 || len(short) > 20:
		return v, true, false
	}
	var err error
	v.magnitude, err = strconv.ParseUint(short+strings.Repeat("0", exponent), 10, 64)
	return v, true, err == nil
}

// fitsIntType reports whether the integer type that s describes can hold v.
func fitsIntType(s *schema, v wholeNumber) bool {
	bits, signed := 64, true
	if s.goType != nil {
		bits = s.goType.Bits()
		signed = s.goType.Kind() < reflect.Uint
	}
	switch {
	case !signed:
		return (!v.negative || v.magnitude == 0) && v.magnitude <= math.MaxUint64>>(64-bits)
	case v.negative:
		return v.magnitude <= 1<<(bits-1)
	}
	return v.magnitude < 1<<(bits-1)
}

// bound is an optional limit of a number, of a duration in nanoseconds, or of a
// length.
type bound struct {
	isSet   bool   // false: no limit
	text    string // as written in the tag
	integer int64
	float   float64
	isExact bool // integer is the value; otherwise only float, rounded
}

// less reports whether the limit b is smaller than other. It ignores isSet.
func (b bound) less(other bound) bool {
	if b.isExact && other.isExact {
		return b.integer < other.integer
	}
	return b.float < other.float
}

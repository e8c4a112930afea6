package oauth

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// seconds is a number of seconds in an answer: a JSON number, or a string with one, as some
// authorization servers send. null and "" leave it unchanged.
type seconds float64

// UnmarshalJSON returns a *json.UnmarshalTypeError for anything else than a finite number.
func (s *seconds) UnmarshalJSON(raw []byte) error {
	text := strings.TrimSpace(strings.Trim(string(raw), `"`))
	if text == "null" || text == "" {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[seconds]()}
	}
	*s = seconds(n)
	return nil
}

// duration returns the same time as a Duration. s must be below maxLifetime.
func (s seconds) duration() time.Duration { return time.Duration(s * seconds(time.Second)) }

// maxUnixTime bounds a time in seconds since 1970, so that it can be written as JSON.
const maxUnixTime seconds = 1 << 37

// scopeList holds the scopes of an answer: a string with spaces between them (RFC 6749, 3.3),
// or an array, as some authorization servers send.
type scopeList []string

// UnmarshalJSON returns the error of encoding/json for other values.
func (l *scopeList) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*l = strings.Fields(text)
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(l))
}

// splitAtCommas returns the scopes of l. If its only element is not a requested scope, it is
// split at commas, which GitHub sends between scopes.
func (l scopeList) splitAtCommas(requested []string) []string {
	if len(l) != 1 || slices.Contains(requested, l[0]) {
		return l
	}
	return strings.FieldsFunc(l[0], func(r rune) bool { return r == ',' })
}

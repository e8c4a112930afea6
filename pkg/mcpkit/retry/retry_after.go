package retry

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// After is the name of the extra value of a toolerr.Error that says how long to
// wait before a retry: an int64 in milliseconds.
const After = "retryAfterMs"

// ParseAfter parses the HTTP header Retry-After (RFC 9110, section 10.2.3):
// seconds, capped at a day, or a date, relative to now. ok is false for other
// values.
func ParseAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 24*60*60)) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

package gateway

import "time"

// Impatient is a door whose clients may leave a message unread for d.
func Impatient(h *HTTPHandler, d time.Duration) *HTTPHandler {
	h.unreadTimeout = d
	return h
}

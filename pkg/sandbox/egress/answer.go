package egress

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// answerError sends an HTTP response that says why a request was not served:
// 403 for a refusal, which it also records, or the status of an httpError. For
// other errors, such as a connection that ended, it sends nothing. q is nil if
// the request could not be parsed.
func (p *Proxy) answerError(client *stream, q *request, err error) {
	status, reason, text := http.StatusBadRequest, "", err.Error()
	var no *refusal
	var wrong *httpError
	switch {
	case errors.As(err, &no):
		// Clients show the reason where they do not show the text.
		status, reason, text = http.StatusForbidden, "Not allowed by "+p.config.Setting, no.answerText(p.config.HowToAllow)
		p.recordRefusal(no)
	case errors.As(err, &wrong):
		if status = wrong.status; status >= http.StatusInternalServerError && q != nil {
			reason = text
		}
	default: // the connection ended, or said nothing
		return
	}
	if reason == "" {
		reason = http.StatusText(status)
	}
	if q != nil && q.method == http.MethodHead {
		text = ""
	} else {
		text = strings.ToValidUTF8(text, "?") + "\n"
	}
	fmt.Fprintf(client, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, reason, len(text), text)
}

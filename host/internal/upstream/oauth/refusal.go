package oauth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// refreshPause is the time without refreshes after the server has refused a token that was just
// issued. A server that refuses every token, as with a wrong audience, would cause a
// refresh with each request, and providers limit their number.
const refreshPause = 30 * time.Second

// signInPause is the time without another request for a sign-in after the server has refused the
// tokens of a sign-in, too: a further one would most probably be of no use.
const signInPause = time.Hour

// refreshIsFutile reports whether the tokens are not to be refreshed after the server has
// refused the access token: it is the result of the last refresh, and the server never
// accepted it, or that happened a short time before.
func (s *Source) refreshIsFutile(refused string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.unproven.Load(); t != nil && *t == refused && s.refusedToken != refused {
		s.refusedToken, s.refusedAt = refused, time.Now()
		return true
	}
	return time.Since(s.refusedAt) < refreshPause
}

// noteRefused notes in r, which is locked, that the server refuses a token that was just issued, and
// returns the error for it, which wraps ErrSignIn if a user may resolve it by a sign-in. changed
// reports whether to store r.
func (c Config) noteRefused(r *record) (changed bool, err error) {
	why := fmt.Sprintf("server %s refuses the token that its provider has just issued", c.Server)
	if c.signsInAlone() {
		return false, errors.New(why)
	}
	if changed = r.Refused.IsZero(); changed {
		r.Refused = time.Now()
	}
	if time.Since(r.SignedInAgain) < signInPause {
		return changed, fmt.Errorf("%s, although the user signed in again at %s; check its audience, its scopes and its account, or run mcp-host login %s",
			why, r.SignedInAgain.Local().Format(time.TimeOnly), c.Server)
	}
	return changed, c.signInRequired(why + "; check its scopes and its account, or sign in again")
}

// noteAccepted notes that the server accepted the token of the last refresh, if res is the
// answer to a request with it.
func (s *Source) noteAccepted(res *http.Response) {
	t := s.unproven.Load()
	if t == nil || res.Request == nil || res.StatusCode == http.StatusUnauthorized || res.StatusCode >= 500 {
		return
	}
	if strings.HasSuffix(res.Request.Header.Get("Authorization"), " "+*t) {
		s.unproven.CompareAndSwap(t, nil)
	}
}

// isRefusedWithoutCode reports whether a token endpoint answered with status 400 or 401
// without an error code. Most often it refused the credentials, but a proxy can send such
// an answer, too.
func isRefusedWithoutCode(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == "" && (status.status == http.StatusBadRequest || status.status == http.StatusUnauthorized)
}

// hasEnded reports whether the access token is of no use any more: it has expired, or it
// has no expiry and the server refused it.
func (t *tokens) hasEnded(refused bool) bool {
	if t.Expires.IsZero() {
		return refused
	}
	return !time.Now().Before(t.Expires)
}
